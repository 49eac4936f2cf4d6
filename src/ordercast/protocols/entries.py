"""What the catalog says of an algorithm: what it promises, what it needs, and what it costs.

Costs are formulas, so that they can be checked: `benchmarks/costs.py` measures what is really sent.
They hold without faults and suspicions, on links quicker than the algorithms' patience.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ordercast.protocols.interface import Destinations, Dissemination, Ordering

__all__ = [
    "Amount",
    "Cost",
    "DisseminationEntry",
    "OrderingEntry",
    "Reliance",
    "at_most",
    "exactly",
]

Reliance = Literal["nobody", "process 0", "everyone"]


@dataclass(frozen=True, slots=True)
class Amount:
    """How many, in a group of n, for a message to k others. Broadcasts have k = n-1."""

    formula: str
    """As Python writes it."""
    exact: bool
    """Always so many; or never more?"""

    def of(self, n: int, k: int | None = None) -> int:
        names = {"n": n, "k": n - 1 if k is None else k}
        return int(eval(self.formula, {"__builtins__": {}}, names))  # noqa: S307 (our own words)

    @property
    def text(self) -> str:
        """The formula as a textbook writes it."""
        return self.formula.replace("**2", "²").replace("*", "")

    def __str__(self) -> str:
        return self.text if self.exact else f"at most {self.text}"


def exactly(formula: str) -> Amount:
    return Amount(formula, exact=True)


def at_most(formula: str) -> Amount:
    return Amount(formula, exact=False)


@dataclass(frozen=True, slots=True)
class Cost:
    """What one message costs when nothing else is under way; when much is, packets are shared."""

    packets: Amount
    payload_copies: Amount
    """Packets that carry the user's payload."""
    delays: Amount | None
    """Network delays until all others deliver it; None where that is a matter of chance."""


@dataclass(frozen=True, slots=True)
class OrderingEntry:
    name: str
    layer: type[Ordering]
    order: str
    """The word that people know; several orderings may give the same order."""
    promises: tuple[str, ...]
    """Properties, by the names of the verdicts, that hold whoever crashes."""
    guarantee: str
    assumes: str
    cost: str
    """For people; it names the formulas that follow."""
    counters: Amount
    """Numbers that it puts beside the user's message in a packet."""
    crash: str
    """What a crash does to it."""
    own: Cost | None = None
    """What it costs, if it talks to chosen processes; otherwise the dissemination decides."""
    reliability: str | None = None
    """What it gives by itself, though a minority crashes; otherwise the dissemination decides."""
    relies_on: Reliance = "nobody"
    """Whose crash leaves undelivered what others send, whatever the dissemination does."""

    @property
    def destinations(self) -> Destinations:
        return self.layer.destinations


@dataclass(frozen=True, slots=True)
class DisseminationEntry:
    name: str
    layer: type[Dissemination]
    reliability: str
    promises: tuple[str, ...]
    """What holds though a minority crashes, if the ordering does not itself wait for the dead."""
    guarantee: str
    assumes: str
    cost: str
    """For people; it names the formulas that follow."""
    counters: Amount
    """Numbers that it puts beside the ordering's item in a packet."""
    carriage: Cost
    """What it costs to bring one item to everyone, or to k others where it can."""
    crash: str
    options: tuple[str, ...] = ()
    """Which of `build`'s options its layer takes."""

    @property
    def destinations(self) -> Destinations:
        return self.layer.destinations
