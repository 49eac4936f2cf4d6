"""What one member has counted, and when a group is at rest.

Source text 003 stops a process once it has sent and delivered its own number of messages, which
strands whoever still needs something from it. Here nobody stops before everybody is at rest.

Counters are read one member after the other, so one look proves nothing: a packet may travel
behind the reader's back. Two looks, the second begun when the first was over, that see the same
counters do: these only grow, so nothing moved between the two (Mattern 1987, four counters).
A protocol that may yet act on a timer is not at rest either; they start one only when they need it.
Nor is one that may yet act on a suspicion: everyone has to suspect the dead and nobody else.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

__all__ = ["Counters", "LinkCounters", "at_rest"]


class LinkCounters(Struct, frozen=True):
    """One member's end of the link to one other."""

    handed: int = 0
    received: int = 0
    in_air: int = 0
    unacknowledged: int = 0


class Counters(Struct, frozen=True):
    sent: int
    """Messages of the user here."""
    delivered: int
    held: int
    held_max: int
    links: tuple[LinkCounters, ...]
    """By process; one's own place stays zero."""
    timers: int = 0
    """Those of the protocol that are running."""
    finished: bool = True
    """Everything that this member was to send is sent."""
    suspected: tuple[int, ...] = ()
    """Who is thought to be down."""
    waiting: tuple[str, ...] = ()
    """Some of the held messages, and what they wait for."""

    @property
    def handed(self) -> int:
        return sum(link.handed for link in self.links)

    @property
    def received(self) -> int:
        return sum(link.received for link in self.links)

    @property
    def in_air(self) -> int:
        return sum(link.in_air for link in self.links)

    @property
    def unacknowledged(self) -> int:
        return sum(link.unacknowledged for link in self.links)


def at_rest(first: Mapping[int, Counters], second: Mapping[int, Counters]) -> bool:
    """Whether two consecutive looks at the living members prove that nothing moves any more.

    Whoever is not in them is dead: what was meant for them, or came from them, does not count.
    """
    return first == second and all(
        mine.finished
        and not mine.timers
        and set(mine.suspected) == set(range(len(mine.links))) - second.keys()
        and all(_quiet(mine.links[peer], second[peer].links[me]) for peer in second)
        for me, mine in second.items()
    )


def _quiet(mine: LinkCounters, theirs: LinkCounters) -> bool:
    return not mine.in_air and not mine.unacknowledged and mine.handed == theirs.received
