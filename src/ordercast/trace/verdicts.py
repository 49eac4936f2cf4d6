"""What a judge says: one verdict per run and property, with what was checked and a witness.

The oracle and the Spark pipeline both speak this language; the report draws it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Literal

import msgspec
from msgspec import Struct

from ordercast.errors import TraceError, UsageError
from ordercast.spelling import did_you_mean
from ordercast.trace.manifest import Manifest

__all__ = [
    "LIVENESS",
    "ORDERS",
    "PROPERTIES",
    "TOTAL",
    "Judgement",
    "Outcome",
    "Summary",
    "Tally",
    "Verdict",
    "Witness",
    "demanded_by",
    "exit_code",
    "order_held",
    "promised",
    "properties_named",
    "properties_of_order",
    "worst",
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
TOTAL = tuple(name for name in PROPERTIES if name.startswith("total_"))
"""All of them together are total order."""

LIVENESS = ("validity", "agreement", "uniform_agreement")
"""What a run that did not come to rest may still make good."""

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

_UNIFORM = ("uniform", "majority", "majority_acks")
"""Disseminations that promise uniform agreement, by the word and by the algorithms' names."""


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
        return worst(verdict.verdict for verdict in self.verdicts if self._promised(verdict))

    @property
    def exit_code(self) -> int:
        return exit_code(self.outcome)

    def to_json(self) -> dict[str, Any]:
        return {
            "runs": self.runs,
            "events": self.events,
            "order_held": self.order_held,
            "outcome": self.outcome,
            "verdicts": [
                {**msgspec.to_builtins(verdict), "promised": self._promised(verdict)}
                for verdict in self.verdicts
            ],
        }

    def _promised(self, verdict: Verdict) -> bool:
        return verdict.property in self.promises.get(verdict.run, ())


class Tally(Struct, frozen=True):
    """What became of one property in many runs."""

    property: str
    holds: int
    """In how many runs it does, and so on."""
    violated: int
    unknown: int
    checked: int
    violations: int


class Summary(Struct, frozen=True):
    """All verdicts on a trace, summed up: however many runs there are, a person can read it."""

    runs: int
    events: int
    order_held: str
    """The weakest over all runs of the strongest order that held in each."""
    outcome: Outcome
    """Of what was promised; see `Judgement.outcome`."""
    promises: int
    """How many of the verdicts are on something that was promised."""
    tallies: tuple[Tally, ...]
    broken: int
    """How many promises do not hold, or may not."""
    worst: tuple[Verdict, ...]
    """The first few of these: violated before unknown, then by run."""
    skipped: int
    """How many rows or files were left out: the verdicts cover the rest."""
    places: tuple[str, ...]
    """Where, and why; the first few of them."""


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """Of several together."""
    met = set(outcomes)
    return "violated" if "violated" in met else "unknown" if "unknown" in met else "holds"


def exit_code(outcome: Outcome) -> int:
    return {"holds": 0, "violated": 1, "unknown": 2}[outcome]


def order_held(verdicts: Iterable[Verdict]) -> str:
    """The strongest order of one run that held, all weaker ones that were judged included."""
    outcomes = {verdict.property: verdict.verdict for verdict in verdicts}
    held = ORDERS[0]
    for order in ORDERS[1:]:
        if order in outcomes:
            if outcomes[order] != "holds":
                break
            held = order
    return held


def properties_of_order(order: str) -> tuple[str, ...]:
    """What must hold when someone promises an order, by a word or by an algorithm's name."""
    word = _word(order)
    if word is None:
        near = did_you_mean(order, _BY_ORDER)
        raise UsageError(f"there is no order {order!r}{near}: choose one of {', '.join(_BY_ORDER)}")
    return _BY_ORDER[word]


def demanded_by(order: str | None, properties: Collection[str]) -> tuple[str, ...] | None:
    """What must hold whatever was promised: what an order implies, or the properties that were
    chosen; None if neither was."""
    chosen = properties_named(properties)
    if order is None:
        return None if chosen == PROPERTIES else chosen
    if not isinstance(order, str):
        raise UsageError(f"an order is a word, such as 'causal', not {order!r}")
    implied, word = properties_of_order(order), _word(order)
    own = {word} if word in PROPERTIES else set(implied).difference(_DELIVERED) or set(implied)
    if own.isdisjoint(chosen):
        needed = " or ".join(sorted(own))
        raise UsageError(f"whether {order} order held cannot be told without judging {needed}")
    return implied


def properties_named(names: Iterable[str]) -> tuple[str, ...]:
    """The same names in our order, if all of them are properties."""
    if isinstance(names, str):
        raise UsageError(f"properties are several names: write [{names!r}]")
    wanted = tuple(names)
    if not wanted:
        raise UsageError(f"nothing is to be judged: choose from {', '.join(PROPERTIES)}")
    for name in wanted:
        if name not in PROPERTIES:
            near = did_you_mean(name, PROPERTIES)
            raise UsageError(
                f"there is no property {name!r}{near}: choose from {', '.join(PROPERTIES)}"
            )
    return tuple(name for name in PROPERTIES if name in wanted)


def _word(order: str) -> str | None:
    """The word behind an order's or an algorithm's name; None if there is none."""
    return next((word for word in (order, order.partition("_")[0]) if word in _BY_ORDER), None)


def promised(manifest: Manifest, judged: Collection[str]) -> tuple[str, ...]:
    """What this run must keep: its manifest's own list, or what the order and the dissemination
    that it names imply, or, where nothing was promised that we know the meaning of, everything up
    to causal order."""
    promises = manifest.extra.get("promises")
    if promises is not None:
        _check_promises(promises, manifest.run)
    else:
        promises = list(_BY_ORDER[_word(manifest.order or "causal") or "causal"])
        if manifest.dissemination in _UNIFORM:
            promises.append("uniform_agreement")
    return tuple(name for name in PROPERTIES if name in promises and name in judged)


def _check_promises(promises: Any, run: str) -> None:
    """One that means nothing to us would never be found broken."""
    strange = [promises]
    if isinstance(promises, list):
        strange = [name for name in promises if name not in PROPERTIES]
    if strange:
        raise TraceError(
            f"the manifest of run {run!r} promises {strange[0]!r}, which is no property: write a "
            f"list of {', '.join(PROPERTIES)}"
        )
