"""The writer of a member's log: it goes on where the life before has ended."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Self

from ordercast.errors import TraceError
from ordercast.trace.manifest import Manifest
from ordercast.trace.spans import SUFFIX, Head, Span, encode, log_files, read_file, read_log

__all__ = ["SpanLog"]

ROTATE_BYTES = 256 * 2**20

logger = logging.getLogger(__name__)


class SpanLog:
    """Writes one process's log, `NAME-0001.spans` and so on; goes on where an old one ends."""

    def __init__(
        self,
        directory: Path,
        name: str,
        *,
        run: str,
        process: int,
        manifest: Manifest | None = None,
        rotate_bytes: int = ROTATE_BYTES,
    ) -> None:
        self._run = run
        self._manifest = manifest
        self._process = process
        self._rotate_bytes = rotate_bytes
        self.directory = directory.absolute()  # a program may go elsewhere
        self._name = name
        self._file = -1
        self._position = 0
        self._damage: TraceError | None = None
        self._synced = 1
        """The first file that may have something that is not on the disk."""
        directory.mkdir(parents=True, exist_ok=True)
        files = log_files(directory, name)
        if files:
            self._go_on(files)
        else:
            self._begin(1)

    @property
    def position(self) -> int:
        """Of the next row. Raises a `TraceError` as long as the end of the log is damaged."""
        if self._damage is not None:
            raise self._damage
        return self._position

    def mend(self) -> None:
        """Cut the last file off where it is damaged, as by a power loss: for a member that comes
        back from its journal, which has the rows that stood there."""
        if self._damage is None:
            return
        logger.warning(
            "%s; the file is cut off at byte %d, and the rest comes from the journal",
            *(self._damage, self._bytes),
        )
        try:
            if self._bytes:
                self._open()
            else:
                self._path.unlink()
                self._begin(self._number)
        except OSError as error:
            raise self._trouble(error) from error
        self._damage = None

    def look(self) -> None:
        """Is what is written still in its place? Raises a `TraceError` if it was removed or moved.
        It costs a look into the directory: now and then."""
        if self._file < 0:
            return
        try:
            found = os.stat(self._path)
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError:  # whatever it is, the next write knows better
            return
        else:
            if os.path.samestat(found, os.fstat(self._file)):
                return
        raise TraceError(
            f"the trace in {self.directory} is lost: {self._path} was removed or moved while the "
            "member was writing to it; start the member again, with another trace directory, or "
            "with its journal once the file is back"
        )

    def write(self, spans: Iterable[Span]) -> None:
        """All in one go: in the kernel when this returns, so that nobody can unwrite it."""
        records: list[bytes] = []
        rows = 0
        for span in spans:
            records += encode(span)
            rows += span.count
        self._position = self.position + rows
        data = b"".join(records)
        self._bytes += len(data)
        try:
            self._put(data)
            if self._bytes > self._rotate_bytes:
                self.close()
                self._begin(self._number + 1)
        except OSError as error:
            raise self._trouble(error) from error

    def skip_to(self, position: int) -> None:
        """Rows before this one are lost: a file says so by where it begins, and in its manifest."""
        self.close()
        self._position = position
        if self._manifest is not None:
            self._manifest = replace(self._manifest, complete=False)
        try:
            self._begin(self._number + 1)
        except OSError as error:
            raise self._trouble(error) from error

    def sync(self) -> None:
        """What was written before is on the disk when this returns. Any thread may call it."""
        last = self._number
        try:
            for number in range(self._synced, last + 1):
                with contextlib.suppress(FileNotFoundError):  # it may have been put elsewhere
                    _sync(self._path_of(number))
            if self._synced < last:
                _sync(self.directory)
        except OSError as error:
            raise self._trouble(error) from error
        self._synced = last

    def close(self) -> None:
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self, number: int) -> None:
        """A file has its name when it says whose it is: a killed writer leaves none without."""
        self._number, self._bytes = number, 0
        if self._path.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(self._path))
        fresh = self._path.with_name(f".{self._path.name}.new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
        self._file = os.open(fresh, flags, 0o644)
        line = self._manifest.to_json().decode() if self._manifest is not None else None
        head = Head(self._run, self._process, self._position, line)
        try:
            self._put(b"".join(encode(head)))
            fresh.rename(self._path)
        except OSError as error:
            self.close()
            fresh.unlink(missing_ok=True)
            raise self._trouble(error) from error

    @property
    def _path(self) -> Path:
        """Of the file that is being written."""
        return self._path_of(self._number)

    def _path_of(self, number: int) -> Path:
        return self.directory / f"{self._name}-{number:04}{SUFFIX}"

    def _put(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._file, data) :]

    def _trouble(self, error: OSError) -> TraceError:
        return TraceError(
            f"the trace cannot be written: {self._path}: {error.strerror}; make sure that the disk "
            "is well and has room, then start the member again, with its journal or with another "
            "trace directory"
        )

    def _go_on(self, files: list[Path]) -> None:
        last = files[-1]
        self._number = int(last.stem.rsplit("-", 1)[1])
        head, spans, self._bytes, self._damage = read_file(last)
        if head is None and len(files) > 1:
            head, spans = read_log(files[-2])
        if head is not None:
            if (head.run, head.process) != (self._run, self._process):
                raise TraceError(
                    f"{last}: the log of process {head.process} in run {head.run!r} is here "
                    "already: choose another directory"
                )
            self._position = head.position + sum(span.count for span in spans)
        if self._damage is None:
            self._open()

    def _open(self) -> None:
        """The last file, up to where it is whole."""
        self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND)
        os.ftruncate(self._file, self._bytes)


def _sync(path: Path) -> None:
    """Whoever wrote to it."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
