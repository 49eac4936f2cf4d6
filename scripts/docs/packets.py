"""What the pictures write on the way of a packet: the part of it that the algorithm looks at."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ordercast.protocols.messages import MessageId, message_of
from ordercast.protocols.orderings.total_lamport import Ticket

__all__ = ["concerns", "words"]


def concerns(packet: Any) -> int | None:
    """The sender of the message that a packet carries or is about; None if it is about many."""
    message = message_of(packet)
    about: MessageId | None = getattr(packet, "id", None) if message is None else message.id
    ticket: Ticket | None = getattr(packet, "ticket", None)
    if about is not None:
        return about.origin
    return None if ticket is None else ticket.process


def words(packet: Any) -> str:
    say = _WORDS.get(packet.__struct_config__.tag)
    return "" if say is None else say(packet)


def _row(counts: Iterable[int]) -> str:
    return "[" + " ".join(map(str, counts)) + "]"


def _set(members: Iterable[object]) -> str:
    return "{" + ",".join(map(str, members)) + "}"


def _chained(packet: Any) -> str:
    return f"after {packet.message.id.origin}:{packet.before}" if packet.before else "first"


def _mapped(packet: Any) -> str:
    """Only what the matrix knows: it is zero everywhere else."""
    return _set(
        f"{origin}:{number}→p{to}"
        for origin, row in enumerate(packet.matrix)
        for to, number in enumerate(row)
        if number
    )


def _release(packet: Any) -> str:
    return "release" if message_of(packet) is not None else "empty release"


def _rumour(packet: Any) -> str:
    return "fetched" if packet.hops == 255 else f"hop {packet.hops}"


def _digest(packet: Any) -> str:
    return _row(packet.counts) + ("?" if packet.asks else "")


_WORDS: dict[str, Callable[[Any], str]] = {
    "fifo": _chained,
    "causal_vector": lambda packet: _row(packet.stamp),
    "causal_history": lambda packet: _set(packet.dependencies),
    "causal_matrix": _mapped,
    "cc_request": lambda packet: "request",
    "sync_ask": lambda packet: "ask",
    "sync_grant": lambda packet: "grant",
    "sync_ack": lambda packet: "ack",
    "tc_request": lambda packet: "request",
    "tc_sequenced": lambda packet: f"after {packet.before}" if packet.before else "first",
    "tl_request": lambda packet: "ask ({},{})".format(*packet.ticket),
    "tl_ack": lambda packet: "ok",
    "tl_release": _release,
    "ts_announce": lambda packet: f"time {packet.time}",
    "ts_propose": lambda packet: f"{packet.time}?",
    "ts_final": lambda packet: f"final {packet.time}",
    "tk_vote": lambda packet: _row(packet.cut.counts),
    "tk_round": lambda packet: f"round {packet.round}",
    "tk_decided": lambda packet: "decided",
    "tk_pull": lambda packet: "pull",
    "maj_copy": lambda packet: _set(packet.forwarders),
    "maj_ask": lambda packet: "ask",
    "maj_confirm": lambda packet: "confirm",
    "acks_data": lambda packet: _row(packet.counts),
    "acks_counts": lambda packet: _row(packet.counts),
    "acks_pull": lambda packet: "pull",
    "gos_rumour": _rumour,
    "gos_digest": _digest,
}
