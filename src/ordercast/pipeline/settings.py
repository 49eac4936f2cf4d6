"""What Spark is told before it starts: its settings, and what it reads from the environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ordercast.pipeline.interpreter import interpreter, sockets
from ordercast.pipeline.java import class_archive
from ordercast.pipeline.shipping import is_local

__all__ = ["SHORT_JOBS", "environment", "settings_for", "settings_of"]

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_QUICK_START = {_JAVA_OPTIONS: "-XX:TieredStopAtLevel=1"}
SHORT_JOBS = {
    **_QUICK_START,
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
}
"""For some thousand rows: nothing is compiled that would be run for less time than that takes, and
no plan is made anew for what came out of its first half."""
_MIB = 1 << 20
_SMALL_BYTES = 4 << 20
"""Less does not keep a JVM busy for as long as its second compiler takes."""
_TINY_BYTES = 64 << 10
"""Nor less than this a query for as long as Spark takes to compile it. In Parquet, this may be some
ten thousand rows; for ten times as many, it would take longer without."""


def settings_for(size: int, *, by_python: bool = False) -> dict[str, str]:
    """By the bytes that are read, and whether the work is done `by_python`. And results may be as
    large as this process can hold."""
    settings = {"spark.driver.maxResultSize": "0"}
    if size < _TINY_BYTES:
        return settings | SHORT_JOBS
    return settings | (_QUICK_START if by_python or size < _SMALL_BYTES else {})


def settings_of(
    master: str,
    here: str | None,
    scratch: Path,
    config: Mapping[str, str],
    *,
    verbose: bool,
) -> dict[str, str]:
    """Of one session, whose driver is at the address `here`. `config` has the last word over every
    default; its options for Java are added to ours."""
    defaults = _defaults(here, scratch, verbose=verbose)
    if is_local(master):
        defaults |= sockets(scratch)
    settings = defaults | dict(config) | {"spark.master": master}
    settings[_JAVA_OPTIONS] = f"{_java_options(scratch)} {settings.get(_JAVA_OPTIONS, '')}".strip()
    return settings


@contextmanager
def environment(scratch: Path, *, local: bool) -> Iterator[None]:
    """What Spark reads from the environment only, set while it starts."""
    wanted = {"PYSPARK_PYTHON": sys.executable}
    if local:
        wanted = {"PYSPARK_PYTHON": interpreter(scratch), "SPARK_LOCAL_IP": "127.0.0.1"}
    elif "PYSPARK_PYTHON" in os.environ:  # a cluster's machines may keep their Python elsewhere
        wanted = {}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _defaults(here: str | None, scratch: Path, *, verbose: bool) -> dict[str, str]:
    settings = {
        "spark.app.name": "ordercast",
        "spark.driver.memory": f"{_heap_mib()}m",
        # Off: a worker that takes part in one job needs one copy of a file, not two.
        "spark.files.useFetchCache": "false",
        "spark.local.dir": str(scratch),
        # Off: it looks up the call site of every expression, several round trips to the JVM each.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": str(verbose).lower(),
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
    }
    if here is None:
        return settings
    return settings | {"spark.driver.bindAddress": here, "spark.driver.host": here}


def _java_options(scratch: Path) -> str:
    # Or what the JVM has in the common directory would outlive one that is killed.
    options = f'"-Djava.io.tmpdir={scratch}"'
    if (archive := class_archive()).is_file():
        options += f' "-XX:SharedArchiveFile={archive}"'
    return options


def _heap_mib() -> int:
    """Half of what is free now: the other half is for the Python workers and other people."""
    free = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for file, unit in (("/proc/meminfo", 1024), ("/sys/fs/cgroup/memory.max", 1)):
        try:
            words = Path(file).read_text().partition("MemAvailable:")
        except OSError:
            continue
        figure = (words[2] or words[0]).split()[0]
        if figure.isdigit():
            free.append(int(figure) * unit)
    return max(1024, min(16 * 1024, min(free) // 2 // _MIB))
