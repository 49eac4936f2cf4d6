"""Whose directory this is: one process at a time, and always the same member."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from pathlib import Path

from ordercast.errors import JournalError
from ordercast.runtime.journal.writer import sync_directory

__all__ = ["compare", "lock", "make"]


def lock(directory: Path) -> int:
    """A file that is ours until it is closed or we die. A child made by fork alone inherits it."""
    make(directory)
    fd = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.pread(fd, 20, 0).decode("ascii", "replace").strip() or "unknown"
        os.close(fd)
        raise JournalError(
            f"the journal in {directory} is in use by another process (pid {owner}): a member "
            "runs once; stop the other one, or give this one its own directory"
        ) from None
    os.truncate(fd, 0)
    os.pwrite(fd, b"%d\n" % os.getpid(), 0)
    return fd


def make(directory: Path) -> None:
    """If there is none yet."""
    fresh = not directory.exists()
    directory.mkdir(parents=True, exist_ok=True)
    if fresh:
        sync_directory(directory.parent)


def compare(directory: Path, found: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    for field in sorted(found.keys() | wanted.keys()):
        if found.get(field) != wanted.get(field):
            raise JournalError(
                f"the journal in {directory} was written with {field} = {found.get(field)!r}, and "
                f"this member has {field} = {wanted.get(field)!r}: give it a directory of its own, "
                "or the settings that the journal was written with"
            )
