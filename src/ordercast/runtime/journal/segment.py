"""What a file of the journal looks like, read back with suspicion.

    file     magic, version, length; then JSON: identity, number, where the file before ended,
             and a random salt; checksum of all these; then batches
    batch    marker, length, checksum of the body, checksum of these and of the place; the body;
             its end
    body     records, each a length and bytes; the first batch holds one record, the snapshot

A batch is what one commit wrote, and is there as a whole or not at all. Marker and checksums
depend on the salt and on the place in the file, so bytes of another file, or of another place in
this one, never pass for a batch.

A process killed in mid-write leaves a batch without its end. A power loss leaves a batch with
sectors that are still zero, for a new file has nothing but zeros where it was not written. Only the
last batch can be like that, since the next is written when the one before is safe, and nobody was
told that it was safe. So it is cut off, and everything else that does not fit is corruption.

There are two kinds of file. In a *new* one, a batch ends with a byte that is not zero, since only
zeros may follow. One that is written *over* an older segment, as is done where only kills are to be
survived, is followed by what it held before, which may be anything: there, an end is a mark of its
place in this file. Where the batch itself does not fit, it says that all of it was written.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from struct import Struct as Layout
from typing import BinaryIO

import msgspec
from msgspec import Struct

from ordercast.errors import JournalError
from ordercast.runtime.journal.checksum import crc32
from ordercast.runtime.journal.zeros import has_hole, last_used

__all__ = [
    "SUFFIX",
    "Keys",
    "Segment",
    "file_head",
    "name_of",
    "record_head",
]

SUFFIX = ".segment"
MAGIC = b"ordcast\n"
VERSION, VERSION_OVER = 3, 4
"""Of a new file, and of one that is written over another. Also of what the snapshots look like
inside."""
END = b"\xe1"
"""Of a batch in a new file. Not zero, so that zeros at the end of a file are never part of one."""
FILE_HEAD_BYTES_MAX = 2**16

_FILE_HEAD = Layout("<8sII")
_BATCH_HEAD = Layout("<IIII")
_PLACE = Layout("<IIIQ")
_END_OVER = Layout("<II")
_OFFSET = Layout("<Q")
_LENGTH = Layout("<I")

record_head = _LENGTH.pack
_CHANGED = "the last record was written as a whole and has changed"


class _About(Struct, frozen=True):
    """The JSON at the head of a file."""

    identity: dict[str, str]
    number: int
    previous_end: int
    """Where the segment before this one ended; nothing may be missing from it."""
    salt: str


class Keys(Struct, frozen=True):
    """What marks the batches of one file as its own."""

    seed: int
    marker: int
    end_marker: int
    over: bool
    """Whether what follows the last batch may be anything."""

    @classmethod
    def of(cls, file_head: bytes) -> Keys:
        # Without its checksum: with it, the checksum of any head is the same.
        seed = crc32(file_head[: -_LENGTH.size])
        over = _FILE_HEAD.unpack_from(file_head)[1] == VERSION_OVER
        return cls(seed, crc32(b"marker", seed), crc32(b"end", seed), over)

    @property
    def end_bytes(self) -> int:
        return _END_OVER.size if self.over else len(END)

    @property
    def bytes_more(self) -> int:
        """How much longer a batch is than its body."""
        return _BATCH_HEAD.size + self.end_bytes

    def batch_end(self, offset: int) -> bytes:
        """For a batch whose body ends there."""
        if not self.over:
            return END
        return _END_OVER.pack(self.end_marker, crc32(_OFFSET.pack(offset), self.end_marker))

    def batch_head(self, parts: Iterable[bytes], length: int, offset: int) -> bytes:
        """For a body of so many bytes, given in parts."""
        checksum = self.seed
        for part in parts:
            checksum = crc32(part, checksum)
        place = crc32(_PLACE.pack(self.marker, length, checksum, offset), self.seed)
        return _BATCH_HEAD.pack(self.marker, length, checksum, place)

    def read_head(self, head: bytes, offset: int) -> tuple[int, int] | None:
        """Length and checksum of the body, if a batch of this file begins at this offset."""
        if len(head) < _BATCH_HEAD.size:
            return None
        marker, length, checksum, place = _BATCH_HEAD.unpack(head)
        if place != crc32(_PLACE.pack(self.marker, length, checksum, offset), self.seed):
            return None
        return (length, checksum) if marker == self.marker else None


def file_head(
    identity: Mapping[str, str], number: int, previous_end: int, *, over: bool = False
) -> bytes:
    about = msgspec.json.encode(_About(dict(identity), number, previous_end, os.urandom(16).hex()))
    if len(about) > FILE_HEAD_BYTES_MAX:
        raise JournalError(f"an identity of {len(about)} bytes does not fit into a journal")
    version = VERSION_OVER if over else VERSION
    head = _FILE_HEAD.pack(MAGIC, version, len(about)) + about
    return head + _LENGTH.pack(crc32(head))


class Segment:
    """One file of a journal, for reading. Nothing is kept in memory but one batch at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with _reading(path) as file:
            head = self._read_file_head(file)
        self.keys = Keys.of(head)
        self.end = -1
        """Where the last record ends: the segment after this one knows, or `find_end` does."""
        self._start = len(head)

    @property
    def snapshot(self) -> bytes:
        """The state before the first record."""
        with _reading(self.path) as file:
            for body, _ in self._batches(file):
                return body[_LENGTH.size :]
        raise self._corrupt(self._start, "the snapshot does not fit its checksum")

    def records(self) -> Iterator[bytes]:
        """All records after the snapshot, in their order."""
        with _reading(self.path) as file:
            batches = self._batches(file, until=self.end)
            _, reached = next(batches, (b"", self._start))
            for body, reached in batches:  # noqa: B007 (where it stopped is looked at below)
                start = 0
                while start < len(body):
                    start += _LENGTH.size
                    end = start + _LENGTH.unpack_from(body, start - _LENGTH.size)[0]
                    yield body[start:end]
                    start = end
        if reached != self.end:
            raise self._corrupt(reached, "the records from there on are broken or missing")

    def find_end(self) -> int:
        """Set `end` of the newest segment. How many bytes of a torn batch there are behind it."""
        with _reading(self.path) as file:
            self.end = self._start
            for _, self.end in self._batches(file):  # noqa: B020 (only the last one counts)
                pass
            if self.end == self._start:
                raise self._corrupt(self._start, "the snapshot does not fit its checksum")
            if self.keys.over:
                return self._judge_over(file, self.end)
            used = last_used(file)
            if used > self.end:
                self._judge(file, self.end, used)
            return used - self.end

    def _batches(self, file: BinaryIO, until: int | None = None) -> Iterator[tuple[bytes, int]]:
        """Body and end of every batch up to the first that is not as it should be."""
        offset = self._start
        file.seek(offset)
        size = os.fstat(file.fileno()).st_size if until is None else until
        while (found := self.keys.read_head(file.read(_BATCH_HEAD.size), offset)) is not None:
            length, checksum = found
            if offset + self.keys.bytes_more + length > size:
                return
            body = file.read(length)
            end = file.read(self.keys.end_bytes)
            # Written over something else, a body that fits is there, whatever follows it.
            if crc32(body, self.keys.seed) != checksum or not (self.keys.over or end == END):
                return
            offset += _BATCH_HEAD.size + length + len(end)
            yield body, offset
            if offset == until:
                return

    def _judge(self, file: BinaryIO, offset: int, used: int) -> None:
        """Something that is no batch stands at the end: raise, unless it is one cut short."""
        self._check_nothing_follows(file, offset, used)
        file.seek(offset)
        rest = file.read(_BATCH_HEAD.size)
        head = self.keys.read_head(rest, offset)
        if head is None:
            torn = used - offset < _BATCH_HEAD.size or has_hole(rest, offset)
        else:
            end = offset + _BATCH_HEAD.size + head[0] + len(END)
            torn = used < end
            if used == end:
                torn = has_hole(rest + file.read(head[0] + len(END)), offset)
        if not torn:
            raise self._corrupt(offset, _CHANGED)

    def _judge_over(self, file: BinaryIO, offset: int) -> int:
        """No batch stands there: raise, unless that is because none was written to its end. How
        many bytes there are of the one that was begun."""
        size = os.fstat(file.fileno()).st_size
        self._check_nothing_follows(file, offset, size)
        if any(
            file.read(_END_OVER.size) == self.keys.batch_end(place)
            for place in _places(file, _LENGTH.pack(self.keys.end_marker), offset, size)
        ):
            raise self._corrupt(offset, _CHANGED)
        file.seek(offset)
        head = self.keys.read_head(file.read(_BATCH_HEAD.size), offset)
        return 0 if head is None else min(self.keys.bytes_more + head[0], size - offset)

    def _check_nothing_follows(self, file: BinaryIO, offset: int, end: int) -> None:
        """No batch of this file, after one that does not fit."""
        for later in _places(file, _LENGTH.pack(self.keys.marker), offset + 1, end):
            if self.keys.read_head(file.read(_BATCH_HEAD.size), later) is not None:
                raise self._corrupt(offset, f"good records go on at byte {later}")

    def _read_file_head(self, file: BinaryIO) -> bytes:
        head = file.read(_FILE_HEAD.size)
        if len(head) < _FILE_HEAD.size or not head.startswith(MAGIC):
            raise self._corrupt(0, "this is not the beginning of a journal")
        _, version, length = _FILE_HEAD.unpack(head)
        if version not in (VERSION, VERSION_OVER):
            raise JournalError(
                f"{self.path} has format version {version}, and this release of ordercast reads "
                f"versions {VERSION} and {VERSION_OVER}: use the release that wrote it"
            )
        about = file.read(min(length, FILE_HEAD_BYTES_MAX))
        checksum = file.read(_LENGTH.size)
        if checksum != _LENGTH.pack(crc32(head + about)):
            raise self._corrupt(_FILE_HEAD.size, "the head of the file does not fit its checksum")
        known = msgspec.json.decode(about, type=_About)
        self.identity, self.number = known.identity, known.number
        self.previous_end = known.previous_end
        if self.path.name != name_of(self.number):
            raise self._corrupt(0, f"this was {name_of(self.number)} when it was written")
        return head + about + checksum

    def unusable(self, why: str) -> JournalError:
        """Its snapshot fits its checksum, and is no state of a member."""
        return self._corrupt(self._start, why)

    def _corrupt(self, offset: int, why: str) -> JournalError:
        return JournalError(
            f"{self.path} is corrupt at byte {offset}: {why}; restore the directory "
            f"{self.path.parent} from a backup of the same moment, or give the member up "
            "(see “A broken journal” in the documentation)"
        )


def name_of(number: int) -> str:
    return f"{number:010}{SUFFIX}"


def _places(file: BinaryIO, needle: bytes, start: int, end: int) -> Iterator[int]:
    """Where these bytes are between the two; the file is read from there next."""
    while start < end:
        file.seek(start)
        chunk = file.read(min(1 << 20, end - start))
        found = chunk.find(needle)
        if found < 0:
            start += max(1, len(chunk) - len(needle) + 1)
            continue
        start += found
        file.seek(start)
        yield start
        start += 1


@contextmanager
def _reading(path: Path) -> Iterator[BinaryIO]:
    try:
        with path.open("rb", buffering=1 << 18) as file:
            yield file
    except OSError as error:
        raise JournalError(f"{path} cannot be read: {error.strerror}") from error
