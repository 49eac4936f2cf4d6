"""When the disk fails a journal: the first error is the last.

What of a failed write or sync is on the disk is unknown, and a later sync that succeeds would not
make it good.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ordercast.errors import JournalError

__all__ = ["Trouble", "sentence"]

logger = logging.getLogger(__name__)


class Trouble:
    """`on_failure` is told of errors that nobody is there to be raised at, on the loop."""

    def __init__(self, directory: Path, on_failure: Callable[[JournalError], None] | None) -> None:
        self.error: JournalError | None = None
        """Once set, nothing is written and nothing confirmed any more."""
        self.loop: asyncio.AbstractEventLoop | None = None
        self._directory = directory
        self._on_failure = on_failure

    def check(self) -> None:
        if self.error is not None:
            raise self.error

    @contextmanager
    def guarded(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self.of(error) from error

    def of(self, error: OSError) -> JournalError:
        """It has happened: what to raise."""
        self.error = sentence(self._directory, "written", error)
        return self.error

    def in_thread(self, error: Exception) -> None:
        """It has happened where nobody waits for it."""
        if not isinstance(error, JournalError):
            error = JournalError(f"the journal in {self._directory} failed: {error!r}")
        self.error = error
        logger.error("%s", error)
        if self.loop is not None and self._on_failure is not None:
            try:
                self.loop.call_soon_threadsafe(self._on_failure, error)
            except RuntimeError:  # the loop is closed
                return


def sentence(directory: Path, what: str, error: OSError) -> JournalError:
    where = "" if error.filename is None else f"{error.filename}: "
    return JournalError(
        f"the journal in {directory} cannot be {what}: {where}{error.strerror}; make sure that "
        "the disk is well and has room, then start the member again"
    )
