"""A huge run from its files to what is found in it. What runs the tasks is given: Spark, or not."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import msgspec

from ordercast.pipeline.huge.apart import by_process, set_apart
from ordercast.pipeline.huge.attempt import Attempt, Each, Job, Split, dealt
from ordercast.pipeline.huge.groups import Unhealthy
from ordercast.pipeline.huge.segments import Segment, scan_pieces
from ordercast.pipeline.huge.spans import Spans, union
from ordercast.pipeline.huge.tally import WINDOWED
from ordercast.pipeline.huge.told import told_segments
from ordercast.pipeline.rows import Piece

__all__ = ["split"]

ROUNDS = 8
"""How often more messages may turn out to be set apart."""


def split(
    pieces: Sequence[Piece],
    members: int,
    properties: Collection[str],
    each: Each,
    tasks: int,
    *,
    complete: bool = True,
) -> Split:
    """Raises `Unhealthy` if the run does not lend itself to being split; `tasks` is how many there
    should be at a time; `complete` says that the log has no holes."""
    job = Job(members, properties, each, tasks, complete)
    logs, attempt, lacking = _as_told(job, pieces) or _as_seen(job, pieces)
    more = _nothing(job)
    for _ in range(ROUNDS):
        if not any(lacking):
            return attempt.found()
        more = [union([*old, *new]) for old, new in zip(more, lacking, strict=True)]
        attempt = Attempt(job, logs, more)
        lacking = attempt.lacking()
    raise Unhealthy("has too many messages that others depend on out of order")


class _Start(NamedTuple):
    logs: list[list[Segment]]
    attempt: Attempt
    lacking: list[Spans]
    """What must be set apart as well."""


def _nothing(job: Job) -> list[Spans]:
    return [[] for _ in range(job.members)]


def _as_seen(job: Job, pieces: Sequence[Piece]) -> _Start:
    """In two passes over the files."""
    members = job.members

    def look(those: Sequence[Piece]) -> list[Segment]:
        return list(scan_pieces(those, members))

    parts = job.each(look, dealt(pieces, job.tasks), list[Segment])
    logs = by_process((one for part in parts for one in part), members)
    attempt = Attempt(job, logs, _nothing(job))
    return _Start(logs, attempt, attempt.lacking())


def _as_told(job: Job, pieces: Sequence[Piece]) -> _Start | None:
    """In one pass, if there must be one over all rows, the files say beforehand what is in them,
    and that is in order; None if that, as the rows themselves show, is not the truth."""
    told = told_segments(pieces, job.members)
    if told is None or not any(name in job.properties for name in WINDOWED):
        return None
    logs = by_process(told, job.members)
    try:
        if any(set_apart(logs, _nothing(job))[0].spans):
            return None
        attempt = Attempt(job, logs, _nothing(job))
        lacking = attempt.lacking()
    except Unhealthy:
        return None
    if not attempt.has_seen_all():
        return None
    return _Start([[_proven(one) for one in log] for log in logs], attempt, lacking)


def _proven(segment: Segment) -> Segment:
    return msgspec.structs.replace(segment, part=msgspec.structs.replace(segment.part, told=None))
