"""The JVM that Spark runs in: started so that it can be ended at any moment, and is.

pyspark hands its JVM over only once that runs, so whoever interrupts the start leaves one behind;
and a signal in the middle of a call makes the bridge complain at length, or raise something else.
So a signal ends the JVM first, and what comes of that is not told.
"""

from __future__ import annotations

import atexit
import logging
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ordercast.pipeline.scratch import remove_scratch

if TYPE_CHECKING:
    from pyspark import SparkConf

__all__ = [
    "close_jvm",
    "deferred",
    "forsake_jvm",
    "interrupted",
    "interruptible",
    "launch_jvm",
    "scratches",
    "why_lost",
]

scratches: list[Path] = []
"""The directories to remove once the JVM that writes to them is gone."""
_LAST_BREATH_S = 0.5
"""A connection may end a moment before the process does whose it was."""
_launched: list[_Jvm] = []
_came: list[int] = []
"""The signals that have ended it."""


class _Jvm(subprocess.Popen[bytes]):
    """Known from its first moment, and with all that it starts in a session of its own."""

    def __init__(self, command: list[str], **options: Any) -> None:
        _launched.append(self)
        with deferred():
            super().__init__(command, start_new_session=True, **options)

    def end_at_once(self) -> None:
        if getattr(self, "pid", None) is None or self.returncode is not None:
            return
        with suppress(ProcessLookupError):  # not yet in its own session
            os.killpg(self.pid, signal.SIGKILL)
        self.kill()


def launch_jvm(conf: SparkConf, log: BinaryIO | None) -> Any:
    """A gateway to a new JVM; or to the one that an earlier session of this process has left."""
    from pyspark import SparkContext, java_gateway

    if SparkContext._gateway is not None:
        return SparkContext._gateway
    atexit.unregister(_at_exit)
    atexit.register(_at_exit)
    stderr = 2  # even when asked for, Spark's words are no result: they stay off stdout
    streams = {"stdout": stderr} if log is None else {"stdout": log, "stderr": log}
    bridge: Any = java_gateway
    theirs, bridge.Popen = bridge.Popen, _Jvm
    try:
        return bridge.launch_gateway(conf, streams)
    finally:
        bridge.Popen = theirs


def close_jvm(patience_s: float = 10.0) -> None:
    """Ends the JVM; after `patience_s`, by force."""
    from pyspark import SparkContext

    with SparkContext._lock:
        gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
    if gateway is not None:
        gateway.shutdown()
    while _launched:
        process = _launched.pop()
        if process.stdin is not None:
            process.stdin.close()  # the JVM ends when its standard input does
        if gateway is None:  # which one that is only starting does not look at
            process.end_at_once()
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            process.end_at_once()
            process.wait()
    while scratches:
        remove_scratch(scratches.pop())


def _at_exit() -> None:
    """A program that has not stopped its session ends as quietly as one that has."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is not None and all(process.poll() is None for process in _launched):
        context.stop()
    close_jvm()


def why_lost() -> str | None:
    """How the JVM was ended, if something else than this process did so: such as the system, for
    want of memory. Then there is nobody to ask what went wrong."""
    for process in [] if interrupted() else _launched:
        with suppress(subprocess.TimeoutExpired):
            code = process.wait(_LAST_BREATH_S)
            number = -code if code < 0 else code - 128  # its own way to tell of a signal
            with suppress(ValueError):
                return signal.Signals(number).name
    return None


def forsake_jvm() -> None:
    """There is none any more: nothing may be asked of it, nor complain."""
    _abandon()


def interrupted() -> bool:
    """Was the JVM ended by a signal?"""
    return bool(_came)


def _is_news(record: logging.LogRecord) -> bool:
    """The bridge logs some errors with a traceback, as when the JVM is gone, and raises them, too:
    whoever gets them says what is wrong."""
    return record.msg != "Exception while sending command."


@contextmanager
def interruptible() -> Iterator[Callable[[], None]]:
    """Within it, Ctrl-C ends the JVM before it is heard; so does SIGTERM, where someone listens.

    Yields what to call once there is a SparkContext, which takes Ctrl-C for itself.
    """
    _came.clear()
    theirs = _listeners()
    quiet = logging.root.manager.disable

    def end(number: int, frame: object) -> None:
        _came.append(number)
        logging.disable(logging.CRITICAL)
        _abandon()
        theirs[number](number, frame)

    def listen() -> None:
        for one in theirs:
            signal.signal(one, end)

    listen()
    logging.root.addFilter(_is_news)
    try:
        yield listen
    except Exception:
        if not _came:
            raise
    finally:
        logging.root.removeFilter(_is_news)
        for one, who in theirs.items():
            if signal.getsignal(one) is end:
                signal.signal(one, who)
        if _came:
            logging.disable(quiet)
    if _came:  # whatever the bridge has made of it
        theirs[_came[0]](_came[0], None)


@contextmanager
def deferred() -> Iterator[None]:
    """Signals wait until the end of the block: in the middle of a fork, Python would drop what a
    listener raises."""
    theirs, came = _listeners(), []
    for one in theirs:
        signal.signal(one, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        for one, who in theirs.items():
            signal.signal(one, who)
        for number in came:
            signal.raise_signal(number)


def _listeners() -> dict[int, Any]:
    """Who hears of a signal that ends us; only the main thread can ask, or listen."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    heard = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    return {one: who for one, who in heard.items() if callable(who)}


def _abandon() -> None:
    """Ends the JVM at once. What pyspark still has of it must not be asked, nor complain."""
    from pyspark import SparkContext

    for process in _launched:
        process.end_at_once()
    if (context := SparkContext._active_spark_context) is not None:
        context._jsc = None
        if (server := getattr(context, "_accumulatorServer", None)) is not None:
            server.handle_error = lambda *_: None
