"""How a verb ends before it is done: by Ctrl-C, a supervisor's SIGTERM, or a closed terminal."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Terminated", "stoppable", "terminable"]


class Terminated(KeyboardInterrupt):
    """By SIGTERM: everything that cleans up after Ctrl-C does so now as well."""


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM raises `Terminated`, so that no process or file is left behind. A terminal that is
    closed asks for an end in the same way: whoever hears SIGTERM at that moment hears SIGHUP too,
    unless it was to be ignored from the start, as by nohup."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: object) -> None:
        raise Terminated

    before = {signal.SIGTERM: signal.signal(signal.SIGTERM, end)}
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        before[signal.SIGHUP] = signal.signal(signal.SIGHUP, _heard_as_sigterm)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _heard_as_sigterm(number: int, frame: object) -> None:
    signal.raise_signal(signal.SIGTERM)


@contextmanager
def stoppable(stopped: threading.Event | None = None) -> Iterator[threading.Event]:
    """Ctrl-C and a supervisor's SIGTERM ask for an end; a second one does not ask.

    Spark takes Ctrl-C for itself when it starts: enter this once it has.
    """
    stopped = stopped or threading.Event()

    def stop(number: int, frame: object) -> None:
        if not stopped.is_set():
            stopped.set()
        elif callable(handler := before[number]):
            handler(number, frame)
        else:
            raise KeyboardInterrupt

    before: dict[int, Any] = {
        one: signal.signal(one, stop) for one in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield stopped
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
