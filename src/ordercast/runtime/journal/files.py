"""The segments of a journal in its directory: the newest is written, older ones are kept."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from stat import S_ISREG

from ordercast.errors import JournalError
from ordercast.runtime.journal.ownership import compare
from ordercast.runtime.journal.segment import SUFFIX, Segment
from ordercast.runtime.journal.writer import SegmentWriter, sync_directory
from ordercast.runtime.logs import about

__all__ = ["Files", "Recovered"]

SPARE = "spare"
"""A segment that is needed no more: the next one is written over it. Space that the kernel has at
hand costs less than half of what new space does."""

logger = logging.getLogger(__name__)


class Recovered(Segment):
    """The newest segment, as it was found."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.repaired_bytes = self.find_end()
        """Of a batch that was being written when the process or the machine died."""


class Files:
    """Errors of the system come out as they are."""

    def __init__(
        self, directory: Path, identity: Mapping[str, str], *, keep_bytes: int, synced: bool
    ) -> None:
        self.recovered: Recovered | None = None
        self._directory = directory.absolute()  # a program may go elsewhere
        self._identity = dict(identity)
        self._keep_bytes = keep_bytes
        self._synced = synced
        self.needed_from: int | None = None
        """Segments from this one on stay, however many there are."""
        self._writer: SegmentWriter | None = None

    @property
    def begun(self) -> bool:
        """Whether there is a segment to write to."""
        return self._writer is not None

    def recover(self) -> Recovered | None:
        """Go on with the newest segment, if there is one: what was found of it."""
        for unfinished in self._directory.glob("*.new"):
            unfinished.unlink()
        if self._synced:
            self._spare.unlink(missing_ok=True)
        paths = self._paths()
        if not paths:
            return None
        found = self.recovered = Recovered(paths[-1])
        compare(self._directory, found.identity, self._identity)
        if found.repaired_bytes:
            self._tell_cut(found)
        over = found.keys.over
        # In a file that was written over another, zeros would not tell what a power loss left out.
        ahead = self._synced and not over
        self._writer = SegmentWriter(found.path, found.keys, found.end, ahead=ahead)
        if over:
            self._writer.seal()
        if self._synced:
            # The others hear of what was found before anything new is written, and whoever wrote it
            # may have relied on the kernel, for the name of the file as well.
            self._writer.sync()
            sync_directory(self._directory)
        return found

    def _tell_cut(self, found: Recovered) -> None:
        group, member = self._identity.get("group", ""), self._identity.get("member", "")
        logger.warning(
            "%s: cut off %d bytes at byte %d of %s, of a commit that was not whole: the process or "
            "its machine died in it, or the disk was full",
            *(member, found.repaired_bytes, found.end, found.path),
            extra=about("cut_off", member, group=group),
        )

    def begin(self, number: int, snapshot: bytes, *, previous_end: int) -> None:
        self._writer = SegmentWriter.create(
            self._directory,
            number,
            snapshot,
            identity=self._identity,
            previous_end=previous_end,
            ahead=self._synced,
            over=self._to_write_over(),
        )

    @property
    def lost(self) -> Path | None:
        """The segment that is written, if it was removed or moved. Any thread may ask."""
        writer = self._writer
        if writer is None or not writer.lost:
            return None
        return writer.path if writer is self._writer else None  # it may have ended meanwhile

    def write(self, parts: Sequence[bytes]) -> None:
        """One batch."""
        assert self._writer is not None, "a new journal begins with `start`"
        self._writer.write(parts)

    def sync(self) -> None:
        assert self._writer is not None
        self._writer.sync()

    def next(self, number: int, parts: Sequence[bytes], snapshot: bytes) -> None:
        """End the segment with a last batch, and begin another. Of those before, the oldest go, but
        never this one: what the new one follows from may not be known everywhere yet."""
        old = self._writer
        assert old is not None
        if parts:
            old.write(parts)
        old.finish()
        if self._synced:
            old.sync()
        self.begin(number, snapshot, previous_end=old.end)
        old.close()
        paths = self._paths()[:-1]
        kept_bytes = sum(path.stat().st_size for path in paths)
        for path in paths[:-1]:
            needed = self.needed_from is not None and int(path.stem) >= self.needed_from
            if kept_bytes > self._keep_bytes and not needed:
                kept_bytes -= path.stat().st_size
                self._drop(path)

    def _drop(self, path: Path) -> None:
        """A power loss while one is written over another leaves neither."""
        if self._synced:
            path.unlink()
        else:
            path.rename(self._spare)

    def _to_write_over(self) -> Path | None:
        """What is spare, if nobody else may need it as it is: what a backup has linked to must not
        change, nor what a link leads to. It is looked at now, since a backup may come at any time.
        """
        spare = self._spare
        try:
            found = spare.lstat()
        except FileNotFoundError:
            return None
        if S_ISREG(found.st_mode) and found.st_nlink == 1 and os.access(spare, os.W_OK):
            return spare
        spare.unlink()
        return None

    @property
    def _spare(self) -> Path:
        return self._directory / SPARE

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

    def close(self, *, whole: bool) -> None:
        """`whole` if everything that was written is known to be there."""
        writer, self._writer = self._writer, None
        if writer is not None:
            try:
                if whole:
                    writer.finish()
            finally:
                writer.close()

    def _paths(self) -> list[Path]:
        return sorted(self._directory.glob(f"*{SUFFIX}"))
