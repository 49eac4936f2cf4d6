"""What the files of a huge run say of themselves, in place of the first pass.

ordercast's own files have in their footers what that pass would find (`trace.outline`). It is taken
for granted until the second pass, where each row that is read is also held against it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.pipeline.arrays import ints_of
from ordercast.pipeline.huge.groups import Unhealthy, footer, read
from ordercast.pipeline.huge.segments import Part, Segment
from ordercast.pipeline.kernels import scan as s
from ordercast.pipeline.kernels.kernel import Ints
from ordercast.pipeline.rows import Piece
from ordercast.trace.outline import OUTLINE, SENT, Outlined, decode_outline

__all__ = ["told_segments", "verify"]


def told_segments(pieces: Sequence[Piece], members: int) -> list[Segment] | None:
    """None if some piece has nothing to say that could be true."""
    outline = cache(_outline)
    found = []
    for piece in pieces:
        groups = outline(piece.file)
        assert piece.groups is not None
        (index,) = piece.groups
        those = groups[index] if index < len(groups) else None
        if those is None or not _possible(those, piece.rows, members):
            return None
        found += [
            Segment(
                one.process, Part(piece, one.begin, one.end, one), one.first_position,
                _known(one), _runs(one, members), [],
            )
            for one in those
        ]  # fmt: skip
    return found


def _possible(those: Sequence[Outlined], rows: int, members: int) -> bool:
    """As tables are made as large as it says, before all rows are read."""
    edges = [0, *(one.end for one in those)]
    return (
        [one.begin for one in those] == edges[:-1]
        and edges[-1] == rows
        and all(
            one.process < members
            and all(o < members and 1 <= first <= last for o, first, last in one.runs)
            and sum(last - first + 1 for _, first, last in one.runs) <= one.end - one.begin
            for one in those
        )
    )


def _outline(file: str) -> list[list[Outlined] | None]:
    try:
        metadata = pq.read_metadata(Path(file)).metadata or {}
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        return []
    return decode_outline(metadata.get(OUTLINE, b""))


def _known(one: Outlined) -> list[int]:
    """As `kernels.scan` has it."""
    known = [0] * s.WIDTH
    known[s.LAST_POSITION] = one.last_position
    known[s.SENT], known[s.DELIVERED], known[s.ADJACENT] = one.sent, one.delivered, one.adjacent
    known[s.HEAD], known[s.TAIL], known[s.DOWN] = one.head, one.tail, one.down
    return known


def _runs(one: Outlined, members: int) -> list[tuple[int, int, int]]:
    return [(members if o == SENT else o, first, last) for o, first, last in one.runs]


def verify(
    part: Part, members: int, position: Ints, kind: Ints, origin: Ints, number: Ints
) -> None:
    """Raises `Unhealthy` if the rows are not what was told of them."""
    one = part.told
    assert one is not None
    known, runs = np.empty(s.WIDTH, np.int64), np.empty((len(one.runs), 3), np.int64)
    many = s.scan.compiled(one.process, members, position, kind, origin, number, known, runs)
    same = (
        known.tolist() == _known(one)
        and [(o, first, last) for o, first, last in runs[:many].tolist()] == _runs(one, members)
        and int(position[0]) == one.first_position >= 0
        and _of(part, one.process)
    )
    if not same:
        raise Unhealthy("is not what its files say of themselves")


def _of(part: Part, process: int) -> bool:
    """Are all rows of this process, and all messages for everyone?"""
    about = footer(part.piece)
    if about.owner is not None or not about.everyone:
        return about.everyone and about.owner == process
    rows = read(part.piece, ["process"]).slice(part.begin, part.end - part.begin)
    return bool((ints_of(rows["process"], np.int64) == process).all())
