"""What the members of a generation send each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from ordercast.errors import PeerError
from ordercast.protocols.messages import Count
from ordercast.replica.rolls import Change
from ordercast.runtime.frames import PAYLOAD_BYTES_MAX

__all__ = ["COMMAND_BYTES_MAX", "Commands", "Message", "Met", "decode", "encode", "packed"]

COMMAND_BYTES_MAX = PAYLOAD_BYTES_MAX - 256
PACK_BYTES = 64 * 2**10
"""With so many bytes a message is full."""
PACK_MAX = 1024

_Bodies = Annotated[list[bytes | None], Meta(min_length=1, max_length=PACK_MAX)]


class Commands(Struct, frozen=True, array_like=True, tag="c", forbid_unknown_fields=True):
    """Some that were given in a row."""

    session: str
    """Which start of their sender they are from."""
    first: Count
    """How many had been given there, with the first one: by that its sender knows what it has to
    send again in another generation."""
    bodies: _Bodies
    """None for one that does nothing: somebody wants to know when its turn has come."""


class Met(Struct, frozen=True, array_like=True, tag="m", forbid_unknown_fields=True):
    """In the first generation, before anything is carried out: whom its sender has met. When all
    have met the same, the group has begun."""

    lives: dict[str, str]


Message = Commands | Change | Met
_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)


def packed(session: str, first: int, bodies: Sequence[bytes | None]) -> list[bytes]:
    """As few messages as they fit into."""
    messages, begin, size = [], 0, 0
    for place, body in enumerate(bodies):
        more = len(body) if body is not None else 0
        if place > begin and (size + more > PACK_BYTES or place - begin == PACK_MAX):
            messages.append(encode(Commands(session, first + begin, list(bodies[begin:place]))))
            begin, size = place, 0
        size += more
    messages.append(encode(Commands(session, first + begin, list(bodies[begin:]))))
    return messages


def encode(message: Message) -> bytes:
    return _encode(message)


def decode(payload: bytes) -> Message:
    try:
        return _decoder.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PeerError(f"it is nothing that replicas say: {error}") from None
