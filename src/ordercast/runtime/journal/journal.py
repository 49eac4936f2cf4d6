"""A journal: an append-only log of records in segments, in a directory that one process owns.

    journal = Journal(directory, identity={"group": "orders", "member": "a"})
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
from pathlib import Path
from typing import Literal

from ordercast.errors import JournalError, OrdercastError
from ordercast.runtime.journal.committer import Committer
from ordercast.runtime.journal.files import Files, Recovered
from ordercast.runtime.journal.ownership import lock, make
from ordercast.runtime.journal.segment import Segment, record_head
from ordercast.runtime.journal.taken import Taken
from ordercast.runtime.journal.trouble import Trouble, sentence

__all__ = ["KEEP_BYTES", "SEGMENT_BYTES", "Journal"]

logger = logging.getLogger(__name__)


SEGMENT_BYTES = 64 * 2**20
KEEP_BYTES = 256 * 2**20


class Journal:
    def __init__(
        self,
        directory: Path,
        *,
        identity: Mapping[str, str],
        sync: Literal["write", "disk"] = "write",
        segment_bytes: int = SEGMENT_BYTES,
        keep_bytes: int = KEEP_BYTES,
        on_failure: Callable[[OrdercastError], None] | None = None,
    ) -> None:
        """The journal in this directory, which is made if there is none.

        With "disk", an error shows when the thread meets it: `on_failure` is called on the loop.
        So it is when `look` finds the journal gone.
        """
        self._directory = directory
        self._files = Files(directory, identity, keep_bytes=keep_bytes, synced=sync == "disk")
        self._segment_bytes = self._full_bytes = segment_bytes
        self._trouble = Trouble(directory, on_failure)
        self._parts: list[bytes] = []
        self._pending_bytes = 0
        self._filled_bytes = 0
        self.written_bytes = 0
        self.commits = 0
        """Since it was opened."""
        self._taken: Taken | None = None
        self._committer: Committer | None = None
        self._left = False
        """Whether it is left to the thread to close it, whenever that is."""
        self._number = 0
        self._lock_fd = -1
        try:
            self._lock_fd = lock(directory)
            self._go_on(synced=sync == "disk")
        except OSError as error:
            self.close()
            raise sentence(directory, "opened", error) from error
        except BaseException:
            self.close()
            raise
        if sync == "disk":
            self._committer = Committer(self._write_and_sync, self._trouble.in_thread)

    @staticmethod
    def prepare(directory: Path) -> None:
        """Make the directory, if there is none; raises the sentence of a journal that cannot be."""
        try:
            make(directory)
        except OSError as error:
            raise sentence(directory, "opened", error) from error

    def start(self, snapshot: bytes) -> None:
        """The first segment of a new journal."""
        assert not self._files.begun, "this journal has begun already"
        self._trouble.check()
        with self._trouble.guarded():
            Taken.create(self._directory / "taken")
            self._taken = Taken(self._directory / "taken")
            self._files.begin(1, snapshot, previous_end=0)
        self._number = 1
        self._begin_with(len(snapshot))

    def append(self, *parts: bytes) -> None:
        """One record, given in parts, which must not change. It is in memory until the commit."""
        length = sum(map(len, parts))
        self._parts += (record_head(length), *parts)
        self._pending_bytes += length

    def commit(self, then: Callable[[], None]) -> None:
        """Write all that was appended. `then` runs when it is safe: now, or later on this loop."""
        if self.write():
            then()
            return
        assert self._committer is not None
        assert self._files.begun, "a new journal begins with `start`"
        parts, size = self._hand_over()
        self._trouble.loop = asyncio.get_running_loop()
        self._committer.commit(parts, size, then)

    def write(self) -> bool:
        """Write all that was appended, if that makes it safe; otherwise it takes a `commit`."""
        if self._trouble.error is not None:
            raise self._trouble.error
        if self._committer is not None:
            return False
        if self._parts:
            try:
                self._files.write(self._hand_over()[0])
            except OSError as error:
                raise self._trouble.of(error) from error
        return True

    def _hand_over(self) -> tuple[list[bytes], int]:
        """What was appended, and how many bytes it is; it is written now."""
        parts, self._parts = self._parts, []
        size, self._pending_bytes = self._pending_bytes, 0
        self._filled_bytes += size
        self.written_bytes += size
        self.commits += bool(parts)
        return parts, size

    @property
    def directory(self) -> Path:
        return self._directory

    @property
    def failure(self) -> OrdercastError | None:
        """Once there is one, nothing is written and nothing confirmed any more."""
        return self._trouble.error

    def look(self) -> None:
        """Is what is written still in its place? Nothing is promised for a journal that was removed
        under a member: that is a failure. It costs a look into the directory: now and then."""
        if self._trouble.error is None and (path := self._files.lost) is not None:
            self._trouble.lost(path)

    @property
    def segment(self) -> tuple[int, int]:
        """The number of the segment that is being written, and about how full it is, in bytes."""
        return self._number, self._filled_bytes

    @property
    def full(self) -> bool:
        """Time to `cut`: the segment is as large as it should become."""
        return self._filled_bytes + self._pending_bytes >= self._full_bytes

    def cut(self, snapshot: bytes, *, after: Callable[[], None] | None = None) -> None:
        """Begin a new segment with the state after everything appended so far.

        With "disk" this happens in the thread, in order with the commits, and `after` is called
        there first: what must be on the disk before old segments go.
        """
        self._trouble.check()
        parts, self._parts = self._parts, []
        self._pending_bytes = 0
        self._begin_with(len(snapshot))
        self._number += 1
        number = self._number

        def step() -> None:
            assert self._files.begun, "a new journal begins with `start`"
            if after is not None and self._committer is not None:
                after()
            with self._trouble.guarded():
                if self._taken is not None and self._committer is not None:
                    self._taken.sync()
                self._files.next(number, parts, snapshot)

        if self._committer is None:
            step()
        else:
            self._trouble.loop = asyncio.get_running_loop()
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

    def need_from(self, number: int) -> None:
        """Whoever comes back wants to replay from this segment on: it and all later ones stay."""
        self._files.needed_from = number

    def history(self) -> Iterator[Segment]:
        """The older segments that are kept, oldest first, each to be read whole."""
        return self._files.history()

    def close(self) -> None:
        """Waits for the commits; what was appended and never committed is dropped."""
        if self._left:
            return
        if self._committer is not None:
            self._committer.close()
            self._committer = None
        self._put_away()

    async def closed(self) -> None:
        """As `close`, while the loop turns. Whoever is cancelled leaves the rest to the thread: the
        directory is in use until that is through, or the process ends."""
        if self._committer is None or self._left:
            self.close()
            return
        self._left = True
        failed: list[JournalError] = []

        def put_away() -> None:
            try:
                self._put_away()
            except JournalError as error:
                failed.append(error)

        await self._committer.closed(put_away)
        if failed:
            raise failed[0]

    def _put_away(self) -> None:
        try:
            with self._trouble.guarded():
                self._files.close(whole=self._trouble.error is None)
        finally:  # whatever the disk says, the next life may begin
            if self._taken is not None:
                self._taken.close()
                self._taken = None
            if self._lock_fd >= 0:
                os.close(self._lock_fd)
                self._lock_fd = -1

    @property
    def recovered(self) -> Recovered | None:
        """The newest segment as it was found; None for a new journal, which needs a `start`."""
        return self._files.recovered

    def _go_on(self, *, synced: bool) -> None:
        """With what there is, if there is anything."""
        found, path = self._files.recover(), self._directory / "taken"
        if found is None:
            Taken.check_unused(path)
        else:
            self._taken = Taken(path)
            self._number = found.number
            self._begin_with(len(found.snapshot))
            self._filled_bytes = found.end
            if synced and found.keys.over:  # for power losses it takes a new one
                self._filled_bytes = self._full_bytes

    def _begin_with(self, snapshot_bytes: int) -> None:
        """However large it is, as much as that is appended before there is another one: a member
        with much to remember would write nothing else."""
        self._filled_bytes = snapshot_bytes
        self._full_bytes = max(self._segment_bytes, 2 * snapshot_bytes)

    def _write_and_sync(self, parts: list[bytes]) -> None:
        with self._trouble.guarded():
            self._files.write(parts)
            self._files.sync()
