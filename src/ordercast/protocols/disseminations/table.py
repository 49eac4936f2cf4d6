"""The disseminations, with what is to be said of each."""

from __future__ import annotations

from ordercast.protocols.disseminations.best_effort import BestEffort
from ordercast.protocols.disseminations.direct import Direct
from ordercast.protocols.disseminations.gossip import Gossip
from ordercast.protocols.disseminations.majority import Majority
from ordercast.protocols.disseminations.majority_acks import MajorityAcks
from ordercast.protocols.disseminations.relay import Relay
from ordercast.protocols.entries import Cost, DisseminationEntry, at_most, exactly

__all__ = ["DISSEMINATIONS"]

_LIVE = ("validity", "agreement", "uniform_agreement")

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
            cost="k copies for k other destinations, 1 network delay",
            counters=exactly("0"),
            carriage=Cost(exactly("k"), exactly("k"), delays=exactly("1")),
            crash="a sender that dies in the middle reaches some and not others",
        ),
        DisseminationEntry(
            name="best_effort",
            layer=BestEffort,
            reliability="best_effort",
            promises=(),
            guarantee="one copy to everyone",
            assumes="perfect links; the sender stays up",
            cost="n-1 copies, 1 network delay",
            counters=exactly("0"),
            carriage=Cost(exactly("n-1"), exactly("n-1"), delays=exactly("1")),
            crash="a sender that dies in the middle reaches some and not others",
        ),
        DisseminationEntry(
            name="relay",
            layer=Relay,
            reliability="reliable",
            promises=("validity", "agreement"),
            guarantee="if one correct process receives it, all do",
            assumes="perfect links",
            cost="at most (n-1)² copies, 1 network delay",
            counters=exactly("0"),
            carriage=Cost(at_most("(n-1)**2"), at_most("(n-1)**2"), delays=at_most("1")),
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
            counters=at_most("n"),
            carriage=Cost(at_most("n*(n-1)"), at_most("n*(n-1)"), delays=at_most("2")),
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
            cost="n-1 payload copies, at most n(n-1) packets of n counters, 2 network delays",
            counters=exactly("n"),
            carriage=Cost(at_most("n*(n-1)"), exactly("n-1"), delays=at_most("2")),
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
            cost="about 2n payload copies, and digests of n counters: at most 4n(n-1) packets",
            counters=exactly("1"),
            carriage=Cost(at_most("4*n*(n-1)"), at_most("(n-1)**2"), delays=None),
            crash="the dead may have delivered what nobody else sees",
            options=("seed",),
        ),
    )
}
