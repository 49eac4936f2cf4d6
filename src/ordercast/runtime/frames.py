"""What travels on a socket: a u32 length, then one msgpack array. Bytes are a stranger's word.

    dialer                          listener
      │ ── Hello(…, received, sent) ──▶ │     "this is who I am, and what I have of yours"
      │ ◀── Hello(…, received, sent) ── │
      │ ── Data(number, packets, …) ──▶ │     first what the other lacks, then what is new
      │ ◀──────────── Ack(received) ─── │     cumulative; every Data carries one as well
      │ ── Bye(reason) ───────────────▶ │     the last word, if there is time for one

Both ends send Data and Ack; only the hello has an order, because a listener does not know who
dials, and so not what it has of theirs, before it is told. An Ack that acknowledges nothing new
says that its sender is alive. Whoever wants only to know who the members are sends an Ask instead
of a Hello, is told in a Members frame, and hangs up. Where members come and go, a Knock is answered
with a Roll, and a Fetch with a Piece of the state that everyone has come to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct as Layout
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from ordercast.errors import PeerError
from ordercast.protocols.messages import Count, Process

__all__ = [
    "FRAME_BYTES_MAX",
    "HELLO_BYTES_MAX",
    "LENGTH",
    "PAYLOAD_BYTES_MAX",
    "TOLD_BYTES_MAX",
    "VERSION",
    "Ack",
    "Ask",
    "Bye",
    "Data",
    "Fetch",
    "Frame",
    "FrameBuffer",
    "Hello",
    "Knock",
    "Members",
    "OtherProtocolError",
    "Piece",
    "Roll",
    "Seat",
    "around",
    "decode_frame",
    "encode_frame",
    "wrong_length",
]

VERSION = 5
LENGTH = 4
"""Bytes before each frame that say how long it is."""
FRAME_BYTES_MAX = 16 * 2**20
HELLO_BYTES_MAX = 2**16
PAYLOAD_BYTES_MAX = 15 * 2**20
"""A user's message; what is left of a frame is for stamps."""
PACKETS_MAX = 2**16
TOLD_BYTES_MAX = 2**61
PIECE_BYTES = 2**20
"""Of a state that is fetched, so much at once."""
BUFFER_BYTES = 16 * 2**10
BUFFER_BYTES_BUSY = 256 * 2**10
SHORT_BYTES = BUFFER_BYTES // 2
"""With no more than this in it, a buffer need not be looked after."""

_HTTP = (b"GET ", b"HEAD", b"POST", b"PUT ", b"PATC", b"DELE", b"OPTI", b"CONN", b"PRI ", b"HTTP")
_TLS = b"\x15\x03", b"\x16\x03"
"""How an alert and a handshake begin."""


class OtherProtocolError(PeerError):
    """What came is not meant for a member: a health check, a scanner, a peer that has keys."""


Number = Annotated[int, Meta(ge=1, lt=2**62)]
Text = Annotated[str, Meta(max_length=300)]


class Hello(Struct, frozen=True, array_like=True, tag="h", forbid_unknown_fields=True):
    """The first frame in each direction."""

    version: Annotated[int, Meta(ge=0, lt=2**16)]
    group: Text
    charter: Text
    """Who the members are and which algorithms they run: the same for all."""
    member: Process
    life: Text
    """Changes when the member starts from nothing, without what it knew before."""
    received: Count
    """How many packets the sender of this frame has received from its reader, ever."""
    sent: Count
    """How many packets it has numbered for its reader, ever."""
    session: Text = ""
    """Changes each time the member starts."""
    known: Count = 0
    """How many packets it had numbered for its reader when it started."""
    told_bytes: Number = TOLD_BYTES_MAX
    """Each time so much of its messages was taken, it wants to hear of it: it may be waiting."""


class Data(Struct, frozen=True, array_like=True, tag="d", forbid_unknown_fields=True):
    number: Number
    """Of the first packet; the others follow."""
    packets: Annotated[list[bytes], Meta(min_length=1, max_length=PACKETS_MAX)]
    received: Count
    hurry: bool = False
    """Whether the sender's application waits for word of what became of its messages."""


class Ack(Struct, frozen=True, array_like=True, tag="a", forbid_unknown_fields=True):
    received: Count


class Bye(Struct, frozen=True, array_like=True, tag="b", forbid_unknown_fields=True):
    """The sender of this frame hangs up on purpose."""

    reason: Text
    final: bool = False
    """Whether dialling again is of no use."""


class Ask(Struct, frozen=True, array_like=True, tag="q", forbid_unknown_fields=True):
    """Who are the members? From one who is at `address`."""

    version: Annotated[int, Meta(ge=0, lt=2**16)]
    group: Text
    name: Text
    address: Text


class Members(Struct, frozen=True, array_like=True, tag="m", forbid_unknown_fields=True):
    name: Text
    """Of the member that answers."""
    addresses: Annotated[dict[Text, Text], Meta(max_length=2**12)]
    """By name, the answering member's own included."""


class Knock(Struct, frozen=True, array_like=True, tag="k", forbid_unknown_fields=True):
    """Who are the members now? From one who is at `address`, and may want to be one of them."""

    version: Annotated[int, Meta(ge=0, lt=2**16)]
    group: Text
    name: Text
    address: Text
    life: Text
    """By which a seat is its own, and not that of one before it with the same name."""
    wants: bool
    """To be let in."""
    history: Text = ""
    """Which beginning its own generation goes back to, if it is in one."""
    generation: Count = 0


class Seat(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A member's place in a generation of the group."""

    address: Text
    life: Text


class Roll(Struct, frozen=True, array_like=True, tag="r", forbid_unknown_fields=True):
    """Who the members are, in one of the generations that follow each other."""

    generation: Number
    seats: Annotated[dict[Text, Seat], Meta(min_length=1, max_length=2**12)]
    """By name; the order is that of their indices."""
    expelled: Annotated[tuple[Text, ...], Meta(max_length=2**8)] = ()
    """Lives that were sent away for good, the latest last."""
    history: Text = ""
    """Which beginning this goes back to: another one of the same name is another group."""


class Fetch(Struct, frozen=True, array_like=True, tag="f", forbid_unknown_fields=True):
    """Give me of the state that you have come to in this generation."""

    version: Annotated[int, Meta(ge=0, lt=2**16)]
    group: Text
    name: Text
    generation: Number
    token: Text
    """Of the state that an earlier piece was of; empty for the first one."""
    offset: Count


class Piece(Struct, frozen=True, array_like=True, tag="p", forbid_unknown_fields=True):
    token: Text
    total: Count
    """How many bytes there are in all; 0 if whoever was given that state, in an earlier generation
    perhaps, has all there is: it is the state still."""
    data: Annotated[bytes, Meta(max_length=PIECE_BYTES)]


Frame = Hello | Data | Ack | Bye | Ask | Members | Knock | Roll | Fetch | Piece

# How msgpack begins an array of five with the tag of `Data`, and one of one with long bytes in it.
_ONE_PACKET, _ONE, _BIN_32 = b"\x95\xa1d", 0x91, 0xC6
_LONG_BYTES = Layout(">BBI")
_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[Frame] = msgspec.msgpack.Decoder(Frame)


def encode_frame(frame: Frame) -> bytes:
    body = _encode(frame)
    assert len(body) <= FRAME_BYTES_MAX, "Node.send refuses payloads that would not fit"
    return len(body).to_bytes(LENGTH, "big") + body


def around(data: Data) -> tuple[bytes, bytes]:
    """What stands before and after the packet in a frame with a single one. To copy a large packet
    into its frame, for each peer anew, takes longer than to write three pieces."""
    (packet,) = data.packets
    before = _ONE_PACKET + _encode(data.number) + _LONG_BYTES.pack(_ONE, _BIN_32, len(packet))
    after = _encode(data.received) + _encode(data.hurry)
    length = len(before) + len(packet) + len(after)
    assert length <= FRAME_BYTES_MAX, "Node.send refuses payloads that would not fit"
    return length.to_bytes(LENGTH, "big") + before, after


def decode_frame(body: bytes | bytearray | memoryview) -> Frame:
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PeerError(f"a frame does not fit the wire format: {error}") from None


def wrong_length(head: bytes, bytes_max: int) -> PeerError:
    """Why there is no frame behind these bytes. Read as a length, those that we know by sight are
    of more than any frame may have."""
    if head.startswith(_HTTP):
        return OtherProtocolError(
            "it speaks HTTP, as no member does: a health check or a browser belongs elsewhere"
        )
    if head.startswith(_TLS):
        return OtherProtocolError(
            "it speaks TLS where none is spoken: give keys to all members of the group, or to none"
        )
    length = int.from_bytes(head, "big")
    return PeerError(f"a frame of {length} bytes, and from 1 to {bytes_max} are allowed")


class FrameBuffer:
    """Where a connection's bytes are read to, and cut into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray(BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._end = 0
        # Whoever has not said who they are gets no memory to speak of.
        self._bytes_max = HELLO_BYTES_MAX

    def trust(self) -> None:
        """The peer has introduced itself: long frames may come, even in what is read already."""
        self._bytes_max = FRAME_BYTES_MAX

    def room(self) -> memoryview:
        """Where the next bytes go."""
        return self._view[self._end :] if self._end else self._view

    def filled(self, nbytes: int) -> Iterable[Frame]:
        """So many bytes have been put there: every frame that is whole now."""
        self._end += nbytes
        end, view = self._end, self._view
        if end > LENGTH and LENGTH + int.from_bytes(view[:LENGTH], "big") == end <= SHORT_BYTES:
            self._end = 0  # one frame and nothing else, as most of the time
            return (decode_frame(view[LENGTH:end]),)
        return self._cut()

    def _cut(self) -> Iterator[Frame]:
        start, end, view = 0, self._end, self._view
        needed = LENGTH
        while end - start >= LENGTH:
            body = start + LENGTH
            length = int.from_bytes(view[start:body], "big")
            if not 0 < length <= self._bytes_max:
                raise wrong_length(bytes(view[start:body]), self._bytes_max)
            if end - body < length:
                needed = LENGTH + length
                break
            start = body + length
            yield decode_frame(view[body:start])
        self._keep(start, needed)

    def _keep(self, start: int, needed: int) -> None:
        """Make room for the rest of a frame that has begun at `start`."""
        left, size = self._end - start, len(self._buffer)
        if self._end == size:  # more is waiting, it seems
            needed = max(needed, BUFFER_BYTES_BUSY)
        if needed > size or needed <= BUFFER_BYTES_BUSY < size:
            buffer = bytearray(max(needed, BUFFER_BYTES))
            buffer[:left] = self._view[start : self._end]
            self._buffer, self._view = buffer, memoryview(buffer)
        elif start and left:
            self._view[:left] = bytes(self._view[start : self._end])
        self._end = left
