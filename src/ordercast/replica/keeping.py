"""What a replica keeps on disk: the generation that it is in, its state there, and the journal.

    lock                            one process at a time
    life                            which life this member is, from before it has a seat
    generation-0000000003/roll      who the members are
    generation-0000000003/state     a checkpoint
    generation-0000000003/journal/  what has come since, and what this member has said

A generation is made aside and takes its name at once, before the member says anything in it; each
one before it goes when it is left. So the newest one is where the member has come to.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from ordercast.errors import JournalError, PeerError
from ordercast.replica.checkpoint import Checkpoint, decode, encode
from ordercast.runtime.frames import Roll
from ordercast.runtime.journal.checksum import crc32
from ordercast.runtime.journal.ownership import lock
from ordercast.runtime.journal.segment import SUFFIX
from ordercast.runtime.journal.taken import Taken
from ordercast.runtime.journal.trouble import sentence
from ordercast.runtime.journal.writer import sync_directory

__all__ = ["Keeping", "Kept"]

_PREFIX = "generation-"
_CRC_BYTES = 4


class Kept(Struct, frozen=True):
    """Where a replica goes on."""

    group: str
    me: str
    roll: Roll


class Keeping:
    def __init__(self, directory: Path, *, sync: Literal["write", "disk"]) -> None:
        self.directory = directory
        self.sync: Literal["write", "disk"] = sync
        self._generation = 0
        self._lock_fd = -1
        try:
            self._lock_fd = lock(directory)
        except OSError as error:
            raise sentence(directory, "opened", error) from error

    @property
    def journal(self) -> Path:
        """Of the generation of now."""
        return self._place(self._generation) / "journal"

    def life(self, fresh: str) -> str:
        """The one that is kept; at the first start, `fresh` from now on."""
        path = self.directory / "life"
        if path.exists():
            return self._read(path).decode()
        self._replace(path, fresh.encode())
        return fresh

    def newest(self, *, group: str, me: str) -> tuple[Kept, Checkpoint | None] | None:
        """What is there; None if there is nothing."""
        found = [
            int(path.name.removeprefix(_PREFIX))
            for path in self.directory.glob(f"{_PREFIX}*")
            if path.name.removeprefix(_PREFIX).isdecimal()
        ]
        if not found:
            return None
        self._generation = max(found)
        place = self._place(self._generation)
        kept = self._kept(place / "roll")
        if (kept.group, kept.me) != (group, me):
            raise JournalError(
                f"{self.directory} is what {kept.me!r} of {kept.group!r} has kept, and this is "
                f"{me!r} of {group!r}: give each its own directory"
            )
        checkpoint = self._checkpoint(place / "state")
        for generation in found:
            self.drop(generation)
        return kept, checkpoint

    def begin(self, kept: Kept, checkpoint: Checkpoint | None) -> None:
        """From now on the member is in this generation, whatever happens."""
        self._generation = kept.roll.generation
        aside = self.directory / "next"
        try:
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir()
            self._write(aside / "roll", msgspec.json.encode(kept))
            if checkpoint is not None:
                self._write(aside / "state", encode(checkpoint))
            if self.sync == "disk":
                sync_directory(aside)
            aside.rename(self._place(self._generation))
            if self.sync == "disk":
                sync_directory(self.directory)
        except OSError as error:
            raise sentence(self.directory, "written", error) from error

    def save(self, checkpoint: Checkpoint) -> None:
        """In place of the one before, at once or not at all."""
        self._replace(self._place(self._generation) / "state", encode(checkpoint))

    def drop(self, generation: int) -> None:
        """This one is left, and nobody goes back to it, unless it is the newest. Another older one
        may still be there for those who lag."""
        if generation != self._generation:
            shutil.rmtree(self._place(generation), ignore_errors=True)

    def taken(self) -> int | None:
        """How much the application was handed in this generation; None if it has not begun."""
        path = self.journal / "taken"
        if not any(self.journal.glob(f"*{SUFFIX}")):
            return None
        taken = Taken(path)
        value = taken.value
        taken.close()
        return value

    def close(self) -> None:
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1

    def _place(self, generation: int) -> Path:
        return self.directory / f"{_PREFIX}{generation:010d}"

    def _replace(self, path: Path, data: bytes) -> None:
        aside = path.with_suffix(".new")
        try:
            self._write(aside, data)
            aside.replace(path)
            if self.sync == "disk":
                sync_directory(path.parent)
        except OSError as error:
            raise sentence(path.parent, "written", error) from error

    def _write(self, path: Path, data: bytes) -> None:
        with path.open("wb") as file:
            file.write(crc32(data).to_bytes(_CRC_BYTES, "big"))
            file.write(data)
            file.flush()
            if self.sync == "disk":
                os.fsync(file.fileno())

    def _read(self, path: Path) -> bytes:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise sentence(path, "read", error) from error
        data = content[_CRC_BYTES:]
        if content[:_CRC_BYTES] != crc32(data).to_bytes(_CRC_BYTES, "big"):
            raise self._damaged(path, "its checksum does not fit")
        return data

    def _kept(self, path: Path) -> Kept:
        try:
            return msgspec.json.decode(self._read(path), type=Kept)
        except msgspec.DecodeError as error:
            raise self._damaged(path, str(error)) from None

    def _checkpoint(self, path: Path) -> Checkpoint | None:
        if not path.exists():
            return None
        try:
            return decode(self._read(path))
        except PeerError as error:
            raise self._damaged(path, str(error)) from None

    def _damaged(self, path: Path, why: str) -> JournalError:
        return JournalError(
            f"{path} is damaged ({why}): remove the directory {self.directory} and start this "
            "replica again; it joins anew, and gets the state from the others"
        )
