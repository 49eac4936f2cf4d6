"""The orderings, with what is to be said of each."""

from __future__ import annotations

from ordercast.protocols.entries import Cost, OrderingEntry, at_most, exactly
from ordercast.protocols.orderings.causal_coordinator import CausalCoordinator
from ordercast.protocols.orderings.causal_history import CausalHistory
from ordercast.protocols.orderings.causal_matrix import CausalMatrix
from ordercast.protocols.orderings.causal_vector import CausalVector
from ordercast.protocols.orderings.fifo import Fifo
from ordercast.protocols.orderings.synchronous import Synchronous
from ordercast.protocols.orderings.total_consensus import TotalConsensus
from ordercast.protocols.orderings.total_coordinator import TotalCoordinator
from ordercast.protocols.orderings.total_lamport import TotalLamport
from ordercast.protocols.orderings.total_skeen import TotalSkeen
from ordercast.protocols.orderings.unordered import Unordered

__all__ = ["ORDERINGS"]

_SAFE = ("no_duplication", "no_creation")
_CAUSAL = (*_SAFE, "fifo", "causal")
_TOTAL = ("total_pairwise", "total_acyclic", "total_gap_free")

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
            counters=exactly("0"),
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
            counters=exactly("1"),
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
            counters=exactly("n"),
            crash="waits for predecessors that the dissemination lost with their sender",
        ),
        OrderingEntry(
            name="causal_history",
            layer=CausalHistory,
            order="causal",
            promises=_CAUSAL,
            guarantee="no message overtakes one that happened before it",
            assumes="perfect links, fixed group",
            cost="at most 2n counters a message: the ids of its direct dependencies",
            counters=at_most("2*n"),
            crash="waits for predecessors that the dissemination lost with their sender",
        ),
        OrderingEntry(
            name="causal_matrix",
            layer=CausalMatrix,
            order="causal",
            promises=_CAUSAL,
            guarantee="no message overtakes one that happened before it, for any destinations",
            assumes="perfect links, fixed group",
            cost="n² counters a message",
            counters=exactly("n**2"),
            crash="waits for predecessors that were lost with their sender",
        ),
        OrderingEntry(
            name="causal_coordinator",
            layer=CausalCoordinator,
            order="causal",
            promises=(*_CAUSAL, *_TOTAL),
            guarantee="causal and total order, all through process 0",
            assumes="perfect FIFO links; process 0 stays up",
            cost="at most n packets, 2 network delays: one more hop, through process 0",
            counters=exactly("0"),
            crash="blocks when process 0 dies; its last message may reach only some",
            relies_on="process 0",
            own=Cost(at_most("n"), at_most("n"), delays=at_most("2")),
        ),
        OrderingEntry(
            name="synchronous",
            layer=Synchronous,
            order="synchronous",
            promises=(*_CAUSAL, "synchronous"),
            guarantee="as if each message were sent and delivered in one moment",
            assumes="perfect links; partners stay up",
            cost="2 packets for a big message, 3 for a small one; the next message waits",
            counters=exactly("0"),
            crash="blocks whoever is in a rendezvous with the dead",
            relies_on="everyone",
            own=Cost(at_most("3"), exactly("1"), delays=at_most("3")),
        ),
        OrderingEntry(
            name="total_coordinator",
            layer=TotalCoordinator,
            order="total",
            promises=(*_CAUSAL, *_TOTAL),
            guarantee="one sequence for all, which extends causality",
            assumes="perfect links; process 0 stays up",
            cost="at most n packets, 2 network delays: one more hop, through process 0; 1 id",
            counters=at_most("2"),
            crash="blocks when process 0 dies; its last message may reach only some",
            relies_on="process 0",
            own=Cost(at_most("n"), at_most("n"), delays=at_most("2")),
        ),
        OrderingEntry(
            name="total_lamport",
            layer=TotalLamport,
            order="total",
            promises=(*_CAUSAL, *_TOTAL),
            guarantee="one sequence for all, by tickets, which extends causality",
            assumes="perfect FIFO links; nobody crashes",
            cost="3(n-1) packets, 3 network delays; one message at a time in the whole group",
            counters=exactly("2"),
            crash="blocks when anyone dies, since everyone's word is needed",
            relies_on="everyone",
            own=Cost(exactly("3*(n-1)"), exactly("k"), delays=exactly("3")),
        ),
        OrderingEntry(
            name="total_skeen",
            layer=TotalSkeen,
            order="total",
            promises=(*_SAFE, *_TOTAL),
            guarantee="one sequence for all, by agreed stamps, for any destinations",
            assumes="perfect links; participants stay up",
            cost="3k packets for k other destinations, 3 network delays",
            counters=exactly("1"),
            crash="what the dead had a part in stays tentative, and later messages wait behind it",
            relies_on="everyone",
            own=Cost(exactly("3*k"), exactly("k"), delays=exactly("3")),
        ),
        OrderingEntry(
            name="total_consensus",
            layer=TotalConsensus,
            order="total",
            reliability="uniform",
            promises=(*_CAUSAL, *_TOTAL),
            guarantee="one sequence for all, which extends causality and outlives any minority",
            assumes="perfect links; fewer than half crash; crashes are suspected",
            cost="n²-1 packets at most, 3 network delays; n-1 payload copies",
            counters=exactly("0"),
            crash="goes on while more than half are up, whoever they are",
            own=Cost(at_most("n**2-1"), exactly("n-1"), delays=at_most("3")),
        ),
    )
}
