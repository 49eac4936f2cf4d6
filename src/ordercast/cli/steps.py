"""Long work shows that it is going on."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ordercast.cli.say import say_aside
from ordercast.readable import readable

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["Steps", "steps"]

TELL_S = 10.0
"""Where nothing can move, a line tells how far it is once in so many seconds."""


class Steps:
    """Says what is going on: a moving bar on a terminal, one line per step elsewhere."""

    def __init__(self, bar: Progress | None) -> None:
        self._bar = bar
        self._task = None if bar is None else bar.add_task("", total=None)
        self._told_at = time.monotonic()

    def begin(self, what: str, *, total: int | None = None) -> None:
        if self._bar is None or self._task is None:
            say_aside(f"{what} …")
        else:
            self._bar.reset(self._task, description=readable(what), total=total)

    def advance_to(self, done: int) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done)

    def measure(self, done: int, total: int) -> None:
        """So much of so much, both of which may change; elsewhere a line now and then."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, total=total)
        elif time.monotonic() - self._told_at > TELL_S:
            self._told_at = time.monotonic()
            say_aside(f"… {done} of {total} tasks")

    def note(self, what: str) -> None:
        """Something has happened meanwhile."""
        if self._bar is None:
            say_aside(what)
        else:
            self._bar.console.print(readable(what), markup=False, highlight=False, emoji=False)


@contextmanager
def steps() -> Iterator[Steps]:
    if not sys.stderr.isatty():
        yield Steps(None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        yield Steps(bar)
