"""What travels on a socket: a u32 length, then one msgpack array. Bytes are a stranger's word.

    dialer                          listener
      │ ── Hello(…, received) ────────▶ │     "this is who I am, and what I have of yours"
      │ ◀─────── Hello(…, received) ─── │
      │ ── Data(number, packet) ──────▶ │     first what the other lacks, then what is new
      │ ◀──────────── Ack(received) ─── │     cumulative; every Data carries one as well

Both ends send Data and Ack; only the hello has an order, because a listener does not know who
dials, and so not what it has of theirs, before it is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from ordercast.errors import PeerError
from ordercast.protocols.messages import Count, Process

__all__ = [
    "FRAME_BYTES_MAX",
    "PAYLOAD_BYTES_MAX",
    "VERSION",
    "Ack",
    "Data",
    "Frame",
    "FrameReader",
    "Hello",
    "Number",
    "encode_frame",
]

VERSION = 1
LENGTH_BYTES = 4
FRAME_BYTES_MAX = 16 * 2**20
HELLO_BYTES_MAX = 2**10
PAYLOAD_BYTES_MAX = 15 * 2**20
"""A user's message; what is left of a frame is for stamps."""

Number = Annotated[int, Meta(ge=1, lt=2**62)]


class Hello(Struct, frozen=True, array_like=True, tag="h", forbid_unknown_fields=True):
    """The first frame in each direction."""

    version: Annotated[int, Meta(ge=0, lt=2**16)]
    run: Annotated[str, Meta(max_length=200)]
    member: Process
    received: Count
    """How many packets the sender of this frame has received from its reader, ever."""


class Data(Struct, frozen=True, array_like=True, tag="d", forbid_unknown_fields=True):
    number: Number
    packet: bytes
    received: Count


class Ack(Struct, frozen=True, array_like=True, tag="a", forbid_unknown_fields=True):
    received: Count


Frame = Hello | Data | Ack

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Frame] = msgspec.msgpack.Decoder(Frame)


def encode_frame(frame: Frame) -> bytes:
    body = _encoder.encode(frame)
    assert len(body) <= FRAME_BYTES_MAX, "Node.send refuses payloads that would not fit"
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


class FrameReader:
    """Cuts a stream of bytes into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        # Whoever has not said who they are gets no memory to speak of.
        self._bytes_max = HELLO_BYTES_MAX

    def trust(self) -> None:
        """The peer has introduced itself: long frames may come, even in what is read already."""
        self._bytes_max = FRAME_BYTES_MAX

    def feed(self, data: bytes) -> Iterator[Frame]:
        self._buffer += data
        start = 0
        try:
            while len(self._buffer) >= (body := start + LENGTH_BYTES):
                length = int.from_bytes(self._buffer[start:body], "big")
                if not 0 < length <= self._bytes_max:
                    raise PeerError(
                        f"a frame of {length} bytes, and from 1 to {self._bytes_max} are allowed"
                    )
                if len(self._buffer) < body + length:
                    return
                start = body + length
                yield _decode(bytes(self._buffer[body:start]))
        finally:
            del self._buffer[:start]


def _decode(body: bytes) -> Frame:
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PeerError(f"a frame does not fit the wire format: {error}") from None
