"""A cluster's master and its executors: whether they are there, and what to say if they are not.

Spark by itself would wait for ever for a master or for executors that do not come. Here both waits
end.
"""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ordercast.errors import SetupError, TraceError, UsageError
from ordercast.pipeline.shipping import is_local, plainly

if TYPE_CHECKING:
    from pyspark import SparkConf, SparkContext

__all__ = ["WAIT", "address_towards", "await_executors", "told", "wait_s"]

_FIND_MASTER = "is it up, and is this its own port (by default 7077), not that of its web page?"

WAIT = "spark.ordercast.wait"
"""The setting for how long, in seconds, a cluster may leave us without any executor."""
_WAIT_S = "60"
_CONNECT_S = 10
# Executors of one job come within moments of each other.
_SETTLED_S = 0.5
_GIVEN_UP = "cancellation of all jobs"
"""What Spark says of a job that `_watch` has ended."""


def address_towards(master: str) -> str | None:
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


def await_executors(context: SparkContext) -> None:
    """Until the first executor has come, and as many others as come with it: work is cut by how
    many there are."""
    if context.getConf().get("spark.dynamicAllocation.enabled", "false") == "true":
        return  # they come once there is work
    begun = changed = time.monotonic()
    known = 0
    while not known or time.monotonic() - changed < _SETTLED_S:
        if not known and time.monotonic() - begun > wait_s(context.getConf()):
            raise SetupError(_alone(context))
        time.sleep(0.05)
        if (count := _executors(context)) != known:
            known, changed = count, time.monotonic()


@contextmanager
def told(context: SparkContext, log: Path | None) -> Iterator[None]:
    """Within it, what goes wrong on a worker is told in one sentence, and a job that no worker is
    left for ends. `log` is where Spark's own words go, if that is known."""
    over = threading.Event()
    watch = threading.Thread(target=_watch, args=(context, over), daemon=True)
    if not is_local(str(context.master)):
        watch.start()
    try:
        yield
    except (TraceError, OSError):  # of this process, and no worker's
        raise
    except Exception as error:
        words = str(error)
        if _GIVEN_UP in words and not _executors(context):
            raise SetupError(_alone(context)) from None
        if (sentence := plainly(words, _worker(words, log))) is not None:
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
            elif time.monotonic() - seen > wait_s(context.getConf()):
                context.cancelAllJobs()


def _executors(context: SparkContext) -> int:
    members: int = context._jsc.sc().getExecutorMemoryStatus().size()
    return members - 1  # the driver


def wait_s(settings: Mapping[str, str] | SparkConf) -> float:
    wanted = settings.get(WAIT, _WAIT_S)
    try:
        return float(wanted)
    except ValueError:
        raise UsageError(f"{WAIT}={wanted!r} is not a number of seconds") from None


def _alone(context: SparkContext) -> str:
    conf = context.getConf()
    memory, here = conf.get("spark.executor.memory", "1g"), conf.get("spark.driver.host")
    return (
        f"{context.master} has had no executor for us for {wait_s(conf):g} s: does its web "
        f"page show workers with a core and {memory} of memory to spare, and can they reach this "
        f"machine at {here}? ({WAIT} says how long to wait)"
    )


def _worker(words: str, log: Path | None) -> str:
    """Who a failed task ran on: as its words say, or else the last one that Spark's log names."""
    logged = log.read_text(errors="replace") if log is not None and log.exists() else ""
    for text in (words, logged):
        if found := re.findall(r"\(TID \d+\) \((\S+) executor (\w+)\)", text):
            host, executor = found[-1]
            return "this machine" if executor == "driver" else f"worker {host}"
    return "a worker"
