"""What a protocol asks for. Handlers return these and never perform anything themselves.

    ordering  ── Spread ──▶  dissemination  ── Transmit ──▶  host (simulator, sockets)
    ordering  ◀── Arrive ──  dissemination  ◀── receive ───  host
    ordering  ── Deliver ────────────────────────────────▶  host

`Spread` and `Arrive` stay inside a stack; the rest is for the host. They are final, so that those
who perform them ask for their type: `isinstance` says no in ten times the time, and it is asked
ten times for a message.
"""

from __future__ import annotations

from typing import Any, final

from msgspec import Struct

from ordercast.protocols.messages import Message

__all__ = [
    "Accept",
    "Arrive",
    "Deliver",
    "Effect",
    "HostEffect",
    "Spread",
    "StartTimer",
    "Transmit",
]


@final
class Spread(Struct, frozen=True):
    """Bring `item` to the processes in `to`, or to everyone, the sender included, if None."""

    item: Any
    to: tuple[int, ...] | None = None


@final
class Arrive(Struct, frozen=True):
    """`item`, created by `source`, is here and may be counted on."""

    source: int
    item: Any


@final
class Transmit(Struct, frozen=True):
    """Put one copy of `packet` on the link to each process in `to`."""

    to: tuple[int, ...]
    packet: Any


@final
class Accept(Struct, frozen=True):
    """The user's message counts as sent from now on. Most orderings accept it at once."""

    message: Message


@final
class Deliver(Struct, frozen=True):
    """Hand the message to the user."""

    message: Message


@final
class StartTimer(Struct, frozen=True):
    """Call `timer(name)` after `delay_us`; a timer of the same name is replaced. A delay of a few
    milliseconds lets company come: a host may make it longer while company is sure to come, and
    end it at once if somebody waits."""

    name: str
    delay_us: int


HostEffect = Accept | Transmit | Deliver | StartTimer
Effect = Spread | Arrive | HostEffect
