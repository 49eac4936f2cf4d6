"""One file of the journal being written. Errors of the system come out as they are."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from ordercast.runtime.journal.segment import Keys, file_head, name_of, record_head

__all__ = ["BATCH_BYTES_MAX", "SegmentWriter", "sync_directory", "sync_file"]

BATCH_BYTES_MAX = 2**32 - 1
COPIED_BYTES_MAX = 2**15
"""A larger batch is written from where its parts are: to copy them would take longer."""
PARTS_MAX = 1000
"""So many the system takes at once, and two more."""
AHEAD_BYTES = 4 << 20
"""So much is zeroed at a time where every batch is synced: a sync that finds the length of the
file unchanged has less to do."""

sync_file = getattr(os, "fdatasync", os.fsync)


class SegmentWriter:
    def __init__(
        self, path: Path, keys: Keys, end: int, *, ahead: bool, keep: bool = False
    ) -> None:
        """Go on with a file that ends there; what stands behind is cut off, or kept to be written
        over."""
        self.path = path
        self.end = end
        self._keys = keys
        self._fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._ahead = ahead
        found = os.fstat(self._fd)
        self._file = (found.st_dev, found.st_ino)
        if found.st_size != end and not keep:
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
        over: Path | None = None,
    ) -> SegmentWriter:
        """A file with its snapshot, before it gets its name. A new one is on the disk by then; what
        is written `over` an older file is not: that would take as long as all that it still has to
        write of the older one."""
        path = directory / name_of(number)
        head = file_head(identity, number, previous_end, over=over is not None)
        fresh = path.with_suffix(".new")
        if over is None:
            fresh.write_bytes(head)
        else:
            over.rename(fresh)
            with fresh.open("r+b") as file:
                file.write(head)
        writer = cls(fresh, Keys.of(head), len(head), ahead=False, keep=over is not None)
        try:
            writer.write([record_head(len(snapshot)), snapshot])
            if over is None:
                os.fsync(writer._fd)
            fresh.rename(path)
            if over is None:
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
        size = sum(map(len, parts))
        if size > BATCH_BYTES_MAX:
            raise OSError(errno.EFBIG, f"{size} bytes are too many for one commit")
        if size < COPIED_BYTES_MAX or len(parts) > PARTS_MAX:
            parts = (b"".join(parts),)
        keys = self._keys
        end = self.end + keys.bytes_more + size
        last = keys.batch_end(end - keys.end_bytes)
        whole = (keys.batch_head(parts, size, self.end), *parts, last)
        if self._ahead and end > self._zeroed:
            self._zero(end)
        written = os.writev(self._fd, whole)
        if written != end - self.end:
            # A full disk says so when it is asked for the rest.
            rest = memoryview(b"".join(whole))[written:]
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        self.end = end

    def seal(self) -> None:
        """A kill may have left all of the last batch but its end. From now on others rely on it: if
        it changes, it must not look like one that was never finished."""
        start = self.end - self._keys.end_bytes
        os.pwrite(self._fd, self._keys.batch_end(start), start)

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
        """The last batch is written: take back what was zeroed ahead, or is left of another."""
        if self._zeroed > self.end or self._keys.over:
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
