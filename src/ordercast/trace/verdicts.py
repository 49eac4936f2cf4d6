"""What a judge says: one verdict per run and property, with what was checked and a witness.

The oracle and the Spark pipeline both speak this language; the report draws it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Literal

import msgspec
from msgspec import Struct

from ordercast.errors import UsageError
from ordercast.trace.manifest import Manifest

__all__ = [
    "ORDERS",
    "PROPERTIES",
    "Judgement",
    "Outcome",
    "Verdict",
    "Witness",
    "order_held",
    "promised",
    "properties_of_order",
]

Outcome = Literal["holds", "violated", "unknown"]

PROPERTIES = (
    "no_duplication",
    "no_creation",
    "validity",
    "agreement",
    "uniform_agreement",
    "fifo",
    "causal",
    "total_pairwise",
    "total_acyclic",
    "total_gap_free",
    "synchronous",
)

ORDERS = ("async", "fifo", "causal", "synchronous")
"""The ladder, weakest first. `async` is what is left when nothing stronger held."""

_DELIVERED = ("no_duplication", "no_creation", "validity", "agreement")
_BY_ORDER: dict[str, tuple[str, ...]] = {
    "unordered": _DELIVERED,
    "async": _DELIVERED,
    "fifo": (*_DELIVERED, "fifo"),
    "causal": (*_DELIVERED, "fifo", "causal"),
    "synchronous": (*_DELIVERED, "fifo", "causal", "synchronous"),
    "total": (*_DELIVERED, "total_pairwise", "total_acyclic", "total_gap_free"),
}


class Witness(Struct, frozen=True):
    """The smallest part of the run that proves the verdict, and the sentence that says so."""

    process: int
    messages: tuple[str, ...]
    sentence: str


class Verdict(Struct, frozen=True):
    run: str
    property: str
    verdict: Outcome
    checked: int
    """How many facts were really looked at, so that an empty pass is visible."""
    violations: int
    witness: Witness | None = None


class Judgement(Struct, frozen=True):
    """All verdicts on a trace."""

    runs: int
    events: int
    verdicts: tuple[Verdict, ...]
    promises: dict[str, tuple[str, ...]]
    """For each run, the properties that it must have for the trace to pass."""
    skipped: tuple[str, ...] = ()
    """Where rows were left out, and why: the verdicts cover the rest."""

    @property
    def order_held(self) -> str:
        """The weakest over all runs of the strongest order that held in each."""
        by_run: dict[str, list[Verdict]] = {}
        for verdict in self.verdicts:
            by_run.setdefault(verdict.run, []).append(verdict)
        return min(map(order_held, by_run.values()), key=ORDERS.index, default=ORDERS[0])

    @property
    def outcome(self) -> Outcome:
        """Violated if a promise was broken, unknown if one could not be judged."""
        judged = {v.verdict for v in self.verdicts if v.property in self.promises.get(v.run, ())}
        return "violated" if "violated" in judged else "unknown" if "unknown" in judged else "holds"

    @property
    def exit_code(self) -> int:
        return {"holds": 0, "violated": 1, "unknown": 2}[self.outcome]

    def to_json(self) -> dict[str, Any]:
        return {
            "runs": self.runs,
            "events": self.events,
            "order_held": self.order_held,
            "verdicts": [msgspec.to_builtins(verdict) for verdict in self.verdicts],
        }


def order_held(verdicts: Iterable[Verdict]) -> str:
    """The strongest order of one run that held, all weaker ones included."""
    outcomes = {verdict.property: verdict.verdict for verdict in verdicts}
    held = ORDERS[0]
    for order in ORDERS[1:]:
        if outcomes.get(order) != "holds":
            break
        held = order
    return held


def properties_of_order(order: str) -> tuple[str, ...]:
    """What must hold when someone promises an order, by a word or by an algorithm's name."""
    word = _word(order)
    if word is None:
        raise UsageError(f"there is no order {order!r}: choose one of {', '.join(_BY_ORDER)}")
    return _BY_ORDER[word]


def _word(order: str) -> str | None:
    """The word behind an order's or an algorithm's name; None if there is none."""
    return next((word for word in (order, order.partition("_")[0]) if word in _BY_ORDER), None)


def promised(manifest: Manifest, judged: Collection[str]) -> tuple[str, ...]:
    """What this run must keep: its manifest's own list, or what the order it names implies,
    or, where nothing was promised that we know the meaning of, everything up to causal order."""
    promises = manifest.extra.get("promises")
    if not isinstance(promises, list):
        promises = _BY_ORDER[_word(manifest.order or "causal") or "causal"]
    return tuple(name for name in PROPERTIES if name in promises and name in judged)
