"""A directory for what Spark keeps while it runs.

It goes when the session does. What a process that was killed has left behind, the next one removes:
each holds a lock on its own, which the system takes away from whoever is gone.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import IO

__all__ = ["make_scratch", "remove_scratch"]

_PREFIX = "ordercast-spark-"
_held: dict[Path, IO[str]] = {}
"""The locks on our own."""


def make_scratch() -> Path:
    for other in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        if _forsaken(other):
            shutil.rmtree(other, ignore_errors=True)
    scratch = Path(tempfile.mkdtemp(prefix=_PREFIX))
    _held[scratch] = (scratch / "lock").open("w")
    _try_lock(_held[scratch])
    return scratch


def remove_scratch(scratch: Path) -> None:
    shutil.rmtree(scratch, ignore_errors=True)
    if (lock := _held.pop(scratch, None)) is not None:
        lock.close()


def _forsaken(directory: Path) -> bool:
    try:
        with (directory / "lock").open("r+") as lock:
            return _try_lock(lock)
    except OSError:  # somebody else's, or one that is just being made
        return False


def _try_lock(file: IO[str]) -> bool:
    """Whether nobody holds it; if so, we do."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True
