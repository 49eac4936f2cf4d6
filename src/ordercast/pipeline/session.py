"""A Spark session for one machine or a cluster: quiet, private, and leaving nothing behind.

Spark's own words (the JVM's, log4j's, its Python workers') go to a file in a scratch directory
that is removed at the end; what a person must know of them becomes one `SetupError` sentence.
"""

from __future__ import annotations

import re
import resource
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ordercast.errors import OrdercastError, SetupError
from ordercast.pipeline.cluster import address_towards, await_executors, told, wait_s
from ordercast.pipeline.installed import require_pyspark
from ordercast.pipeline.java import (
    GET_JAVA,
    JAVA_VERSION_MIN,
    java_version,
    require_java,
)
from ordercast.pipeline.jvm import (
    close_jvm,
    forsake_jvm,
    interrupted,
    interruptible,
    launch_jvm,
    scratches,
    why_lost,
)
from ordercast.pipeline.scratch import make_scratch
from ordercast.pipeline.settings import environment, settings_of
from ordercast.pipeline.shipping import is_local, plainly, ship_package

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

__all__ = ["close_jvm", "open_session", "session"]

_EMPTY_WORDS = (
    "A fatal exception has occurred",
    "Could not create the Java Virtual Machine",
    "/bin/spark-class: line",
    "\tat ",
)
_LOG = "log.txt"
_FILES_MIN = 300
"""Each of its 280 jars is one; with fewer it fails in any of many ways."""


def open_session(
    *,
    master: str | None = None,
    config: Mapping[str, str] | None = None,
    verbose: bool = False,
) -> SparkSession:
    """The session that runs already in this process, or else a new one.

    `config` has the last word over every default. The caller stops the session, or uses
    `session(...)`; it is stopped, and its scratch directory goes, when this process ends, at the
    latest.
    """
    require_pyspark("a session")
    from pyspark.sql import SparkSession

    if (running := SparkSession.getActiveSession()) is not None:
        return running
    with interruptible():
        return _start(master, dict(config or {}), verbose=verbose)


@contextmanager
def session(
    *,
    master: str | None = None,
    config: Mapping[str, str] | None = None,
    verbose: bool = False,
) -> Iterator[SparkSession]:
    """`open_session` for a block: a session that was opened here is stopped at its end, and at once
    if the block is interrupted."""
    require_pyspark("a session")
    from pyspark.sql import SparkSession

    if (running := SparkSession.getActiveSession()) is not None:
        with told(running.sparkContext, scratches[-1] / _LOG if scratches else None):
            yield running
        return
    with interruptible() as listen:
        spark = _start(master, dict(config or {}), verbose=verbose, then=listen)
        try:
            with told(spark.sparkContext, scratches[-1] / _LOG):
                yield spark
        except Exception as error:
            # What Spark or an `OrdercastError` says of itself needs no other reason.
            if isinstance(error, OrdercastError) or hasattr(error, "java_exception"):
                raise
            _require_jvm()
            raise
        finally:
            _stop(spark)
            close_jvm()


def _require_jvm() -> None:
    """Raises a `SetupError` if it was ended by something else than us."""
    if (how := why_lost()) is not None:
        forsake_jvm()
        raise SetupError(
            f"Java, in which Spark runs, was ended by something else ({how}), as systems do for "
            "want of memory: let this machine have more to spare, and try again"
        ) from None


def _stop(spark: SparkContext | SparkSession) -> None:
    """Also if there is no JVM any more."""
    from pyspark.sql import SparkSession

    context = spark.sparkContext if isinstance(spark, SparkSession) else spark
    if context._jsc is not None:
        spark.stop()
        return
    context.stop()
    SparkSession._instantiatedSession = SparkSession._activeSession = None


def _start(
    master: str | None,
    config: dict[str, str],
    *,
    verbose: bool,
    then: Callable[[], None] = lambda: None,
) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    require_java()
    master = master or config.get("spark.master") or "local[*]"
    here = "127.0.0.1" if is_local(master) else address_towards(master)
    wait_s(config)  # refused now, if it must be
    scratches.append(scratch := make_scratch())
    settings = settings_of(master, here, scratch, config, verbose=verbose)
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    started: SparkContext | SparkSession | None = None
    try:
        with environment(scratch, local=is_local(master)), (scratch / _LOG).open("ab") as log:
            gateway = launch_jvm(conf, None if verbose else log)
            started = context = SparkContext(conf=conf, gateway=gateway)
            then()
            started = spark = SparkSession(context)
            if not is_local(master):
                ship_package(context, scratch)
                await_executors(context)
            if (partitions := "spark.sql.shuffle.partitions") not in settings:
                # Few enough that a small trace is not all scheduling; adaptive execution merges.
                spark.conf.set(partitions, max(4, 2 * context.defaultParallelism))
            return spark
    except BaseException as error:
        mishap = isinstance(error, Exception) and not interrupted()
        reason = _reason(error, scratch / _LOG) if mishap else ""
        try:
            if mishap:
                _require_jvm()
        finally:
            if started is not None:
                _stop(started)
            close_jvm()
        if not mishap:
            raise
        raise SetupError(f"Spark did not start: {reason}") from None


def _reason(error: BaseException, log: Path) -> str:
    """Why the start failed, in the few words of it that help."""
    if isinstance(error, SetupError):
        return str(error)
    _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files < _FILES_MIN:
        return (
            f"it opens hundreds of files, and a process may have {files} (ulimit -n): allow more, "
            "such as 1024"
        )
    version = java_version()
    if version is not None and version < JAVA_VERSION_MIN:
        return f"it found Java {version}: {GET_JAVA}"
    words = log.read_text(errors="replace")
    if (cause := getattr(error, "java_exception", None)) is not None:
        told = str(cause.getMessage() or cause.toString()).splitlines()[0]
        # Only its log says why Spark stopped itself.
        return (plainly(words, "a worker") or told) if "stopped SparkContext" in told else told
    lines = filter(str.strip, words.splitlines())
    useful = [line for line in lines if not any(empty in line for empty in _EMPTY_WORDS)]
    last = useful[-1].strip() if useful else str(error)
    return re.sub(r'^Exception in thread "\S+" \S+: ', "", last)
