"""A Spark session for one machine or a cluster: quiet, private, and leaving nothing behind.

Spark's own words (the JVM's, log4j's, its Python workers') go to a file in a scratch directory
that is removed at the end; what a person must know of them becomes one `SetupError` sentence.

On a cluster, Spark by itself would wait for ever for a master or for executors that do not come.
Here both waits end.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ordercast.errors import SetupError, TraceError, UsageError
from ordercast.pipeline.shipping import is_local, plainly, ship_package

if TYPE_CHECKING:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

__all__ = ["open_session", "require_pyspark", "session"]

JAVA_VERSION_MIN = 17
_GET_JAVA = (
    f"install Java {JAVA_VERSION_MIN} or newer (Debian: apt-get install default-jre-headless) "
    "or set JAVA_HOME"
)
_FIND_MASTER = "is it up, and is this its own port (by default 7077), not that of its web page?"
_EMPTY_WORDS = (
    "A fatal exception has occurred",
    "Could not create the Java Virtual Machine",
    "/bin/spark-class: line",
    "\tat ",
)
_MIB = 1 << 20

WAIT = "spark.ordercast.wait"
"""The setting for how long, in seconds, a cluster may leave us without any executor."""
_WAIT_S = "60"
_CONNECT_S = 10
# Executors of one job come within moments of each other.
_SETTLED_S = 0.5
_GIVEN_UP = "cancellation of all jobs"
"""What Spark says of a job that `_watch` has ended."""


def require_pyspark() -> None:
    """Raises a `SetupError` that says what to install, where an ImportError would be thrown."""
    try:
        import pyarrow  # noqa: F401
        import pyspark  # noqa: F401
    except ImportError:
        raise SetupError(
            "judging a trace needs Spark, which is not installed here: "
            "pip install 'ordercast[spark]'"
        ) from None


def open_session(
    *,
    master: str | None = None,
    config: Mapping[str, str] | None = None,
    verbose: bool = False,
) -> SparkSession:
    """The session that runs already in this process, or else a new one.

    `config` has the last word over every default. The caller stops the session, or uses
    `session(...)`; the scratch directory goes when this process ends, at the latest.
    """
    require_pyspark()
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    return running if running is not None else _start(master, dict(config or {}), verbose=verbose)


@contextmanager
def session(
    *,
    master: str | None = None,
    config: Mapping[str, str] | None = None,
    verbose: bool = False,
) -> Iterator[SparkSession]:
    """`open_session` for a block: a session that was opened here is stopped at its end."""
    require_pyspark()
    from pyspark.sql import SparkSession

    borrowed = SparkSession.getActiveSession() is not None
    spark = open_session(master=master, config=config, verbose=verbose)
    try:
        with _told(spark.sparkContext):
            yield spark
    finally:
        if not borrowed:
            spark.stop()
            _close_jvm()


def _start(master: str | None, config: dict[str, str], *, verbose: bool) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    _require_java()
    master = master or config.get("spark.master") or "local[*]"
    here = "127.0.0.1" if is_local(master) else _address_towards(master)
    _wait_s(config)  # refused now, if it must be
    scratch = Path(tempfile.mkdtemp(prefix="ordercast-spark-"))
    settings = _defaults(here, scratch, verbose=verbose) | config | {"spark.master": master}
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    started: SparkContext | SparkSession | None = None
    try:
        with _environment(local=is_local(master)), (scratch / "log.txt").open("ab") as log:
            gateway = _launch(conf, None if verbose else log)
            atexit.register(_close_jvm)
            _scratch.append(scratch)
            started = context = SparkContext(conf=conf, gateway=gateway)
            started = spark = SparkSession(context)
            if not is_local(master):
                ship_package(context, scratch)
                _await_executors(context)
            if (partitions := "spark.sql.shuffle.partitions") not in settings:
                # Few enough that a small trace is not all scheduling; adaptive execution merges.
                spark.conf.set(partitions, max(4, 2 * context.defaultParallelism))
            return spark
    except Exception as error:
        reason = _reason(error, scratch / "log.txt")
        _scratch.append(scratch)
        if started is not None:
            started.stop()
        _close_jvm()
        raise SetupError(f"Spark did not start: {reason}") from None


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


def _address_towards(master: str) -> str | None:
    """This machine's address as the master sees it, which is how executors will find us; None where
    another manager than Spark's own is asked for, and Spark knows best."""
    failures = []
    for host, port in re.findall(r"(?:^spark://|,)(\[[^]]+\]|[^,:]+):(\d+)", master):
        try:
            with socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S) as link:
                address: str = link.getsockname()[0]
                return f"[{address}]" if ":" in address else address
        except (OSError, OverflowError) as error:
            failures.append(f"{host}:{port} ({str(error).partition('] ')[2] or error})")
    if not failures:
        return None
    raise SetupError(f"no Spark master answers at {' or '.join(failures)}: {_FIND_MASTER}")


def _await_executors(context: SparkContext) -> None:
    """Until the first executor has come, and as many others as come with it: work is cut by how
    many there are."""
    if context.getConf().get("spark.dynamicAllocation.enabled", "false") == "true":
        return  # they come once there is work
    begun = changed = time.monotonic()
    known = 0
    while not known or time.monotonic() - changed < _SETTLED_S:
        if not known and time.monotonic() - begun > _wait_s(context.getConf()):
            raise SetupError(_alone(context))
        time.sleep(0.05)
        if (count := _executors(context)) != known:
            known, changed = count, time.monotonic()


@contextmanager
def _told(context: SparkContext) -> Iterator[None]:
    """Within it, what goes wrong on a worker is told in one sentence, and a job that no worker is
    left for ends."""
    over = threading.Event()
    watch = threading.Thread(target=_watch, args=(context, over), daemon=True)
    if not is_local(str(context.master)):
        watch.start()
    try:
        yield
    except TraceError:
        raise
    except Exception as error:
        words = str(error)
        if _GIVEN_UP in words and not _executors(context):
            raise SetupError(_alone(context)) from None
        if (sentence := plainly(words, _worker(words))) is not None:
            raise SetupError(sentence) from None
        if hasattr(error, "java_exception") or hasattr(error, "_origin"):
            error.add_note(words)  # which the JVM cannot be asked for once it is gone
        raise
    finally:
        over.set()
        if watch.is_alive():
            watch.join()


def _watch(context: SparkContext, over: threading.Event) -> None:
    seen = time.monotonic()
    with suppress(Exception):  # Spark has gone: whoever waits for a job hears of it
        while not over.wait(1):
            if _executors(context) or not context.statusTracker().getActiveJobsIds():
                seen = time.monotonic()
            elif time.monotonic() - seen > _wait_s(context.getConf()):
                context.cancelAllJobs()


def _executors(context: SparkContext) -> int:
    members: int = context._jsc.sc().getExecutorMemoryStatus().size()
    return members - 1  # the driver


def _wait_s(settings: Mapping[str, str] | SparkConf) -> float:
    wanted = settings.get(WAIT, _WAIT_S)
    try:
        return float(wanted)
    except ValueError:
        raise UsageError(f"{WAIT}={wanted!r} is not a number of seconds") from None


def _alone(context: SparkContext) -> str:
    conf = context.getConf()
    memory, here = conf.get("spark.executor.memory", "1g"), conf.get("spark.driver.host")
    return (
        f"{context.master} has had no executor for us for {_wait_s(conf):g} s: does its web "
        f"page show workers with a core and {memory} of memory to spare, and can they reach this "
        f"machine at {here}? ({WAIT} says how long to wait)"
    )


def _worker(words: str) -> str:
    """Who a failed task ran on: as its words say, or else the last one that Spark's log names."""
    logs = [scratch / "log.txt" for scratch in _scratch[-1:]]
    for text in (words, *(log.read_text(errors="replace") for log in logs if log.exists())):
        if found := re.findall(r"\(TID \d+\) \((\S+) executor (\w+)\)", text):
            host, executor = found[-1]
            return "this machine" if executor == "driver" else f"worker {host}"
    return "a worker"


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


@contextmanager
def _environment(*, local: bool) -> Iterator[None]:
    """What Spark reads from the environment only, set while it starts."""
    wanted = {"PYSPARK_PYTHON": sys.executable}
    if local:
        wanted["SPARK_LOCAL_IP"] = "127.0.0.1"
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


def _launch(conf: SparkConf, log: BinaryIO | None) -> Any:
    """A new JVM; or the one that an earlier session of this process has left running."""
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:
        return SparkContext._gateway
    stderr = 2  # even when asked for, Spark's words are no result: they stay off stdout
    streams = {"stdout": stderr} if log is None else {"stdout": log, "stderr": log}
    return launch_gateway(conf=conf, popen_kwargs=streams)  # type: ignore[no-untyped-call]


_scratch: list[Path] = []
"""The directories to remove once the JVM that writes to them is gone."""


def _close_jvm() -> None:
    from pyspark import SparkContext

    with SparkContext._lock:
        gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
    if gateway is not None:
        gateway.shutdown()
        process = getattr(gateway, "proc", None)
        if process is not None:
            process.stdin.close()  # the JVM ends when its standard input does
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
    while _scratch:
        shutil.rmtree(_scratch.pop(), ignore_errors=True)


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if home and not os.access(Path(home, "bin", "java"), os.X_OK):
        raise SetupError(f"Spark needs Java, and JAVA_HOME={home} has no bin/java: {_GET_JAVA}")
    if not home and shutil.which("java") is None:
        raise SetupError(f"Spark needs Java, and there is none on this machine: {_GET_JAVA}")


def _reason(error: Exception, log: Path) -> str:
    """Why the start failed, in the few words of it that help."""
    if isinstance(error, SetupError):
        return str(error)
    version = _java_version()
    if version is not None and version < JAVA_VERSION_MIN:
        return f"it found Java {version}: {_GET_JAVA}"
    words = log.read_text(errors="replace")
    if (cause := getattr(error, "java_exception", None)) is not None:
        told = str(cause.getMessage() or cause.toString()).splitlines()[0]
        # Only its log says why Spark stopped itself.
        return (plainly(words, "a worker") or told) if "stopped SparkContext" in told else told
    lines = filter(str.strip, words.splitlines())
    useful = [line for line in lines if not any(empty in line for empty in _EMPTY_WORDS)]
    last = useful[-1].strip() if useful else str(error)
    return re.sub(r'^Exception in thread "\S+" \S+: ', "", last)


def _java_version() -> int | None:
    """The major version of the Java that Spark takes; looked up only once a start has failed,
    because asking costs a JVM start of its own."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else "java"
    try:
        answer = subprocess.run(  # noqa: S603 - the very program that Spark would run
            [java, "-version"], capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    quoted = (answer.stderr + answer.stdout).partition('version "')[2].partition('"')[0]
    numbers = quoted.split(".")
    major = numbers[1] if numbers[0] == "1" and len(numbers) > 1 else numbers[0]
    return int(major) if major.isdigit() else None
