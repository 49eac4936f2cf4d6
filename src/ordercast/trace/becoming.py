"""A directory that appears when it is whole."""

from __future__ import annotations

import glob
import os
import shutil
from contextlib import suppress
from pathlib import Path

from ordercast.errors import TraceError
from ordercast.trace.writing import move_to, require_free

__all__ = ["Becoming"]


class Becoming:
    """Holds a place beside a new directory until that is there. Whatever happens, `abandon` it."""

    def __init__(self, directory: Path) -> None:
        require_free(directory)
        self._directory = directory
        self.scratch = directory.with_name(f".{directory.name}.{os.getpid()}")
        """Nobody sees it: it, or what is in it, becomes the directory at the end, or goes away."""
        try:
            self.scratch.parent.mkdir(parents=True, exist_ok=True)
            _sweep(directory)
            self.scratch.mkdir()
            self._lock = _locked(self.scratch)
        except OSError as error:
            raise TraceError(f"{directory}: cannot be written: {error.strerror}") from None

    def appear(self, whole: Path) -> None:
        move_to(self._directory, whole)

    def abandon(self) -> None:
        shutil.rmtree(self.scratch, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _sweep(directory: Path) -> None:
    """Removes what commands that were killed have left beside it. One that goes on
    has its process here, or, on another machine, its lock."""
    for left in directory.parent.glob(f".{glob.escape(directory.name)}.*"):
        number = left.name.rpartition(".")[2]
        if not (number.isdecimal() and left.is_dir()) or _runs(int(number)):
            continue
        if (lock := _locked(left)) is not None:
            shutil.rmtree(left, ignore_errors=True)
            os.close(lock)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True  # it is somebody else's, or none that could be asked after
    return True


def _locked(directory: Path) -> int | None:
    """The lock on it, for as long as it is open; None if that is not to be had."""
    with suppress(ImportError, OSError):
        import fcntl

        lock = os.open(directory, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            return None
        return lock
    return None
