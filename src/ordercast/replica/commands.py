"""What the members of a generation send each other."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from ordercast.errors import PeerError
from ordercast.protocols.messages import Count
from ordercast.replica.rolls import Change
from ordercast.runtime.frames import PAYLOAD_BYTES_MAX

__all__ = ["COMMAND_BYTES_MAX", "Command", "decode", "encode"]

COMMAND_BYTES_MAX = PAYLOAD_BYTES_MAX - 256


class Command(Struct, frozen=True, array_like=True, tag="c", forbid_unknown_fields=True, gc=False):
    session: str
    """Which start of its sender it is from."""
    number: Count
    """How many it had been given there until then: one that was sent in two generations is
    carried out once."""
    body: bytes


_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[Command | Change] = msgspec.msgpack.Decoder(Command | Change)


def encode(message: Command | Change) -> bytes:
    return _encode(message)


def decode(payload: bytes) -> Command | Change:
    try:
        return _decoder.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PeerError(f"it is neither a command nor a change: {error}") from None
