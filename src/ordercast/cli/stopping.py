"""A verb that runs until it is asked to end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["stoppable"]


@contextmanager
def stoppable(stopped: threading.Event | None = None) -> Iterator[threading.Event]:
    """Ctrl-C and a supervisor's SIGTERM ask for an end; a second one does not ask.

    Spark takes Ctrl-C for itself when it starts: enter this once it has.
    """
    stopped = stopped or threading.Event()

    def stop(number: int, frame: object) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt
        stopped.set()

    before = {one: signal.signal(one, stop) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopped
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
