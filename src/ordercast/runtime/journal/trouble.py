"""When the disk fails a journal: the first error is the last.

What of a failed write or sync is on the disk is unknown, and a later sync that succeeds would not
make it good.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ordercast.errors import JournalError, OrdercastError

__all__ = ["Trouble", "sentence"]

logger = logging.getLogger(__name__)

_NO_DIRECTORY = (errno.EEXIST, errno.ENOTDIR)
_NOT_OURS = (errno.EROFS, errno.EACCES, errno.EPERM)


class Trouble:
    """`on_failure` is told of errors that nobody is there to be raised at, on the loop."""

    def __init__(
        self, directory: Path, on_failure: Callable[[OrdercastError], None] | None
    ) -> None:
        self.error: OrdercastError | None = None
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
        self.error = told = sentence(self._directory, "written", error)
        return told

    def lost(self, path: Path) -> None:
        """What is written now, nobody will find."""
        if self.error is None:
            self.error = JournalError(
                f"the journal in {self._directory} is lost: {path} was removed or moved while the "
                "member was writing to it; put the directory back, or give the member up "
                "(see “A broken journal” in the documentation)"
            )
            if self._on_failure is not None:
                self._on_failure(self.error)

    def in_thread(self, error: Exception) -> None:
        """It has happened where nobody waits for it."""
        if not isinstance(error, OrdercastError):
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
    why = f"{where}{error.strerror}"
    advice = "; make sure that the disk is well and has room, then start the member again"
    if what == "opened":
        if error.errno in _NO_DIRECTORY:
            why, advice = f"{_file_in(directory)} is a file", ": name a directory"
        elif error.errno in _NOT_OURS:
            advice = "; name a directory that this user may write to"
        elif error.errno == errno.ENOENT:
            advice = ": no directory can be made there; name another"
        elif error.errno == errno.EMFILE:
            advice = "; allow this process more of them (ulimit -n)"
    return JournalError(f"the journal in {directory} cannot be {what}: {why}{advice}")


def _file_in(path: Path) -> Path:
    """Which part of a path is a file that should be a directory."""
    return next((part for part in (path, *path.parents) if part.is_file()), path)
