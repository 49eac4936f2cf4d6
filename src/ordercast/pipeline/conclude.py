"""The verdicts on a huge run, from what was found in it (`huge`)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any

import numpy as np

from ordercast.pipeline.concluding import Finding, Hit, Message, cycle_of, judged, witness_of
from ordercast.pipeline.huge import Split
from ordercast.pipeline.huge.aside import NOWHERE, Aside
from ordercast.pipeline.huge.attempt import Knotted
from ordercast.pipeline.huge.debts import debts
from ordercast.pipeline.huge.listing import Broken
from ordercast.pipeline.huge.totals import (
    chain_neighbours,
    deliveries,
    gaps_in,
    neighbours,
    pairs_in,
    shared,
)
from ordercast.pipeline.judged import Judged
from ordercast.pipeline.kernels import findings as f
from ordercast.pipeline.kernels import scan as s
from ordercast.pipeline.kernels.findings import LISTED
from ordercast.trace.manifest import Manifest
from ordercast.trace.verdicts import PROPERTIES

__all__ = ["conclude"]


def conclude(manifest: Manifest, split: Split, properties: Collection[str], events: int) -> Judged:
    judge = _Judge(manifest, split)
    known = [one.known for log in split.tally.logs for one in log.segments]
    return judged(
        manifest,
        {name: judge.finding(name) for name in PROPERTIES if name in properties},
        events=events,
        messages=sum(one[s.SENT] for one in known),
        deliveries=sum(one[s.DELIVERED] for one in known),
    )


class _Judge:
    def __init__(self, manifest: Manifest, split: Split) -> None:
        self.manifest, self.split = manifest, split
        self.tally, self.aside = split.tally, split.aside

    def finding(self, name: str) -> Finding:
        match name:
            case "no_duplication":
                return self._no_duplication()
            case "no_creation":
                return self._no_creation()
            case "fifo":
                return self._order(name, self.split.fifo)
            case "causal":
                return self._order(name, self.split.causal)
            case "total_pairwise":
                return self._pairwise()
            case "total_gap_free":
                return self._gap_free()
            case "total_acyclic":
                return self._acyclic(name, self.split.total, neighbours(self.tally, self.aside))
            case "synchronous":
                checked = chain_neighbours(self.tally, self.aside)
                return self._acyclic(name, self.split.synchronous, checked)
        return self._obligations(name)

    def _no_duplication(self) -> Finding:
        checked, aside = deliveries(self.tally, self.aside), self.aside
        hits = [] if aside is None else list(_hits(aside, aside.again, aside.again != NOWHERE))
        if aside is None or not hits:
            return Finding(checked)
        process, position, name = hits[0]
        witness = self._witness(
            "no_duplication", process, name,
            earlier=int(aside.at[aside.names.index(name), process]), position=position,
        )  # fmt: skip
        return Finding(checked, len(hits), witness, listed=hits[:LISTED])

    def _no_creation(self) -> Finding:
        """What nobody sent is an orphan, not a forgery, if the log that would show its send has
        holes, or is not there."""
        checked, aside = deliveries(self.tally, self.aside), self.aside
        if aside is None:
            return Finding(checked)
        logged = np.array([bool(log.segments) for log in self.tally.logs])
        orphan = ~aside.sent & ~(logged[aside.origin] & self.split.complete)
        bad = aside.delivered & ~aside.to
        forged = list(_hits(aside, aside.at, bad & ~orphan[:, None]))
        orphans = list(_hits(aside, aside.at, bad & orphan[:, None]))
        if not forged and not orphans:
            return Finding(checked)
        process, _, name = (forged or orphans)[0]
        witness = self._witness(
            "no_creation", process, name,
            missing=not aside.sent[aside.names.index(name)], unknown=not forged,
        )  # fmt: skip
        return Finding(checked, len(forged), witness, len(orphans), forged[:LISTED])

    def _obligations(self, name: str) -> Finding:
        owed, unmet, those = debts(name, self.tally, self.aside)
        if not unmet:
            return Finding(owed)
        complete = self.split.complete
        settled = self.manifest.quiesced and complete
        first = list(islice(those, LISTED))
        process, message, by = first[0]
        witness = self._witness(
            name, process, message, by=by, unknown=not settled, complete=complete
        )
        if not settled:
            return Finding(owed, 0, witness, unmet)
        return Finding(owed, unmet, witness, listed=[(d.process, None, d.message) for d in first])

    def _order(self, name: str, broken: Broken) -> Finding:
        checked, aside, first = int(self.tally.delivered.sum()), self.aside, broken.first
        if aside is not None:
            checked += int(np.count_nonzero(aside.delivered & aside.to))
        if aside is None or first is None:
            return Finding(checked)
        witness = self._witness(
            name, first.process, aside.names[first.m], first.n, link=first.link,
            missing=not aside.delivered[first.m, first.process],
            unknown=not broken.violations, complete=self.split.complete,
        )  # fmt: skip
        return Finding(checked, broken.violations, witness, broken.doubts, broken.listed)

    def _pairwise(self) -> Finding:
        checked = shared(self.tally, self.aside)
        pairs = pairs_in(self.tally, self.aside, self.split.windows)
        if not pairs:
            return Finding(checked)
        (m, forth), (n, back) = self.split.total.cycle
        one, other = sorted((forth, back))
        witness = self._witness(
            "total_pairwise", other, m, n, link=f.FIRST if one == forth else f.SECOND, by=one,
            exact=all(window.exact for window in self.split.windows),
        )  # fmt: skip
        return Finding(checked, pairs, witness)

    def _gap_free(self) -> Finding:
        checked = deliveries(self.tally, self.aside)
        gaps = gaps_in(self.split)
        if gaps.first is None or gaps.reason is None:
            return Finding(checked)
        process, n = gaps.first
        m, ahead, missing = gaps.reason
        witness = self._witness(
            "total_gap_free", process, m, n, missing=missing, by=ahead,
            unknown=not gaps.many, complete=self.split.complete,
        )  # fmt: skip
        return Finding(checked, gaps.many, witness, gaps.doubts, gaps.listed)

    def _acyclic(self, name: str, knotted: Knotted, checked: int) -> Finding:
        if not knotted.many:
            return Finding(checked)
        return Finding(checked, knotted.many, cycle_of(self.manifest, name, knotted.cycle))

    def _witness(
        self, name: str, process: int, m: Message, n: Message | None = None, **fields: Any
    ) -> dict[str, Any]:
        return witness_of(self.manifest, name, process, m, n, **fields)


def _hits(aside: Aside, at: Any, those: Any) -> Iterator[Hit]:
    """in: message × process: positions, and which ones; out: by process and position"""
    for p in range(aside.members):
        mine = np.flatnonzero(those[:, p])
        for m in mine[np.argsort(at[mine, p], kind="stable")].tolist():
            yield p, int(at[m, p]), aside.names[m]
