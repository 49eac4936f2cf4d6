"""A member's journal and its core: how what was written down becomes the member again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, islice
from pathlib import Path
from typing import Literal, Self

from ordercast.errors import JournalError, UsageError
from ordercast.runtime.core import Core
from ordercast.runtime.inputs import replay
from ordercast.runtime.journal import KEEP_BYTES, SEGMENT_BYTES, Journal, Segment
from ordercast.runtime.logs import about
from ordercast.runtime.surroundings import surroundings
from ordercast.trace.span_log import SpanLog

__all__ = ["Memory"]

RECORDS_A_TURN = 100
"""Some milliseconds, mostly; by number, so that a story is a function of its seed."""
TELL_EVERY_S = 1.0
CLOSE_S = 10.0

logger = logging.getLogger(__name__)


class Memory:
    def __init__(
        self,
        directory: Path,
        *,
        identity: Mapping[str, str],
        sync: Literal["write", "disk"],
        segment_bytes: int = SEGMENT_BYTES,
        keep_bytes: int = KEEP_BYTES,
    ) -> None:
        self.on_failure: Callable[[BaseException], None] | None = None
        self._group, self._member = identity.get("group", ""), identity.get("member", "")
        self.journal = Journal(
            directory,
            identity=identity,
            sync=sync,
            segment_bytes=segment_bytes,
            keep_bytes=keep_bytes,
            on_failure=self._failed,
        )

    def begin(self, core: Core) -> None:
        """The first page: a member that knows nothing yet."""
        self.journal.start(core.snapshot())

    async def recall(self, log: SpanLog | None, *, replay_from: int | None) -> Core | None:
        """The member as it was; None if it never was. Rows that its log lacks are added there. The
        loop turns meanwhile: a segment that is full of small messages takes seconds.

        What the application had not taken is delivered now; with `replay_from`, everything from
        that position on.
        """
        recovered = self.journal.recovered
        if recovered is None:
            if replay_from is not None and replay_from > 1:
                raise UsageError(
                    f"there is nothing to replay from position {replay_from} on: this journal is "
                    "new, and so the first message that it brings is at position 1"
                )
            return None  # "from 1 on" is what whoever has kept nothing yet asks for
        if replay_from is not None and replay_from > self.journal.taken + 1:
            raise UsageError(
                f"messages from position {self.journal.taken + 1} on were never taken, and nothing "
                f"is skipped: replay from there or from earlier, not from {replay_from}"
            )
        core = _core_at(recovered)
        if log is not None:
            log.mend()
            if log.position < core.rows:
                await self._fill(log, core.rows)
        if replay_from is None:
            await self._replay(core, [recovered], log)
        else:
            first, *rest = self._segments_from(replay_from)
            core = _core_at(first)
            await self._replay(core, [first, *rest], log)
        for link in core.links.values():  # all of this is in the journal, or has never happened
            link.commit(link.sent, link.received)
        self.journal.forget_beyond(core.delivered)
        core.take_up_to(self.journal.taken if replay_from is None else replay_from - 1)
        logger.info(
            "%s: recalled from its journal: it had sent %d messages, and delivered %d",
            *(self._member, core.sent, core.delivered),
            extra=about("recalled", self._member, group=self._group),
        )
        return core

    async def closed(self) -> None:
        """Within bounds: a disk may hang, and this process has other things to do."""
        try:
            async with asyncio.timeout(CLOSE_S):
                await self.journal.closed()
        except TimeoutError:
            logger.error(
                "%s: for %g s, the disk has not taken what is left for the journal in %s; it may "
                "still do so in the background, until this process ends",
                *(self._member, CLOSE_S, self.journal.directory),
                extra=about("disk_hangs", self._member, group=self._group),
            )

    def close(self) -> None:
        self.journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def _fill(self, log: SpanLog, rows: int) -> None:
        """A member that was killed, or whose machine was, may have begun a segment before its log
        had all the rows until there: then the segments before have them. If these are gone, or it
        is another log than last time, it has a hole from now on."""
        segments: list[Segment] = []
        try:
            for segment in reversed([*self.journal.history()]):
                segments.insert(0, segment)
                core = _core_at(segment)
                if core.rows <= log.position:
                    await self._replay(core, segments, log)
                    return
        except JournalError as error:  # the newest segment is whole, and enough to go on
            logger.warning("the trace is not filled up: %s", error)
        logger.warning(
            "%s: the trace lacks %d rows of this member, which are not in its journal any more",
            *(log.directory, rows - log.position),
        )
        log.skip_to(rows)

    def _segments_from(self, position: int) -> list[Segment]:
        """The newest segments that hold everything delivered from a position on."""
        assert self.journal.recovered is not None
        segments = [*self.journal.history(), self.journal.recovered]
        for start in reversed(range(len(segments))):
            core = _core_at(segments[start])
            first_kept = core.queue[0].position if core.queue else core.delivered + 1
            if first_kept <= position:
                return segments[start:]
        raise UsageError(
            f"deliveries before position {first_kept} are not in the journal any more: "
            f"replay from {first_kept} or later"
        )

    async def _replay(self, core: Core, segments: Sequence[Segment], log: SpanLog | None) -> None:
        """What they hold happens to this core, the state before them. The log gets what it
        lacks."""
        before = core.rows
        core.attach(clock_us=surroundings().clock_us, recording=log is not None)
        progress = _Progress(self._member, sum(segment.end for segment in segments))
        for segment in segments:
            records = segment.records()
            while some := list(islice(records, RECORDS_A_TURN)):
                replay(core, some)
                progress.advance(sum(map(len, some)))
                await asyncio.sleep(0)
        if log is not None:
            positions = accumulate((span.count for span in core.spans), initial=before)
            lacking = zip(core.spans, positions, strict=False)
            log.write([span for span, position in lacking if position >= log.position])

    def _failed(self, error: BaseException) -> None:
        if self.on_failure is not None:
            self.on_failure(error)


def _core_at(segment: Segment) -> Core:
    """The state that it begins with."""
    snapshot = segment.snapshot
    try:
        return Core.restore(snapshot)
    except JournalError as error:
        raise segment.unusable(str(error)) from error


class _Progress:
    """Says how far a recall has come, if it takes long."""

    def __init__(self, member: str, total_bytes: int) -> None:
        self._member = member
        self._total_bytes = total_bytes
        self._bytes = 0
        self._told_s = asyncio.get_running_loop().time()

    def advance(self, more_bytes: int) -> None:
        self._bytes += more_bytes
        now_s = asyncio.get_running_loop().time()
        if now_s - self._told_s > TELL_EVERY_S:
            self._told_s = now_s
            logger.info(
                "%s: recalling what is in its journal: %d of %d MiB",
                *(self._member, self._bytes >> 20, self._total_bytes >> 20),
            )
