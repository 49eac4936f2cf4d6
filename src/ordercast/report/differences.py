"""What differs between two runs: set-up, traffic, verdicts, deliveries, costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from ordercast.report.costs import cost_of_all
from ordercast.report.facts import facts_of_run
from ordercast.report.history import History, Id, name_of
from ordercast.report.sample import Sample
from ordercast.report.words import count, listing, message_text, property_words, rank, span
from ordercast.trace.verdicts import Outcome

__all__ = [
    "Pair",
    "VerdictPair",
    "cost_pairs",
    "deliveries_that_differ",
    "set_up",
    "traffic",
    "verdict_pairs",
]

_COUNTED = ("Events", "Messages", "Held", "Longest wait", "Ordering metadata")
_NAMED_MAX = 5
_SHARES = {"p50": "median", "p99": "99th percentile", "max": "maximum"}


@dataclass(frozen=True, slots=True)
class Pair:
    name: str
    left: str
    right: str
    note: str = ""
    """The right one in terms of the left, if they are numbers."""

    @property
    def differs(self) -> bool:
        return self.left != self.right


@dataclass(frozen=True, slots=True)
class VerdictPair:
    words: str
    left: Outcome | None
    right: Outcome | None
    sentence: str
    """What proves the worse of the two."""

    @property
    def differs(self) -> bool:
        return self.left != self.right


def set_up(left: Sample, right: Sample) -> list[Pair]:
    """What was chosen for each, the differences first."""
    chosen = [_chosen(sample) for sample in (left, right)]
    pairs = [
        Pair(name, *(words.get(name, "not stated") for words in chosen))
        for name in dict.fromkeys([*chosen[0], *chosen[1]])
    ]
    return sorted(pairs, key=lambda pair: not pair.differs)


def traffic(left: History, right: History) -> str:
    """Did both send the same?"""
    one, other = (
        {message: _to(history, message) for message in history.sends} for history in (left, right)
    )
    if one == other:
        same = (
            "in the same order at each process"
            if _sent(left) == _sent(right)
            else "in another order"
        )
        return f"Both sent the same {count(len(one), 'message')}, {same}."
    common = len(one.items() & other.items())
    return (
        f"They did not send the same: A sent {count(len(one), 'message')} and B {len(other):,}, "
        f"of which {common:,} are the same."
    )


def verdict_pairs(left: Sample, right: Sample) -> list[VerdictPair]:
    one, other = ({v.property: v for v in sample.judged.verdicts} for sample in (left, right))
    pairs = []
    for name in sorted({*one, *other}, key=rank):
        found = [verdicts.get(name) for verdicts in (one, other)]
        told = [v.witness.sentence for v in found if v and v.witness and v.verdict != "holds"]
        first, second = (None if verdict is None else verdict.verdict for verdict in found)
        pairs.append(VerdictPair(property_words(name), first, second, "".join(told[:1])))
    return sorted(pairs, key=lambda pair: not pair.differs)


def deliveries_that_differ(left: History, right: History) -> Iterator[str]:
    """For each process the first place where it delivered something else."""
    one, other = _delivered(left), _delivered(right)
    processes = sorted({*one, *other})
    same = []
    for process in processes:
        name = name_of(left.trace, process)
        pairs = zip_longest(one.get(process, []), other.get(process, []))
        first = next(((i, m, n) for i, (m, n) in enumerate(pairs) if m != n), None)
        if first is None:
            same.append(name)
            continue
        index, m, n = first
        after = f"after {count(index, 'delivery', 'deliveries')} in common" if index else "at once"
        yield f"{name}: {after}, A delivered {_text(m)} and B {_text(n)}."
    if same:
        names = same if len(same) <= _NAMED_MAX else [f"{len(same):,} processes"]
        yield f"{listing(names)} delivered the same in the same order."


def cost_pairs(left: History, right: History) -> list[Pair]:
    """At all processes together; what neither log tells is left out."""
    costs = [cost_of_all(history) for history in (left, right)]
    rows = []
    for name, spreads in (
        ("Latency", [cost.latency_us for cost in costs]),
        ("Time held", [cost.held_us for cost in costs]),
    ):
        for share in _SHARES:
            values = [None if spread is None else getattr(spread, share) for spread in spreads]
            rows.append(_cost(f"{name}, {_SHARES[share]}", values, span))
    for name, values in (
        ("Most held at once", [cost.depth_max for cost in costs]),
        ("Copies, for each message delivered", [cost.copies for cost in costs]),
        ("Control bytes, for each message delivered", [cost.control_bytes for cost in costs]),
    ):
        rows.append(_cost(name, values, lambda value: f"{value:.3g}"))
    return [row for row in rows if row.left or row.right]


def _cost(name: str, values: Sequence[float | None], words: Callable[[float], str]) -> Pair:
    left, right = values
    note = ""
    shown = ["" if value is None else words(value) for value in values]
    if left and right and shown[0] != shown[1]:
        ratio = right / left
        note = f"× {ratio:.2g}" if ratio >= 1.995 else f"{100 * ratio:.0f} %"
    return Pair(name, shown[0], shown[1], note)


def _chosen(sample: Sample) -> dict[str, str]:
    manifest = sample.trace.manifest
    facts = {"Run": manifest.run, "Ordering": manifest.order or "not stated"}
    facts["Dissemination"] = manifest.dissemination or "not stated"
    facts["Came to rest"] = "yes" if manifest.quiesced else "no"
    more = facts_of_run(History(sample.trace), sample.events)
    return facts | {
        fact.name.capitalize(): fact.value for fact in more if fact.name not in _COUNTED
    }


def _to(history: History, message: Id) -> tuple[int, ...] | None:
    return history.sends[message].destinations


def _sent(history: History) -> list[Id]:
    return [event.message for event in history.trace.events if event.kind == "send"]


def _delivered(history: History) -> dict[int, list[Id]]:
    found: dict[int, list[Id]] = {}
    for event in history.trace.events:
        if event.kind == "deliver":
            found.setdefault(event.process, []).append(event.message)
    return found


def _text(message: Id | None) -> str:
    return "nothing more" if message is None else message_text(message)
