"""The judge on a Spark cluster: a master and two workers that really run, on loopback.

Everything is driven from processes of their own, since this one may have a local Spark open.
"""

from __future__ import annotations

import json
import re
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import ordercast
from ordercast.pipeline import judge
from ordercast.protocols.disseminations.direct import Direct
from ordercast.protocols.orderings.fifo import Fifo
from ordercast.protocols.stack import Stack
from ordercast.trace.directory import TraceWriter

from ..conformance.random_traces import random_trace
from ..conformance.subjects import run_once
from .cluster import Cluster, Driver, until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
JUDGING = "judging /proc/self/cwd/trace on Spark …\n"

Launch = Callable[..., Driver]


@pytest.fixture(scope="module")
def one_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        yield cluster
    finally:
        cluster.stop()
    assert cluster.pids() == []


@pytest.fixture
def cluster(one_cluster: Cluster) -> Cluster:
    """With two workers, whatever the test before did to them."""
    one_cluster.start(workers=2)
    return one_cluster


@pytest.fixture
def launch() -> Iterator[Launch]:
    """Starts a driver, which a test that fails does not leave behind either."""
    drivers: list[Driver] = []

    def one(directory: Path, *command: str, **environment: str) -> Driver:
        drivers.append(Driver(directory, *command, **environment))
        return drivers[-1]

    yield one
    for driver in drivers:
        driver.end()


@dataclass(frozen=True)
class Case:
    """A trace, and what a local Spark says of it."""

    path: Path
    output: str
    exit_code: int


@pytest.fixture(scope="module")
def case(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Case:
    """Small runs, most of them broken, and one of some length."""
    path = tmp_path_factory.mktemp("case") / "trace"
    runs = [random_trace(seed, f"small-{seed}") for seed in range(12)]
    build = lambda me, size: Stack(Fifo(me, size), Direct(me, size))  # noqa: E731
    runs.append(run_once(build, seed=1, size=6, messages=200, run="medium"))
    with TraceWriter(path, format="parquet") as writer:
        for run in runs:
            writer.add_manifest(run.manifest)
            for event in run.events:
                writer.write(event)
    judgement = judge(path, spark=spark)
    assert {verdict.verdict for verdict in judgement.verdicts} == {"holds", "violated", "unknown"}
    return Case(path, json.dumps(judgement.to_json()) + "\n", judgement.exit_code)


Verify = Callable[..., Driver]


@pytest.fixture
def verify(case: Case, launch: Launch, tmp_path: Path) -> Verify:
    """`ordercast verify` of a path that means something to the driver alone: a worker has another
    working directory, and no trace in it."""
    shutil.copytree(case.path, tmp_path / "here" / "trace")

    def one(master: str, *settings: str) -> Driver:
        options = [option for setting in settings for option in ("--conf", setting)]
        command = ["-m", "ordercast", "verify", "/proc/self/cwd/trace", "--json"]
        return launch(tmp_path, *command, "--master", master, *options)

    return one


def sentence(answer: tuple[int, str, str]) -> str:
    """The one line that a failure prints, beside what it was about to do."""
    exit_code, output, errors = answer
    assert (exit_code, output) == (2, ""), errors
    told = errors.removeprefix(JUDGING)
    assert told.startswith("ordercast verify: "), errors
    assert told.count("\n") == 1, errors
    return told.removeprefix("ordercast verify: ").removesuffix("\n")


def test_a_cluster_gives_the_answer_of_one_machine(
    cluster: Cluster, case: Case, verify: Verify
) -> None:
    before = executor_directories(cluster)
    answer = verify(cluster.master).answer()
    assert answer == (case.exit_code, case.output, JUDGING)
    executors = executor_directories(cluster) - before
    assert len(executors) == 2
    there = {re.sub("-.*[.]", "-….", path.name) for one in executors for path in one.iterdir()}
    assert there == {"ordercast", "stderr", "stdout", "trace-….parquet"}


def executor_directories(cluster: Cluster) -> set[Path]:
    return set(cluster.directory.glob("worker-*/app-*/*"))


def test_a_dead_master(verify: Verify) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert sentence(verify(f"spark://127.0.0.1:{port}").answer()) == (
        f"no Spark master answers at 127.0.0.1:{port} (Connection refused): is it up, "
        "and is this its own port (by default 7077), not that of its web page?"
    )


def shadow(directory: Path, name: str) -> Path:
    """A place for PYTHONPATH from which this package is imported in vain."""
    (directory / name).mkdir(parents=True)
    words = f"raise ModuleNotFoundError(\"No module named '{name}'\", name={name!r})\n"
    (directory / name / "__init__.py").write_text(words)
    return directory


def test_a_worker_without_a_package(cluster: Cluster, verify: Verify, tmp_path: Path) -> None:
    path = f"spark.executorEnv.PYTHONPATH={shadow(tmp_path / 'shadow', 'msgspec')}"
    once = "spark.task.maxFailures=1"
    assert sentence(verify(cluster.master, path, once).answer()) == (
        "worker 127.0.0.1 has no Python package msgspec: "
        "install what ordercast needs there, pip install 'ordercast[spark]'"
    )


def test_a_worker_that_dies_changes_nothing(cluster: Cluster, case: Case, verify: Verify) -> None:
    driver = verify(cluster.master)
    workers = cluster.workers
    until(lambda: any(worker.python_tasks() for worker in workers), "a task that runs Python")
    victim = next(worker for worker in workers if worker.python_tasks())
    victim.kill()
    assert driver.process.poll() is None, "the answer came before the worker died"
    exit_code, output, _ = driver.answer()
    assert (exit_code, output) == (case.exit_code, case.output)
    assert cluster.workers == [worker for worker in workers if worker is not victim]


PROGRAM = """
import json, os, sys, time
from pathlib import Path
import pyarrow as pa
import ordercast
from ordercast.errors import SetupError
from ordercast.pipeline import session
from ordercast.pipeline.cluster import await_executors
from ordercast.pipeline.shipping import in_tasks, is_local, local_path

master, shadow, meeting, *files = sys.argv[1:]
meeting, files = Path(meeting), [Path(file) for file in files]

def meet(place):
    # Until the other driver's task runs as well.
    (meeting / f"{place}-{ordercast.__version__}").touch()
    while len(list(meeting.glob(f"{place}-*"))) < 2:
        time.sleep(0.05)

def look(batches):
    import numba
    import ordercast.pipeline.shipping as shipped
    meet("look")
    kept = numba.njit(cache=True)(is_local)._cache.cache_path
    found = [ordercast.__version__, shipped.__file__, kept, os.getcwd()]
    yield pa.RecordBatch.from_pydict({"found": [found]})

def read(batches):
    for batch in batches:
        for token in batch.column("token").to_pylist():
            path = local_path(token)
            found = [path.read_text(), str(path.parent), os.getcwd()]
            yield pa.RecordBatch.from_pydict({"found": [found]})

def there(tokens):
    table = spark.createDataFrame([(token,) for token in tokens], "token string").coalesce(1)
    return [row["found"] for row in table.mapInArrow(read, "found array<string>").collect()]

def told(function):
    try:
        with session() as same:
            same.range(1, numPartitions=1).mapInArrow(function, "id bigint").collect()
    except SetupError as error:
        return str(error)

def needs_package(batches):
    import no_such_package
    yield from batches

def needs_file(batches):
    open("/nowhere/events.jsonl")
    yield from batches

def dies(batches):
    os.kill(os.getpid(), 9)
    yield from batches

def lasts(batches):
    meet("lasts")
    time.sleep(600)
    yield from batches

config = {
    "spark.cores.max": "1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.executorEnv.PYTHONPATH": shadow,
    "spark.task.maxFailures": "1",
}
with session(master=master, config=config) as spark:
    context = spark.sparkContext
    conf = [spark.conf.get(name) for name in ("spark.driver.host", "spark.sql.shuffle.partitions")]
    [row] = spark.range(1, numPartitions=1).mapInArrow(look, "found array<string>").collect()
    tokens = in_tasks(spark, files)
    seen = there(tokens.values())
    same = in_tasks(spark, files) == tokens
    files[0].write_text("changed since")
    seen += there(in_tasks(spark, files[:1]).values())
    sentences = [told(needs_package), told(needs_file), told(dies)]
    ours, context.pythonVer = context.pythonVer, "3.1"
    sentences.append(told(needs_package))
    there_too, context.pythonVer, context.pythonExec = context.pythonExec, ours, "/nowhere/python"
    sentences.append(told(needs_package))
    context.pythonExec = there_too
    context._conf.set("spark.ordercast.wait", "1")
    sentences.append(told(lasts))
    try:
        await_executors(context)
    except SetupError as error:
        sentences.append(str(error))
print(json.dumps([ordercast.__version__, conf, row["found"], seen, same, sentences]))
"""


def another_version(directory: Path, version: str) -> Path:
    """A place for PYTHONPATH from which ordercast is imported in this version."""
    package = directory / "ordercast"
    shutil.copytree(
        Path(ordercast.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    text = (package / "__init__.py").read_text()
    text = re.sub(r'__version__ = ".*"', f'__version__ = "{version}"', text)
    (package / "__init__.py").write_text(text)
    return directory


def start_program(launch: Launch, master: str, directory: Path, version: str) -> Driver:
    files = [directory / folder / "events.jsonl" for folder in ("a", "b %20#c")]
    for file in files:
        file.parent.mkdir(parents=True)
        file.write_text(f"{version} in {file.parent.name}")
        file.chmod(0o640)
    wrong = shadow(directory / "shadow", "ordercast")
    arguments = [master, wrong, directory.parent / "meeting", *files]
    packages = another_version(directory / "packages", version)
    command = ["-c", PROGRAM, *map(str, arguments)]
    return launch(directory / "driver", *command, PYTHONPATH=str(packages))


def test_two_drivers_at_once_do_not_mix(cluster: Cluster, launch: Launch, tmp_path: Path) -> None:
    """Each ships its own version of ordercast, which wins over one that workers have, and its own
    files, and is told in one sentence what went wrong. In the end no worker is left to either."""
    (tmp_path / "meeting").mkdir()
    versions = ["0.0.1", "0.0.2"]
    drivers = [start_program(launch, cluster.master, tmp_path / v, v) for v in versions]
    until(
        lambda: (
            len(list((tmp_path / "meeting").glob("lasts-*"))) == 2
            or any(driver.process.poll() is not None for driver in drivers)
        ),
        "the last task of both",
    )
    for worker in cluster.workers:
        worker.kill()
    places = set()
    for version, driver in zip(versions, drivers, strict=True):
        exit_code, output, errors = driver.answer()
        assert (exit_code, errors) == (0, "")
        ours, conf, (theirs, file, kept, place), seen, same, sentences = json.loads(output)
        assert ours == theirs == version
        assert Path(place).is_relative_to(cluster.directory)
        assert Path(file) == Path(place, "ordercast", "pipeline", "shipping.py")
        assert Path(kept) == Path(place, "ordercast", "pipeline", "__pycache__")
        places.add(place)
        assert conf == ["127.0.0.1", "4"]
        texts = [f"{version} in a", f"{version} in b %20#c", "changed since"]
        assert seen == [[text, place, place] for text in texts]
        assert same
        files = [tmp_path / version / folder / "events.jsonl" for folder in ("a", "b %20#c")]
        assert [file.read_text() for file in files] == [texts[2], texts[1]]
        assert {file.stat().st_mode & 0o777 for file in files} == {0o640}
        assert [re.split("[,:] ", told)[0] for told in sentences] == [
            "worker 127.0.0.1 has no Python package no_such_package",
            "worker 127.0.0.1 sees no file /nowhere/events.jsonl",
            "worker 127.0.0.1 lost its Python in the middle of a task",
            f"worker 127.0.0.1 runs Python {PYTHON} and this is Python 3.1",
            "worker 127.0.0.1 cannot run /nowhere/python",
            f"{cluster.master} has had no executor for us for 1 s",
            f"{cluster.master} has had no executor for us for 1 s",
        ]
    assert len(places) == 2
