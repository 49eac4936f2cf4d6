"""Whose directory this is: one process at a time, and always the same member."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from pathlib import Path

from ordercast.errors import JournalError
from ordercast.runtime.journal.writer import sync_directory

__all__ = ["compare", "lock", "make"]

CHARTER = "charter"
"""What all members agree on, such as `fifo over relay, 3 members (1a2b3c4d)`."""


def lock(directory: Path) -> int:
    """A file that is ours until it is closed or we die. A child made by fork alone inherits it."""
    make(directory)
    fd = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.pread(fd, 20, 0).decode("ascii", "replace").strip() or "unknown"
        os.close(fd)
        who = "this process" if owner == str(os.getpid()) else f"another process (pid {owner})"
        raise JournalError(
            f"the journal in {directory} is in use by {who}: a member runs once; stop the other "
            "one, or give this one its own directory"
        ) from None
    os.truncate(fd, 0)
    os.pwrite(fd, b"%d\n" % os.getpid(), 0)
    return fd


def make(directory: Path) -> None:
    """If there is none yet: for this user alone, since all messages are in it. One that was made
    beforehand stays as it is, for a group that may read it, say."""
    fresh = [each for each in (directory, *directory.parents) if not each.exists()]
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for each in fresh:
        sync_directory(each.parent)


def compare(directory: Path, found: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    """The charter comes last: of another member's journal it says the least."""
    for field in sorted(found.keys() | wanted.keys(), key=lambda name: (name == CHARTER, name)):
        if found.get(field) != wanted.get(field):
            if field == CHARTER and field in found and field in wanted:
                raise _another_charter(directory, found[field], wanted[field])
            raise JournalError(
                f"the journal in {directory} was written with {field} = {found.get(field)!r}, and "
                f"this member has {field} = {wanted.get(field)!r}: give it a directory of its own, "
                "or the settings that the journal was written with"
            )


def _another_charter(directory: Path, found: str, wanted: str) -> JournalError:
    """In the words of whoever has to mend it."""
    (was, were), (now, are) = (text.partition(", ")[::2] for text in (found, wanted))
    if was != now:
        ordering, _, dissemination = was.partition(" over ")
        return JournalError(
            f"the journal in {directory} is of {was}, and this member was started with {now}: go "
            f"on with order {ordering!r} and reliability {dissemination!r}, or start the whole "
            "group afresh, with new journals"
        )
    return JournalError(
        f"the journal in {directory} is of a group of {were}, and this member was started with "
        f"{are}, where the brackets stand for their names: start it with the members that the "
        "journal is of, or the whole group afresh, with new journals"
    )
