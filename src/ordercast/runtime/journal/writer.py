"""One file of the journal being written. Errors of the system come out as they are."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from ordercast.runtime.journal.segment import END, Keys, file_head, name_of, record_head

__all__ = ["BATCH_BYTES_MAX", "SegmentWriter", "sync_directory", "sync_file"]

BATCH_BYTES_MAX = 2**32 - 1
AHEAD_BYTES = 4 << 20
"""So much is zeroed at a time where every batch is synced: a sync that finds the length of the
file unchanged has less to do."""

sync_file = getattr(os, "fdatasync", os.fsync)


class SegmentWriter:
    def __init__(self, path: Path, keys: Keys, end: int, *, ahead: bool) -> None:
        """Go on with a file that ends there; whatever stands behind is cut off."""
        self.path = path
        self.end = end
        self._keys = keys
        self._fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._ahead = ahead
        found = os.fstat(self._fd)
        self._file = (found.st_dev, found.st_ino)
        if found.st_size != end:
            os.ftruncate(self._fd, end)
            os.fsync(self._fd)
        self._zeroed = end
        os.lseek(self._fd, end, os.SEEK_SET)

    @classmethod
    def create(
        cls,
        directory: Path,
        number: int,
        snapshot: bytes,
        *,
        identity: Mapping[str, str],
        previous_end: int,
        ahead: bool,
    ) -> SegmentWriter:
        """A new file: on the disk with its snapshot before it gets its name."""
        path = directory / name_of(number)
        head = file_head(identity, number, previous_end)
        fresh = path.with_suffix(".new")
        fresh.write_bytes(head)
        writer = cls(fresh, Keys.of(head), len(head), ahead=False)
        try:
            writer.write([record_head(len(snapshot)), snapshot])
            os.fsync(writer._fd)
            fresh.rename(path)
            sync_directory(directory)
        except BaseException:
            writer.close()
            raise
        writer.path = path
        writer._ahead = ahead
        writer._zeroed = writer.end
        return writer

    def write(self, parts: Sequence[bytes]) -> None:
        """One batch. What an error leaves of it in the file is for the next reader to cut off."""
        body = b"".join(parts)
        if len(body) > BATCH_BYTES_MAX:
            raise OSError(errno.EFBIG, f"{len(body)} bytes are too many for one commit")
        head = self._keys.batch_head(body, self.end)
        length = len(head) + len(body) + len(END)
        if self._ahead and self.end + length > self._zeroed:
            self._zero(self.end + length)
        written = os.writev(self._fd, (head, body, END))
        if written != length:
            # A full disk says so when it is asked for the rest.
            rest = memoryview(head + body + END)
            while written < length:
                written += os.write(self._fd, rest[written:])
        self.end += length

    def sync(self) -> None:
        sync_file(self._fd)

    @property
    def lost(self) -> bool:
        """Whether what is written goes to a file that has lost its name, and nobody will find."""
        try:
            found = self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:  # whatever it is, the next write knows better
            return False
        return (found.st_dev, found.st_ino) != self._file

    def finish(self) -> None:
        """The last batch is written: take back what was zeroed ahead."""
        if self._zeroed > self.end:
            os.ftruncate(self._fd, self.end)

    def close(self) -> None:
        os.close(self._fd)

    def _zero(self, least: int) -> None:
        zeros = memoryview(bytes(least - self._zeroed + AHEAD_BYTES))
        done = 0
        while done < len(zeros):
            done += os.pwrite(self._fd, zeros[done:], self._zeroed + done)
        self._zeroed += done


def sync_directory(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
