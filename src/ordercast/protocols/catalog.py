"""What exists. Everything that lists algorithms (command line, README, tests) reads it here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from ordercast.errors import UsageError
from ordercast.protocols.disseminations.best_effort import BestEffort
from ordercast.protocols.disseminations.direct import Direct
from ordercast.protocols.interface import Destinations, Dissemination, Ordering
from ordercast.protocols.orderings.causal_vector import CausalVector
from ordercast.protocols.orderings.fifo import Fifo
from ordercast.protocols.orderings.unordered import Unordered
from ordercast.protocols.stack import Stack

__all__ = [
    "DISSEMINATIONS",
    "ORDERINGS",
    "DisseminationEntry",
    "OrderingEntry",
    "build",
    "choose",
    "promises",
    "refusal",
]


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

    @property
    def destinations(self) -> Destinations:
        return self.layer.destinations


@dataclass(frozen=True, slots=True)
class DisseminationEntry:
    name: str
    layer: type[Dissemination]
    reliability: str
    promises: tuple[str, ...]
    promises_without_crash: tuple[str, ...]
    guarantee: str
    assumes: str
    cost: str

    @property
    def destinations(self) -> Destinations:
        return self.layer.destinations


Entry = TypeVar("Entry")

_SAFE = ("no_duplication", "no_creation")

ORDERINGS = {
    entry.name: entry
    for entry in (
        OrderingEntry(
            name="unordered",
            layer=Unordered,
            order="unordered",
            promises=_SAFE,
            guarantee="each message once, in any order",
            assumes="perfect links",
            cost="nothing",
        ),
        OrderingEntry(
            name="fifo",
            layer=Fifo,
            order="fifo",
            promises=(*_SAFE, "fifo"),
            guarantee="what one process sends arrives in the order it was sent",
            assumes="perfect links",
            cost="1 counter a message",
        ),
        OrderingEntry(
            name="causal_vector",
            layer=CausalVector,
            order="causal",
            promises=(*_SAFE, "fifo", "causal"),
            guarantee="no message overtakes one that happened before it",
            assumes="perfect links, fixed group",
            cost="n counters a message",
        ),
    )
}

DISSEMINATIONS = {
    entry.name: entry
    for entry in (
        DisseminationEntry(
            name="direct",
            layer=Direct,
            reliability="best_effort",
            promises=(),
            promises_without_crash=("validity", "agreement", "uniform_agreement"),
            guarantee="one copy to each destination",
            assumes="perfect links; the sender stays up",
            cost="k copies for k other destinations",
        ),
        DisseminationEntry(
            name="best_effort",
            layer=BestEffort,
            reliability="best_effort",
            promises=(),
            promises_without_crash=("validity", "agreement", "uniform_agreement"),
            guarantee="one copy to everyone",
            assumes="perfect links; the sender stays up",
            cost="n-1 copies",
        ),
    )
}


def refusal(ordering: OrderingEntry, dissemination: DisseminationEntry) -> str | None:
    """Why the two cannot be combined; None if they can."""
    return None


def build(ordering: str, dissemination: str, me: int, size: int) -> Stack:
    """One member's protocol object."""
    upper, lower = _find(ORDERINGS, ordering), _find(DISSEMINATIONS, dissemination)
    if (reason := refusal(upper, lower)) is not None:
        raise UsageError(reason)
    if size < 1 or not 0 <= me < size:
        raise UsageError(f"process {me} cannot be in a group of {size}")
    return Stack(upper.layer(me, size), lower.layer(me, size))


def choose(order: str) -> tuple[str, str]:
    """The names of the ordering and dissemination that best give an order people know by a word.

    An ordering's own name is taken as it is.
    """
    for entry in ORDERINGS.values():
        if order in (entry.name, entry.order):
            return entry.name, "direct" if entry.destinations == "any" else "best_effort"
    words = sorted({entry.order for entry in ORDERINGS.values()} | set(ORDERINGS))
    raise UsageError(f"there is no order {order!r}: choose one of {', '.join(words)}")


def promises(ordering: str, dissemination: str, *, crashes: bool) -> tuple[str, ...]:
    """The properties that this combination promises, by the names of the verdicts."""
    upper, lower = _find(ORDERINGS, ordering), _find(DISSEMINATIONS, dissemination)
    return upper.promises + lower.promises + (() if crashes else lower.promises_without_crash)


def _find(entries: dict[str, Entry], name: str) -> Entry:
    if name not in entries:
        raise UsageError(f"there is no {name!r} in the catalog: choose one of {', '.join(entries)}")
    return entries[name]
