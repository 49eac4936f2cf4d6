"""A journal: an append-only log of records in segments, in a directory that one process owns.

    journal = Journal.open(directory, identity={"group": "orders", "member": "a"})
    if journal.recovered is None:
        journal.start(snapshot)
    else:
        restore(journal.recovered.snapshot)
        for record in journal.recovered.records():
            replay(record)
    journal.append(record)
    journal.commit(then)                    # `then` runs when the record is safe
    if journal.full:
        journal.cut(snapshot)

Guarantees  after any crash, everything that a commit confirmed is there, in order, and nothing
            that was not appended; "write" means a crash of the process, "disk" one of the machine.
Costs       "write": one system call a commit. "disk": one write and one sync for all commits
            that arrive while the sync before is running.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Literal

from ordercast.errors import JournalError
from ordercast.runtime.journal.committer import Committer
from ordercast.runtime.journal.ownership import compare, lock
from ordercast.runtime.journal.segment import SUFFIX, Segment, record_head
from ordercast.runtime.journal.taken import Taken
from ordercast.runtime.journal.writer import SegmentWriter

__all__ = ["Journal", "Recovered"]

logger = logging.getLogger(__name__)


SEGMENT_BYTES = 64 * 2**20
KEEP_BYTES = 256 * 2**20


class Recovered(Segment):
    """The newest segment, as it was found."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.repaired_bytes = self.find_end()
        """Of a batch that was being written when the process or the machine died."""


class Journal:
    recovered: Recovered | None
    """None for a new journal, which needs a `start`."""

    def __init__(
        self,
        directory: Path,
        *,
        identity: Mapping[str, str],
        sync: Literal["write", "disk"],
        segment_bytes: int,
        keep_bytes: int,
        on_failure: Callable[[JournalError], None] | None,
    ) -> None:
        self._directory = directory
        self._identity = dict(identity)
        self._segment_bytes, self._keep_bytes = segment_bytes, keep_bytes
        self._on_failure = on_failure
        self._loop: asyncio.AbstractEventLoop | None = None
        self.failure: JournalError | None = None
        """Once set, nothing is written and nothing confirmed any more."""
        self._parts: list[bytes] = []
        self._pending_bytes = 0
        self._filled_bytes = 0
        self.written_bytes = 0
        self.commits = 0
        """Since it was opened."""
        self._writer: SegmentWriter | None = None
        self._taken: Taken | None = None
        self._disk = sync == "disk"
        self._committer: Committer | None = None
        self._number = 0
        self._lock_fd = -1
        try:
            self._lock_fd = lock(directory)
            self._recover()
        except OSError as error:
            self.close()
            raise _sentence(directory, "opened", error) from error
        except BaseException:
            self.close()
            raise
        if self._disk:
            self._committer = Committer(self._write_and_sync, self._failed_in_thread)

    @classmethod
    def open(
        cls,
        directory: Path,
        *,
        identity: Mapping[str, str],
        sync: Literal["write", "disk"] = "write",
        segment_bytes: int = SEGMENT_BYTES,
        keep_bytes: int = KEEP_BYTES,
        on_failure: Callable[[JournalError], None] | None = None,
    ) -> Journal:
        """The journal in this directory, which is made if there is none.

        With "disk", an error shows when the thread meets it: `on_failure` is called on the loop.
        """
        return cls(
            directory,
            identity=identity,
            sync=sync,
            segment_bytes=segment_bytes,
            keep_bytes=keep_bytes,
            on_failure=on_failure,
        )

    def start(self, snapshot: bytes) -> None:
        """The first segment of a new journal."""
        assert self._writer is None, "this journal has begun already"
        self._check()
        with self._guarded():
            Taken.create(self._directory / "taken")
            self._taken = Taken(self._directory / "taken")
            self._begin_segment(1, snapshot, previous_end=0)
        self._number, self._filled_bytes = 1, len(snapshot)

    def append(self, *parts: bytes) -> None:
        """One record, given in parts, which must not change. It is in memory until the commit."""
        length = sum(map(len, parts))
        self._parts.append(record_head(length))
        self._parts += parts
        self._pending_bytes += length

    def commit(self, then: Callable[[], None]) -> None:
        """Write all that was appended. `then` runs when it is safe: now, or later on this loop."""
        if self.failure is not None:
            raise self.failure
        parts, self._parts = self._parts, []
        size, self._pending_bytes = self._pending_bytes, 0
        self._filled_bytes += size
        self.written_bytes += size
        self.commits += bool(parts)
        if self._committer is not None:
            assert self._writer is not None, "a new journal begins with `start`"
            self._loop = asyncio.get_running_loop()
            self._committer.commit(parts, size, then)
            return
        if parts:
            assert self._writer is not None, "a new journal begins with `start`"
            try:
                self._writer.write(parts)
            except OSError as error:
                raise self._fail(error) from error
        then()

    @property
    def directory(self) -> Path:
        return self._directory

    @property
    def segment(self) -> tuple[int, int]:
        """The number of the segment that is being written, and about how full it is, in bytes."""
        return self._number, self._filled_bytes

    @property
    def full(self) -> bool:
        """Time to `cut`: the segment is as large as it should become."""
        return self._filled_bytes + self._pending_bytes >= self._segment_bytes

    def cut(self, snapshot: bytes) -> None:
        """Begin a new segment with the state after everything appended so far.

        With "disk" this happens in the thread, in order with the commits.
        """
        self._check()
        parts, self._parts = self._parts, []
        self._pending_bytes, self._filled_bytes = 0, len(snapshot)
        self._number += 1
        number = self._number

        def step() -> None:
            assert self._writer is not None, "a new journal begins with `start`"
            with self._guarded():
                self._next_segment(number, parts, snapshot)

        if self._committer is None:
            step()
        else:
            self._loop = asyncio.get_running_loop()
            self._committer.call(step)

    @property
    def taken(self) -> int:
        """The position up to which the application has taken deliveries. It only grows.

        It survives a kill by itself. After a power loss it may be an older one, or, with "write",
        one beyond the records that are left: see `forget_beyond`.
        """
        return 0 if self._taken is None else self._taken.value

    def mark(self, position: int) -> None:
        """The application has taken everything up to there; less than before means nothing."""
        assert self._taken is not None, "a new journal begins with `start`"
        self._taken.mark(position)

    def ticks(self, before: int, count: int) -> memoryview:
        """For whoever takes `count` messages after a position one by one: a 1 stored at the place
        of one, from 0, says that it is taken. Until the next call of this or of `mark`."""
        assert self._taken is not None, "a new journal begins with `start`"
        return self._taken.begin(before, count)

    def forget_beyond(self, position: int) -> None:
        """If more was taken than is known to be delivered, it was another life's: start there."""
        if self._taken is not None and self._taken.value > position:
            logger.warning(
                "%s: %d messages were taken and %d are known: the rest is delivered anew",
                *(self._directory, self._taken.value, position),
            )
            self._taken.lower(position)

    def history(self) -> Iterator[Segment]:
        """The older segments that are kept, oldest first, each to be read whole."""
        segments = [Segment(path) for path in self._paths()]
        for older, newer in pairwise(segments):
            if newer.number != older.number + 1:
                raise JournalError(
                    f"{older.path.name} in {self._directory} is followed by {newer.path.name}: "
                    "restore what is missing from a backup, or remove what is older"
                )
            older.end = newer.previous_end
            yield older

    def close(self) -> None:
        """Waits for the commits; what was appended and never committed is dropped."""
        if self._committer is not None:
            self._committer.close()
            self._committer = None
        if self._writer is not None:
            if self.failure is None:
                with self._guarded():
                    self._writer.finish()
            self._writer.close()
            self._writer = None
        if self._taken is not None:
            self._taken.close()
            self._taken = None
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1

    def _recover(self) -> None:
        for unfinished in self._directory.glob("*.new"):
            unfinished.unlink()
        paths = self._paths()
        if not paths:
            self.recovered = None
            return
        found = self.recovered = Recovered(paths[-1])
        compare(self._directory, found.identity, self._identity)
        self._taken = Taken(self._directory / "taken")
        if found.repaired_bytes:
            logger.warning(
                "%s: cut off %d bytes at byte %d, of a commit that a crash interrupted",
                *(found.path, found.repaired_bytes, found.end),
            )
        self._writer = SegmentWriter(found.path, found.keys, found.end, ahead=self._disk)
        self._number, self._filled_bytes = found.number, found.end

    def _paths(self) -> list[Path]:
        return sorted(self._directory.glob(f"*{SUFFIX}"))

    def _write_and_sync(self, parts: list[bytes]) -> None:
        assert self._writer is not None
        with self._guarded():
            self._writer.write(parts)
            self._writer.sync()

    def _next_segment(self, number: int, parts: list[bytes], snapshot: bytes) -> None:
        old = self._writer
        assert old is not None
        if parts:
            old.write(parts)
        old.finish()
        if self._disk:
            old.sync()
        if self._taken is not None:
            self._taken.sync()
        self._begin_segment(number, snapshot, previous_end=old.end)
        old.close()
        paths = self._paths()[:-1]
        kept_bytes = sum(path.stat().st_size for path in paths)
        for path in paths:
            if kept_bytes > self._keep_bytes:
                kept_bytes -= path.stat().st_size
                path.unlink()

    def _begin_segment(self, number: int, snapshot: bytes, *, previous_end: int) -> None:
        self._writer = SegmentWriter.create(
            self._directory,
            number,
            snapshot,
            identity=self._identity,
            previous_end=previous_end,
            ahead=self._disk,
        )

    def _check(self) -> None:
        if self.failure is not None:
            raise self.failure

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._fail(error) from error

    def _fail(self, error: OSError) -> JournalError:
        """The first error is the last: what of a failed write or sync is on the disk is unknown,
        and a later sync that succeeds would not make it good."""
        self.failure = _sentence(self._directory, "written", error)
        return self.failure

    def _failed_in_thread(self, error: Exception) -> None:
        if not isinstance(error, JournalError):
            error = JournalError(f"the journal in {self._directory} failed: {error!r}")
        self.failure = error
        logger.error("%s", error)
        if self._loop is not None and self._on_failure is not None:
            try:
                self._loop.call_soon_threadsafe(self._on_failure, error)
            except RuntimeError:  # the loop is closed
                return


def _sentence(directory: Path, what: str, error: OSError) -> JournalError:
    where = "" if error.filename is None else f"{error.filename}: "
    return JournalError(
        f"the journal in {directory} cannot be {what}: {where}{error.strerror}; make sure that "
        "the disk is well and has room, then start the member again"
    )
