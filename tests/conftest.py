"""Options and fixtures that every room's tests share."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from ordercast import pipeline
from ordercast.pipeline.settings import SHORT_JOBS
from tests.seeds import LONG

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Machines are shared and noisy: how long an example took proves nothing.
settings.register_profile("ordercast", deadline=None, derandomize=True)
settings.register_profile("long", deadline=None, max_examples=2_000)
settings.load_profile("long" if LONG else "ordercast")

# In the background of a shell Ctrl-C is ignored, and under nohup the end of a terminal; they would
# be by what tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# xdist tells its workers how wide a terminal is, and tests have none.
os.environ.pop("COLUMNS", None)

EXPLORED = pytest.StashKey[list[int]]()
"""How many states the model checker has seen, world by world."""

REAL_PROCESSES = "tests/runtime/"
APART = (
    REAL_PROCESSES,
    "tests/conformance/test_conformance.py",
    "tests/conformance/test_explore.py",
    "tests/conformance/test_mutants.py",
    "tests/protocols/",
)
"""Where tests share nothing."""
LARGE_JOBS = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.shuffle.partitions": "4",
}
"""As sessions have it if there is much to read."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="write what scenarios really print into their files; review the diff",
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: a quarter of the time, a test waits for something."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests of a file share what it sets up, so one worker runs them all. Those in `APART` share
    nothing, go to whoever is idle, and are what is left for the end, when nobody should have to
    wait for one long file. Those of real processes wait a lot, so one worker runs them from the
    start on, while the others have the cores."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return nodeid if nodeid.startswith(APART) else nodeid.partition("::")[0]

        def _assign_work_unit(self, node: Any) -> None:
            waits = node is self.nodes[0]
            for scope in self.workqueue:
                if scope.startswith(REAL_PROCESSES) == waits:
                    self.workqueue.move_to_end(scope, last=False)
                    break
            super()._assign_work_unit(node)

    return Scheduling(config, log)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One Spark for the whole test run: starting it takes seconds."""
    config = {"spark.driver.memory": "1g", **SHORT_JOBS}
    with pipeline.session(master="local[2]", config=config) as session:
        yield session


@pytest.fixture
def compiled(spark: SparkSession) -> Iterator[SparkSession]:
    """The session of all tests, while a test has it with queries that Spark compiles, as it does if
    there is much to read."""
    yield from set_for_a_while(spark, LARGE_JOBS)


@pytest.fixture
def stateful(spark: SparkSession) -> Iterator[SparkSession]:
    """The session of all tests, with the settings that state needs while a test has it."""
    from ordercast.pipeline.streaming import SETTINGS

    settings = {
        **SETTINGS,
        **LARGE_JOBS,
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    }
    yield from set_for_a_while(spark, settings)


def set_for_a_while(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    yield spark
    for key, old in before.items():
        if old is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, old)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if states := config.stash.get(EXPLORED, []):
        terminalreporter.write_line(
            f"model checker: {sum(states):,} states in {len(states)} worlds"
        )
