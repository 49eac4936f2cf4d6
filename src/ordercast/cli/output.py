"""stdout, and who reads it: a terminal of some width, a file, or a pipe that is closed early."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from rich.console import Console

__all__ = ["ReaderGoneError", "answering", "console"]

PIPED_COLUMNS = 140


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


class _Console(Console):
    def on_broken_pipe(self) -> NoReturn:
        """rich itself would end with exit code 1, which means violated."""
        raise BrokenPipeError


def console(*, to_stderr: bool = False, piped_columns: int = PIPED_COLUMNS) -> Console:
    """As wide as the terminal, or as COLUMNS says, or wide enough for sentences."""
    stream = sys.stderr if to_stderr else sys.stdout
    known = stream.isatty() or os.environ.get("COLUMNS", "").isdecimal()
    return _Console(highlight=False, width=None if known else piped_columns, stderr=to_stderr)
