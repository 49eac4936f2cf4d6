"""What each window is asked for the sake of the messages that are set apart."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from ordercast.pipeline.huge.aside import Aside
from ordercast.pipeline.huge.compared import Compared, gaps_of
from ordercast.pipeline.huge.found import Asked, Name, Stripe
from ordercast.pipeline.huge.knowledge import Knowledge
from ordercast.pipeline.huge.spans import both
from ordercast.pipeline.huge.tally import TOTAL, Tally, Window
from ordercast.pipeline.huge.ties import places_of
from ordercast.pipeline.kernels.kernel import Bools

__all__ = ["Asking"]


@dataclass(frozen=True)
class Asking:
    aside: Aside
    tally: Tally
    windows: Sequence[Window]
    complete: bool
    """The log has no holes."""

    def all(self, properties: Collection[str], knowledge: Knowledge) -> list[Asked]:
        """By window."""
        many = len(self.windows)
        gaps: list[list[Stripe]] = [[]] * many
        doubts = gaps
        crossed: list[list[Name]] = [[]] * many
        entangled = crossed
        if any(name in properties for name in TOTAL):
            proofs = np.logical_or(self.aside.delivered, self.complete)
            gaps, doubts = self._stripes(proofs), self._stripes(~proofs)
            crossed = self._places(with_sends=False)
        if "synchronous" in properties:
            entangled = self._places(with_sends=True)
        follow = knowledge.to_follow() if "causal" in properties else {}
        return [
            Asked(gaps[w], doubts[w], crossed[w], entangled[w], follow.get(w, []))
            for w in range(many)
        ]

    def _stripes(self, those: Bools) -> list[list[Stripe]]:
        """The deliveries without those messages set apart that somebody else had before.

        in: message × process
        """
        found: list[list[Stripe]] = [[] for _ in self.windows]
        for q in range(self.aside.members):
            for o, spans in enumerate(gaps_of(self.aside, self.tally, q, those[:, q])):
                for w, one in enumerate(self.windows) if spans else ():
                    here = both([(one.low[o] + 1, one.high[o])], spans)
                    found[w] += [(q, o, first, last) for first, last in here]
        return found

    def _places(self, *, with_sends: bool) -> list[list[Name]]:
        """The messages whose knots must be known."""
        ends = np.array([one.high for one in self.windows]).reshape(-1, self.aside.members)
        found: list[list[Name]] = [[] for _ in self.windows]
        compared = Compared(self.aside, self.tally, with_sends=with_sends)
        for o, place in sorted(places_of(compared)):
            found[int(np.searchsorted(ends[:, o], place))].append((o, place))
        return found
