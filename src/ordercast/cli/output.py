"""Where results go: a stdout that may be closed early, a page that must be possible to write."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ordercast.errors import UsageError

__all__ = ["ReaderGoneError", "answering", "refuse_output"]


class ReaderGoneError(BrokenPipeError):
    """Nobody reads our output any more, and the exit code was known already."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code


@contextmanager
def answering(code: int) -> Iterator[None]:
    """While the answer is printed: a reader that has seen enough of it (`| head`) does not change
    the exit code."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise ReaderGoneError(code) from None


def refuse_output(page: Path) -> None:
    """What cannot be written is told before anything is judged, which takes long."""
    if page.is_dir():
        raise UsageError(f"-o {page} is a directory: name a file, such as {page / 'report.html'}")
    if not page.parent.is_dir():
        raise UsageError(f"-o {page}: there is no directory {page.parent}: make it first")
