"""What exists. Everything that lists algorithms (command line, README, tests) reads it here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from ordercast.errors import UsageError
from ordercast.protocols.disseminations.best_effort import BestEffort
from ordercast.protocols.disseminations.direct import Direct
from ordercast.protocols.disseminations.gossip import Gossip
from ordercast.protocols.disseminations.majority import Majority
from ordercast.protocols.disseminations.majority_acks import MajorityAcks
from ordercast.protocols.disseminations.relay import Relay
from ordercast.protocols.interface import Destinations, Dissemination, Ordering
from ordercast.protocols.orderings.causal_coordinator import CausalCoordinator
from ordercast.protocols.orderings.causal_history import CausalHistory
from ordercast.protocols.orderings.causal_matrix import CausalMatrix
from ordercast.protocols.orderings.causal_vector import CausalVector
from ordercast.protocols.orderings.fifo import Fifo
from ordercast.protocols.orderings.synchronous import Synchronous
from ordercast.protocols.orderings.total_coordinator import TotalCoordinator
from ordercast.protocols.orderings.total_lamport import TotalLamport
from ordercast.protocols.orderings.total_skeen import TotalSkeen
from ordercast.protocols.orderings.unordered import Unordered
from ordercast.protocols.stack import Stack

__all__ = [
    "DISSEMINATIONS",
    "ORDERINGS",
    "DisseminationEntry",
    "OrderingEntry",
    "build",
    "choose",
    "combinations",
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
    crash: str
    """What a crash does to it."""

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
    crash: str
    options: tuple[str, ...] = ()
    """Which of `build`'s options its layer takes."""

    @property
    def destinations(self) -> Destinations:
        return self.layer.destinations


Entry = TypeVar("Entry")

_SAFE = ("no_duplication", "no_creation")
_CAUSAL = (*_SAFE, "fifo", "causal")
_TOTAL = ("total_pairwise", "total_acyclic", "total_gap_free")
_LIVE = ("validity", "agreement", "uniform_agreement")

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
            crash="nobody waits for the dead",
        ),
        OrderingEntry(
            name="fifo",
            layer=Fifo,
            order="fifo",
            promises=(*_SAFE, "fifo"),
            guarantee="what one process sends arrives in the order it was sent",
            assumes="perfect links",
            cost="1 counter a message",
            crash="a gap that the dead left is never filled",
        ),
        OrderingEntry(
            name="causal_vector",
            layer=CausalVector,
            order="causal",
            promises=_CAUSAL,
            guarantee="no message overtakes one that happened before it",
            assumes="perfect links, fixed group",
            cost="n counters a message",
            crash="waits for predecessors that the dissemination lost with their sender",
        ),
        OrderingEntry(
            name="causal_history",
            layer=CausalHistory,
            order="causal",
            promises=_CAUSAL,
            guarantee="no message overtakes one that happened before it",
            assumes="perfect links, fixed group",
            cost="the ids of 1 to n direct dependencies a message",
            crash="waits for predecessors that the dissemination lost with their sender",
        ),
        OrderingEntry(
            name="causal_matrix",
            layer=CausalMatrix,
            order="causal",
            promises=_CAUSAL,
            guarantee="no message overtakes one that happened before it, for any destinations",
            assumes="perfect links, fixed group",
            cost="n·n counters a message",
            crash="waits for predecessors that were lost with their sender",
        ),
        OrderingEntry(
            name="causal_coordinator",
            layer=CausalCoordinator,
            order="causal",
            promises=(*_CAUSAL, *_TOTAL),
            guarantee="causal and total order, all through process 0",
            assumes="perfect FIFO links; process 0 stays up",
            cost="1 more hop through process 0",
            crash="blocks when process 0 dies; its last message may reach only some",
        ),
        OrderingEntry(
            name="synchronous",
            layer=Synchronous,
            order="synchronous",
            promises=(*_CAUSAL, "synchronous"),
            guarantee="as if each message were sent and delivered in one moment",
            assumes="perfect links; partners stay up",
            cost="2 messages for a big one, 3 for a small one; the next one waits",
            crash="blocks whoever is in a rendezvous with the dead",
        ),
        OrderingEntry(
            name="total_coordinator",
            layer=TotalCoordinator,
            order="total",
            promises=(*_CAUSAL, *_TOTAL),
            guarantee="one sequence for all, which extends causality",
            assumes="perfect links; process 0 stays up",
            cost="1 more hop through process 0, 1 id a message",
            crash="blocks when process 0 dies; its last message may reach only some",
        ),
        OrderingEntry(
            name="total_lamport",
            layer=TotalLamport,
            order="total",
            promises=(*_CAUSAL, *_TOTAL),
            guarantee="one sequence for all, by tickets, which extends causality",
            assumes="perfect FIFO links; nobody crashes",
            cost="3(n-1) messages, 3 network delays",
            crash="blocks when anyone dies, since everyone's word is needed",
        ),
        OrderingEntry(
            name="total_skeen",
            layer=TotalSkeen,
            order="total",
            promises=(*_SAFE, *_TOTAL),
            guarantee="one sequence for all, by agreed stamps, for any destinations",
            assumes="perfect links; participants stay up",
            cost="3k messages for k other destinations, 3 network delays",
            crash="what the dead had a part in stays tentative, and later messages wait behind it",
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
            guarantee="one copy to each destination",
            assumes="perfect links; the sender stays up",
            cost="k copies for k other destinations",
            crash="a sender that dies in the middle reaches some and not others",
        ),
        DisseminationEntry(
            name="best_effort",
            layer=BestEffort,
            reliability="best_effort",
            promises=(),
            guarantee="one copy to everyone",
            assumes="perfect links; the sender stays up",
            cost="n-1 copies",
            crash="a sender that dies in the middle reaches some and not others",
        ),
        DisseminationEntry(
            name="relay",
            layer=Relay,
            reliability="reliable",
            promises=("validity", "agreement"),
            guarantee="if one correct process receives it, all do",
            assumes="perfect links",
            cost="(n-1)² copies",
            crash="the dead may have delivered what nobody else sees",
        ),
        DisseminationEntry(
            name="majority",
            layer=Majority,
            reliability="uniform",
            promises=_LIVE,
            guarantee="if any process delivers it, all correct ones do",
            assumes="perfect links; fewer than half crash",
            cost="at most n(n-1) copies, 2 network delays",
            crash="goes on while more than half are up",
            options=("threshold",),
        ),
        DisseminationEntry(
            name="majority_acks",
            layer=MajorityAcks,
            reliability="uniform",
            promises=_LIVE,
            guarantee="if any process delivers it, all correct ones do",
            assumes="perfect links; fewer than half crash",
            cost="n-1 payload copies, at most n(n-1) vectors of n counters, 2 network delays",
            crash="goes on while more than half are up",
            options=("threshold",),
        ),
        DisseminationEntry(
            name="gossip",
            layer=Gossip,
            reliability="reliable",
            promises=("validity", "agreement"),
            guarantee="if one correct process receives it, all do in the end",
            assumes="perfect links; crashes are suspected in the end",
            cost="about 2 copies from each process, then digests of n counters",
            crash="the dead may have delivered what nobody else sees",
            options=("seed",),
        ),
    )
}


def refusal(ordering: OrderingEntry, dissemination: DisseminationEntry) -> str | None:
    """Why the two cannot be combined; None if they can."""
    if ordering.layer.needs_direct and dissemination.destinations == "everyone":
        return (
            f"{ordering.name} talks to chosen processes, and {dissemination.name} carries only "
            "what is for everyone: use it over 'direct'"
        )
    return None


def combinations() -> list[tuple[str, str]]:
    """The names of every ordering and dissemination that go together."""
    return [
        (ordering.name, dissemination.name)
        for ordering in ORDERINGS.values()
        for dissemination in DISSEMINATIONS.values()
        if refusal(ordering, dissemination) is None
    ]


def build(
    ordering: str,
    dissemination: str,
    me: int,
    size: int,
    *,
    threshold: int | None = None,
    seed: int | None = None,
) -> Stack:
    """One member's protocol object. `threshold` is how many must hold a message before a uniform
    dissemination counts on it; `seed` feeds the choices of gossip."""
    upper, lower = _find(ORDERINGS, ordering), _find(DISSEMINATIONS, dissemination)
    if (reason := refusal(upper, lower)) is not None:
        raise UsageError(reason)
    if size < 1 or not 0 <= me < size:
        raise UsageError(f"process {me} cannot be in a group of {size}")
    if threshold is not None and "threshold" not in lower.options:
        raise UsageError(f"{dissemination} waits for no majority, so it takes no threshold")
    given = {"threshold": threshold, "seed": seed}
    options: dict[str, Any] = {
        name: given[name] for name in lower.options if given[name] is not None
    }
    return Stack(upper.layer(me, size), lower.layer(me, size, **options))


def choose(order: str) -> tuple[str, str]:
    """The names of the ordering and dissemination that best give an order people know by a word.

    An ordering's own name is taken as it is.
    """
    for entry in ORDERINGS.values():
        if order in (entry.name, entry.order):
            simple = entry.destinations == "everyone"
            return entry.name, "best_effort" if simple else "direct"
    words = sorted({entry.order for entry in ORDERINGS.values()} | set(ORDERINGS))
    raise UsageError(f"there is no order {order!r}: choose one of {', '.join(words)}")


def promises(ordering: str, dissemination: str, *, crashes: bool) -> tuple[str, ...]:
    """The properties that this combination promises, by the names of the verdicts.

    Without a crash everyone delivers everything. With one, an ordering that talks to chosen
    processes may wait for the dead for ever, and only a dissemination that outlives its senders
    keeps its word.
    """
    upper, lower = _find(ORDERINGS, ordering), _find(DISSEMINATIONS, dissemination)
    return upper.promises + (lower.promises if crashes else _LIVE)


def _find(entries: dict[str, Entry], name: str) -> Entry:
    if name not in entries:
        raise UsageError(f"there is no {name!r} in the catalog: choose one of {', '.join(entries)}")
    return entries[name]
