"""Which messages of a huge run are set apart, so that what remains is a healthy broadcast.

Healthy: each process sends its messages in the order of their numbers, delivers those of each
origin one after the other from the first, each once, and one process delivers them all. A message
that somebody skipped, delivered late, twice or without its being sent, or that is not for everyone,
is set apart: then it is missing nowhere. As long as they are few, they can be compared one by one
with everything else (`huge.aside`), and the rest is judged as if they had never been.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import msgspec
import numpy as np

from ordercast.pipeline.huge.groups import Unhealthy
from ordercast.pipeline.huge.segments import Segment
from ordercast.pipeline.huge.spans import Spans, both, in_order, size, union, without
from ordercast.pipeline.kernels.kernel import Ints

__all__ = ["APART_MOST", "Apart", "by_process", "set_apart"]

APART_MOST = 2048
"""How many messages may be set apart: each of them is compared with all the others."""
_COUNTS_MOST = 1 << 24
"""What is kept of them are messages × members × members counts."""

_TOO_MUCH = "has too many messages out of order, missing, repeated or not for everyone"


class Apart(msgspec.Struct, frozen=True, dict=True):
    """The numbers that are set apart, origin by origin; also those that no message has."""

    spans: list[Spans]

    @cached_property
    def arrays(self) -> tuple[Ints, Ints, Ints, Ints]:
        """`kernels.apart`: start, low, high, before"""
        start = np.cumsum([0, *map(len, self.spans)])
        low, high = (np.array([s[i] for one in self.spans for s in one], np.int64) for i in (0, 1))
        before = [size(one[:at]) if one else 0 for one in self.spans for at in range(len(one))]
        return start, low, high, np.array(before, np.int64)

    def place(self, origin: int, number: int) -> int:
        """How many regular messages of the origin have numbers up to this one."""
        start, low, high, before = self.arrays
        begin, end = start[origin], start[origin + 1]
        if begin == end:
            return number
        at = begin + int(np.searchsorted(low[begin:end], number, side="right"))
        if at == begin:
            return number
        return int(number - before[at - 1] - (min(high[at - 1], number) - low[at - 1] + 1))

    def number(self, origin: int, place: int) -> int:
        """Of the regular message of the origin at that place, from 1."""
        start, low, _, before = self.arrays
        begin, end = start[origin], start[origin + 1]
        # Before a stretch there are so many regular numbers.
        regular = low[begin:end] - 1 - before[begin:end]
        at = begin + int(np.searchsorted(regular, place, side="left"))
        if at == begin:
            return place
        _, _, high, _ = self.arrays
        return int(place + before[at - 1] + high[at - 1] - low[at - 1] + 1)


def by_process(segments: Iterable[Segment], members: int) -> list[list[Segment]]:
    """Each process's segments in the order of its log."""
    logs: list[list[Segment]] = [[] for _ in range(members)]
    for one in sorted(segments, key=lambda one: (one.process, one.first_position)):
        logs[one.process].append(one)
    return logs


def set_apart(
    logs: Sequence[Sequence[Segment]], more: Sequence[Spans]
) -> tuple[Apart, list[tuple[int, int]]]:
    """The numbers, and the messages among them, by name; `more` must be set apart anyway."""
    members = len(logs)
    if sum(one.rough for log in logs for one in log) > 3 * APART_MOST:
        raise Unhealthy(_TOO_MUCH)
    found, messages = [], []
    delivered = []
    for origin in range(members):
        one = _Origin(origin, logs, more[origin])
        found.append(one)
        delivered.append(one.regular_ends())
    sent = [size(one.regular()) for one in found]
    lacking = np.array(sent) - np.array(delivered).T
    reference = int(np.argmin(lacking.sum(axis=1)))
    for one in found:
        one.end_at(reference)
        messages += [(one.origin, spans) for spans in both(one.apart, one.seen)]
    most = min(APART_MOST, _COUNTS_MOST // members**2)
    if size(span for _, span in messages) > most:
        raise Unhealthy(_TOO_MUCH)
    names = [(o, n) for o, (first, last) in messages for n in range(first, last + 1)]
    return Apart([one.apart for one in found]), names


class _Origin:
    """What became of the messages of one origin."""

    def __init__(self, origin: int, logs: Sequence[Sequence[Segment]], more: Spans) -> None:
        members = len(logs)
        self.origin = origin
        sends = _runs(logs[origin], members)
        self.sent = union(sends)
        if size(sends) != size(self.sent):
            raise Unhealthy("has two send rows for one message")
        runs = [_runs(log, origin) for log in logs]
        self.seen = union([*self.sent, *(run for those in runs for run in those)])
        top = self.seen[-1][1] if self.seen else 0
        some = [(number, number) for one in logs[origin] for number, _ in one.some]
        unsent = without([(1, top)], self.sent)
        late = without(self.sent, in_order(sends))
        self.apart = union([*more, *some, *unsent, *late])
        self.kept = [self._in_order(those) for those in runs]
        for p, those in enumerate(self.kept):
            self._without_gaps(p, those)

    def _in_order(self, runs: Spans) -> Spans:
        """What one process delivered in order; the rest is set apart, and so are repetitions."""
        if not runs:
            return []
        had: Spans = []
        fresh: Spans = []
        odd: Spans = []
        for run in runs:
            if not had or run[0] > had[-1][1]:
                fresh += without([run], self.apart)
                had.append(run)
                continue
            new = without([run], had)
            odd += without([run], new)
            fresh += without(new, self.apart)
            had = union([*had, run])
        kept = in_order(fresh)
        odd += without(union(fresh), union(kept))
        if odd:
            self.apart = union([*self.apart, *odd])
        return kept

    def regular(self) -> Spans:
        return without(self.sent, self.apart)

    def _without_gaps(self, p: int, kept: Spans) -> None:
        """Sets apart what a process skipped, or else what it delivered after that: whatever is
        less."""
        kept = without(union(kept), self.apart)
        due = self.regular()
        if not kept:
            self.kept[p] = []
            return
        after, lost = size(kept), 0
        best, cut = after, 0
        for i, (first, last) in enumerate(kept):
            before = kept[i - 1][1] if i else 0
            lost += size(both([(before + 1, first - 1)], due))
            after -= last - first + 1
            if lost + after < best:
                best, cut = lost + after, i + 1
        end = kept[cut - 1][1] if cut else 0
        skipped = without(both([(1, end)], due), kept)
        if skipped or cut < len(kept):
            self.apart = union([*self.apart, *skipped, *kept[cut:]])
        self.kept[p] = kept[:cut]

    def regular_ends(self) -> list[int]:
        """How many regular messages each process delivered."""
        return [size(without(those, self.apart)) for those in self.kept]

    def end_at(self, reference: int) -> None:
        """Sets apart what that process never delivered."""
        missing = without(self.regular(), self.kept[reference])
        if missing:
            self.apart = union([*self.apart, *missing])


def _runs(log: Sequence[Segment], origin: int) -> Spans:
    """What a process delivered of an origin, or sent, in the order in which it did."""
    found: Spans = []
    for one in log:
        for o, first, last in one.runs:
            if o != origin:
                continue
            if found and found[-1][1] + 1 == first:
                found[-1] = (found[-1][0], last)
            else:
                found.append((first, last))
    return found
