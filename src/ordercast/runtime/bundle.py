"""What a member sends in a row travels as one protocol message: a bundle.

The protocols number, stamp and acknowledge bundles, and know nothing of what is inside; so their
cost is paid once per bundle. A bundle ends when its sender delivers anything, so no message is
ordered after something that its sender had not delivered when it sent it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from ordercast.errors import PeerError
from ordercast.protocols.messages import Message, MessageId
from ordercast.trace.spans import sizes_of

__all__ = ["BUNDLE_MESSAGES_MAX", "Bundle", "Opened", "pack", "packed_bundle", "unpack"]

BUNDLE_MESSAGES_MAX = 2**12

_First = Annotated[int, Meta(ge=1, lt=2**62)]
_Payloads = Annotated[list[bytes], Meta(min_length=1, max_length=BUNDLE_MESSAGES_MAX)]
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[_First, _Payloads]).decode
_decode_own = msgspec.msgpack.Decoder(tuple[int, list[bytes]]).decode
"""What was let in before is not judged again: the rest of a bundle may have a higher number."""


class Bundle(Struct, frozen=True):
    """Messages of one sender, as they were delivered here."""

    origin: int
    number: int
    """Of the bundle, by which the protocols know it."""
    first: int
    """The number of the first message in it, as users count."""
    payloads: list[bytes]
    position: int
    """The place of the first one in what this member has delivered, from 1."""
    time_us: int
    cost: int
    """Bytes that count against the sender's window until the application has taken them."""

    @property
    def end(self) -> int:
        """The position of the last message."""
        return self.position + len(self.payloads) - 1

    @property
    def last(self) -> int:
        """The number of the last message."""
        return self.first + len(self.payloads) - 1

    def after(self, position: int) -> Bundle:
        """What is left of it when everything up to this position is taken."""
        skip = position + 1 - self.position
        return msgspec.structs.replace(
            self,
            first=self.first + skip,
            payloads=self.payloads[skip:],
            position=position + 1,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """For snapshots. A busy member has hundreds of thousands of messages to hand out: packed
        they cost less than half of what they do one by one."""
        packed = pack(self.first, self.payloads)
        about = self.position, self.time_us, self.cost
        return packed_bundle, (self.origin, self.number, packed, *about)


def packed_bundle(
    origin: int, number: int, packed: bytes, position: int, time_us: int, cost: int
) -> Bundle:
    first, payloads = _decode_own(packed)
    return Bundle(origin, number, first, payloads, position, time_us, cost)


class Opened(Struct, gc=False):
    """A bundle that was looked into, so that it need not be done twice."""

    id: MessageId
    first: int
    payloads: list[bytes]
    _sizes: int | list[int] | None = None

    def sizes(self) -> int | list[int]:
        """Of the messages, as the trace has them."""
        if self._sizes is None:
            self._sizes = sizes_of(self.payloads)
        return self._sizes

    def excerpts(self, chars: int) -> list[str]:
        """How the messages begin, for people."""
        # Four bytes make a character at most; one that is cut in two at the end is left out.
        return [
            payload[: 4 * chars].decode("utf-8", "backslashreplace")[:chars]
            for payload in self.payloads
        ]


def pack(first: int, payloads: Sequence[bytes]) -> bytes:
    return _encode((first, payloads))


def unpack(message: Message) -> tuple[int, list[bytes]]:
    try:
        return _decode(message.payload)
    except msgspec.DecodeError as error:
        raise PeerError(f"{message.id} is no bundle of messages: {error}") from None
