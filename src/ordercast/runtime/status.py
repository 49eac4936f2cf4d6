"""How a member is doing, read from what it counts anyway; nothing is counted for this alone.

Where a member comes back with its journal, `sent`, `delivered` and the bytes go on where they were;
other counts begin anew with the process.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec import Struct

from ordercast.runtime.handshakes import Reason
from ordercast.runtime.holds import Hold, holds

if TYPE_CHECKING:
    from ordercast.runtime.group import Group
    from ordercast.runtime.journal import Journal
    from ordercast.runtime.node import Node
    from ordercast.runtime.peer import Peer

__all__ = ["JournalStatus", "PeerStatus", "Status", "status_of"]

HOLDS_MAX = 20


class PeerStatus(Struct, frozen=True):
    """One other member, and the link with it."""

    name: str
    connected: bool
    suspected: bool
    dead: bool
    refused: str | None
    """What it said when it hung up for good."""
    trouble: str | None
    """What stood in the way when it was last dialled; None where it is the one that dials."""
    connections: int
    """How many there have been: every one after the first is a reconnect."""
    packets_sent: int
    packets_received: int
    unacknowledged_packets: int
    unacknowledged_bytes: int
    undelivered_bundles: int
    """Of our bundles, those it is not known to have delivered."""
    window_used_bytes: int
    """Of our messages, what its application has yet to take."""


class JournalStatus(Struct, frozen=True):
    directory: str
    segment: int
    segment_bytes: int
    written_bytes: int
    commits: int


class Status(Struct, frozen=True, kw_only=True):
    group: str
    me: str
    algorithm: str
    pid: int
    members: tuple[str, ...]
    present: tuple[str, ...]
    suspected: tuple[str, ...]
    dead: tuple[str, ...]
    leader: str | None
    sent: int
    """Messages that have left; `waiting` more are about to."""
    waiting: int
    bundles_sent: int
    bytes_sent: int
    delivered: int
    """The last position."""
    bundles_delivered: int
    bytes_delivered: int
    queued: int
    """Messages delivered, and not taken by the application yet."""
    queued_bytes: int
    taken: int
    """The position up to which the application has everything."""
    held: int
    """Bundles that have arrived and may not be delivered yet."""
    why_held: tuple[Hold, ...]
    """Some of them."""
    window_bytes: int
    window_used_bytes: int
    """What the slowest member has yet to take of ours; at the limit, `send` waits."""
    undelivered_bundles: int
    """Of our own, those that have not been delivered here."""
    refused_connections: int
    failed_handshakes: dict[Reason, int]
    """By reason; without TLS there are none."""
    loop_lag_s: float
    peers: tuple[PeerStatus, ...]
    journal: JournalStatus | None


def status_of(group: Group) -> Status:
    node, view = group._node, group.view
    core = node.core
    queued = sum(len(bundle.payloads) for bundle in core.queue) - group._reader.taken
    queued_bytes = sum(bundle.cost for bundle in core.queue)
    held = core.stack.held()
    lacking = _lacking(node)
    return Status(
        group=group.name,
        me=group.me,
        algorithm=group.algorithm,
        pid=os.getpid(),
        members=view.members,
        present=view.present,
        suspected=view.suspected,
        dead=view.dead,
        leader=view.leader,
        sent=core.sent,
        waiting=len(node.outgoing),
        bundles_sent=node.bundles_sent,
        bytes_sent=node.bytes_sent,
        delivered=core.delivered,
        bundles_delivered=node.handout.bundles_taken + len(core.queue),
        bytes_delivered=sum(core.taken) + queued_bytes,
        queued=queued,
        queued_bytes=queued_bytes,
        taken=core.delivered - queued,
        held=len(held),
        why_held=tuple(holds(core, node.names)[:HOLDS_MAX]),
        window_bytes=node.settings.window_bytes,
        window_used_bytes=core.standing.outstanding(),
        undelivered_bundles=lacking[node.me],
        refused_connections=node.reception.door.turned_away,
        failed_handshakes={
            reason: count
            for reason, count in node.reception.door.handshakes.failed.items()
            if count
        },
        loop_lag_s=node.pulse.lag_s,
        peers=tuple(_peer(node, peer, lacking) for peer in node.company),
        journal=_journal(node.journal),
    )


def _peer(node: Node, peer: Peer, lacking: list[int]) -> PeerStatus:
    link, standing = peer.link, node.core.standing
    return PeerStatus(
        name=peer.name,
        connected=link.open,
        suspected=peer.suspected,
        dead=peer.dead,
        refused=peer.refused,
        trouble=None if link.open else peer.trouble,
        connections=peer.connections,
        packets_sent=link.sent,
        packets_received=link.received,
        unacknowledged_packets=link.unacknowledged,
        unacknowledged_bytes=link.bytes,
        undelivered_bundles=lacking[peer.index],
        window_used_bytes=standing.owed[peer.index] - standing.taken[peer.index],
    )


def _lacking(node: Node) -> list[int]:
    """By member, how many of our bundles it has yet to deliver, as far as is known."""
    counts = [0] * len(node.names)
    for bits in node.core.standing.lacking.values():
        for process in range(len(counts)):
            counts[process] += bits >> process & 1
    return counts


def _journal(journal: Journal | None) -> JournalStatus | None:
    if journal is None:
        return None
    number, filled_bytes = journal.segment
    return JournalStatus(
        str(journal.directory), number, filled_bytes, journal.written_bytes, journal.commits
    )
