"""The state that all have come to at one place of their order, as bytes."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from ordercast.errors import PeerError
from ordercast.protocols.messages import Count

__all__ = ["Applied", "Checkpoint", "decode", "encode"]

Applied = dict[str, tuple[str, Count]]
"""By member, the session of the last command of its that was carried out, and its number there."""


class Checkpoint(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    generation: Count
    position: Count
    """Of the last message that is in it, in that generation."""
    applied: Applied
    state: bytes
    """As the program has saved it."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Checkpoint).decode


def encode(checkpoint: Checkpoint) -> bytes:
    return _encode(checkpoint)


def decode(data: bytes) -> Checkpoint:
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PeerError(f"what came is no state of a replica: {error}") from None
