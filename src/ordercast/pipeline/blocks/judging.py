"""A huge run from its files to its verdicts, block by block. What runs the tasks is given."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ordercast.pipeline.blocks import inside
from ordercast.pipeline.blocks.answering import answer_block, judge_block
from ordercast.pipeline.blocks.apart import apart_of, concerned, view_of
from ordercast.pipeline.blocks.found import Asked, Found, Noted
from ordercast.pipeline.blocks.plan import Work, blocks
from ordercast.pipeline.blocks.sketches import Log
from ordercast.pipeline.blocks.ties import tie
from ordercast.pipeline.blocks.view import NOTHING
from ordercast.pipeline.concluding import Finding, Hit, Message, cycle_of, judged, witness_of
from ordercast.pipeline.huge.attempt import Each
from ordercast.pipeline.huge.groups import Unhealthy
from ordercast.pipeline.judged import Judged
from ordercast.pipeline.kernels import findings as f
from ordercast.pipeline.kernels import scan as s
from ordercast.pipeline.kernels.kernel import Bools
from ordercast.trace.manifest import Manifest
from ordercast.trace.verdicts import PROPERTIES

__all__ = ["judge_blocks"]

BLOCK_ROWS = 1 << 20
BLOCK_CELLS = 1 << 22
"""Messages × members of a block, at some forty bytes each."""
MARGINS = (8, 2)
"""Of a block's rows, this part is read on either side: first little, then much."""

Cycle = list[tuple[Message, int]]


def judge_blocks(
    logs: Sequence[Log],
    manifest: Manifest,
    properties: Collection[str],
    each: Each,
    tasks: int,
) -> Judged:
    """The log must have no holes. Raises `Unhealthy` if the run does not lend itself to it."""
    rows = _block_rows(logs, tasks)
    for share in MARGINS:
        attempt = _Attempt(logs, blocks(logs, rows, rows // share), manifest, properties, each)
        try:
            return attempt.judge()
        except Unhealthy:
            if share == MARGINS[-1]:
                raise
    raise AssertionError


def _block_rows(logs: Sequence[Log], tasks: int) -> int:
    """Blocks that fit into memory, and as many of them as tasks can share evenly."""
    rows = sum(log.rows for log in logs)
    sends = sum(one.known[s.SENT] for log in logs for one in log.sketches)
    many = max(rows / BLOCK_ROWS, sends * len(logs) / BLOCK_CELLS, 1)
    return -(-rows // (-(-int(many) // tasks) * tasks))


@dataclass
class _Attempt:
    logs: Sequence[Log]
    works: list[Work]
    manifest: Manifest
    properties: Collection[str]
    each: Each

    def judge(self) -> Judged:
        self.apart = NOTHING
        self.found = self._ask([(work, None) for work in self.works])
        if any(one.strange for one in self.found):
            self._set_apart()
        self.by_themselves = self._judge_apart()
        self.counts = np.array([one.counts for one in self._all]).sum(axis=0)
        self._tie()
        known = [one.known for log in self.logs for one in log.sketches]
        return judged(
            self.manifest,
            {name: self._finding(name) for name in PROPERTIES if name in self.properties},
            events=sum(log.rows for log in self.logs),
            messages=sum(one[s.SENT] for one in known),
            deliveries=sum(one[s.DELIVERED] for one in known),
        )

    def _set_apart(self) -> None:
        """And asks the blocks once more that these messages have to do with."""
        strange = [seen for one in self.found for seen in one.strange]
        reads = [one.reads for one in self.found if one.reads]
        self.apart = apart_of(strange, reads, self.works, self.logs, self.each)
        again = [i for i, one in enumerate(reads) if concerned(one, self.apart, self.logs)]
        answers = self._ask([(self.works[i], None) for i in again])
        for i, answer in zip(again, answers, strict=True):
            self.found[i] = answer

    def _ask(self, those: Sequence[tuple[Work, Asked | None]]) -> list[Found]:
        properties, settled, up, apart = *self._about, self.apart

        def answer(one: tuple[Work, Asked | None]) -> Found:
            work, asked = one
            if asked is None:
                return judge_block(work, apart, up, properties, settled=settled)
            return answer_block(work, apart, asked)

        return self.each(answer, those, Found)

    @property
    def _about(self) -> tuple[tuple[str, ...], bool, Bools]:
        up = np.array([log.up for log in self.logs])
        return tuple(self.properties), self.manifest.quiesced, up

    def _judge_apart(self) -> list[Found]:
        """Those that are set apart, with what all blocks say of them."""
        if not self.apart.seen:
            return []
        properties, settled, up = self._about
        view = view_of(self.apart, self.logs)
        for one in self.found:
            for name, p, marks in one.marked:
                view.marks[view.index[name], p] |= marks
        return [inside.judge(view, up, properties, settled=settled)]

    @property
    def _all(self) -> list[Found]:
        return [*self.found, *self.by_themselves]

    def _finding(self, name: str) -> Finding:
        if name in ("total_acyclic", "synchronous"):
            return self._acyclic(name)
        place = PROPERTIES.index(name)
        checked, violations, doubts = self.counts[place].tolist()
        if name == "total_pairwise":
            both = np.array([one.both for one in self._all]).sum(axis=0)
            checked = int(np.maximum(both - 1, 0).sum())
        if not violations and not doubts:
            return Finding(checked)
        witness = self._witness(name, place)
        return Finding(checked, violations, witness, doubts, self._listed(place))

    def _listed(self, place: int) -> list[Hit]:
        hits = [hit[1:] for one in self._all for hit in one.hits if hit[0] == place]
        by_place = sorted(hits, key=lambda hit: (hit[0], -1 if hit[1] is None else hit[1], hit[2]))
        return by_place[: f.LISTED]

    def _witness(self, name: str, place: int) -> dict[str, object]:
        noted = [
            (_key(name, one), block, one)
            for block, found in enumerate(self.found)
            for one in (found.noted[place], *found.lacking[place : place + 1])
            if one is not None
        ]
        if name not in inside.LACKING:
            noted += [
                (_key(name, one), -1, one)
                for found in self.by_themselves
                if (one := found.noted[place]) is not None
            ]
        _, block, first = min(noted, key=lambda one: one[0])
        missing = first.missing
        if first.unsure:
            asked = Asked(delivered=(first.process, first.message))
            [answer] = self._ask([(self.works[block + 1], asked)])
            missing = not answer.delivered
        return witness_of(
            self.manifest, name, first.process, first.message, first.later,
            by=first.other, link=first.link, missing=missing, unknown=first.grade == 1,
            earlier=first.earlier or 0, position=first.position or 0,
            complete=True, exact=all(one.exact for one in self._all),
        )  # fmt: skip

    def _tie(self) -> None:
        """Knots over all blocks; a block that learns that some of its doors lie in one knot counts
        its others once more."""
        self.tied = [dict(one.tied) for one in self.found]
        self.knots = {name: tie([one[name] for one in self.tied]) for name in self.tied[0]}
        same = [
            {name: knots.same[i] for name, knots in self.knots.items() if knots.same[i]}
            for i in range(len(self.works))
        ]
        again = [i for i, one in enumerate(same) if one]
        answers = self._ask([(self.works[i], Asked(same=same[i])) for i in again])
        for i, answer in zip(again, answers, strict=True):
            self.tied[i] |= answer.tied

    def _acyclic(self, name: str) -> Finding:
        knots, closed = self.knots[name], sum(one[name].closed for one in self.tied)
        many = knots.through_doors + closed
        if many == 0:
            return Finding(knots.edges)
        cycle = min(self._cycles(name, knots.through_doors), key=_by_size)
        return Finding(knots.edges, many, cycle_of(self.manifest, name, cycle))

    def _cycles(self, name: str, through_doors: int) -> Iterator[Cycle]:
        pairs = [one.two[name] for one in self.found if one.two[name]]
        if pairs:
            yield from pairs
            return
        if through_doors:
            raise Unhealthy("has messages that no one order fits, over too long a time")
        asked = Asked(cycles=(name,))
        those = zip(self.works, self.tied, strict=True)
        for one in self._ask([(work, asked) for work, tied in those if tied[name].closed]):
            yield one.tied[name].cycle


def _key(name: str, one: Noted) -> tuple[object, ...]:
    """Violations before doubts, and the smallest first."""
    if name == "total_pairwise":
        return one.message, one.later
    position = -1 if one.position is None else one.position
    far = name == "causal" and one.link == f.INDIRECT
    return one.grade, one.process, position, far, one.message


def _by_size(cycle: Cycle) -> tuple[int, list[Message]]:
    return len(cycle), [message for message, _ in cycle]
