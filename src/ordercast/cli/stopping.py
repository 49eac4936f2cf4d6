"""How a verb ends before it is done: by Ctrl-C, a supervisor's SIGTERM, or a closed terminal."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Terminated", "stoppable", "terminable"]


_AGAIN_S = 0.05


class Terminated(KeyboardInterrupt):
    """By SIGTERM or SIGHUP: everything that cleans up after Ctrl-C does so now as well."""

    def __init__(self, by: int) -> None:
        super().__init__()
        self.by = by


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM raises `Terminated`, so that no process or file is left behind. A terminal that is
    closed asks for an end in the same way: whoever hears SIGTERM at that moment hears SIGHUP too,
    unless it was to be ignored from the start, as by nohup."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    by = signal.SIGTERM

    def end(number: int, frame: object) -> None:
        raise Terminated(by)

    def hear_as_sigterm(number: int, frame: object) -> None:
        nonlocal by
        by = signal.SIGHUP
        signal.raise_signal(signal.SIGTERM)

    before = {signal.SIGTERM: signal.signal(signal.SIGTERM, end)}
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        before[signal.SIGHUP] = signal.signal(signal.SIGHUP, hear_as_sigterm)
    try:
        with _never_lost():
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _never_lost() -> Iterator[None]:
    """What a signal raises while something is deleted (`__del__`), Python drops: then the signal
    is sent once more, a moment later, or at the latest at the end of the block.

    By the clock's signal, and no thread: whatever was interrupted may hold a lock that a thread
    takes to start.
    """
    theirs, clock = sys.unraisablehook, signal.getsignal(signal.SIGALRM)
    lost: list[int] = []

    def hear(dropped: sys.UnraisableHookArgs) -> None:
        here = threading.get_ident() == threading.main_thread().ident
        if not (here and issubclass(dropped.exc_type, KeyboardInterrupt)):
            theirs(dropped)
            return
        by_term = issubclass(dropped.exc_type, Terminated)
        lost[:] = [signal.SIGTERM if by_term else signal.SIGINT]
        signal.signal(signal.SIGALRM, again)
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)

    def again(number: int, frame: object) -> None:
        signal.signal(signal.SIGALRM, clock)
        signal.raise_signal(lost.pop())

    sys.unraisablehook = hear
    try:
        yield
    finally:
        sys.unraisablehook = theirs
        if lost:
            signal.setitimer(signal.ITIMER_REAL, 0)
            again(signal.SIGALRM, None)


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
