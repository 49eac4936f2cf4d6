"""The inputs of a core as records of a journal, and a core from such records.

A record is one byte that says which input, and then what came with it.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from ordercast.errors import JournalError, PeerError
from ordercast.protocols.messages import Message, MessageId
from ordercast.runtime.bundle import unpack
from ordercast.runtime.core import Core

__all__ = ["LoggedCore", "replay"]

SUBMIT: Final = 1
TAKE: Final = 2
OTHER: Final = 3

_SUBMIT = struct.Struct(">BI")
_TAKE = struct.Struct(">BH")
_encode = msgspec.msgpack.Encoder().encode
_decode_to = msgspec.msgpack.Decoder(tuple[int, ...] | None).decode
_decode_other = msgspec.msgpack.Decoder(tuple[str, list[Any]]).decode


class LoggedCore:
    """Writes each input down, with `append`, before the core sees it.

    An exception that is no peer's fault is a bug of ours, and has left the core half-way: `on_bug`
    ends the member before anybody acts on that, and before the input is in the journal.
    """

    def __init__(
        self,
        core: Core,
        append: Callable[..., None] | None,
        on_bug: Callable[[Exception], None],
    ) -> None:
        self.core = core
        self._append = append
        self._on_bug = on_bug
        self._take_heads = [_TAKE.pack(TAKE, source) for source in range(core.stack.size)]

    def submit(
        self, bundle: bytes, first: int, payloads: list[bytes], to: tuple[int, ...] | None
    ) -> int:
        if self._append is not None:
            head = _encode(to)
            self._append(_SUBMIT.pack(SUBMIT, len(head)), head, bundle)
        try:
            return self.core.submit(bundle, first, payloads, to)
        except Exception as bug:
            self._on_bug(bug)
            raise

    def take(self, source: int, packet: bytes) -> None:
        if self._append is not None:
            self._append(self._take_heads[source], packet)
        try:
            self.core.take(source, packet)
        except PeerError:
            raise
        except Exception as bug:
            self._on_bug(bug)
            raise

    def other(self, name: str, *arguments: Any) -> None:
        """Any of the rarer inputs, by the name of the core's method."""
        if self._append is not None:
            self._append(bytes((OTHER,)), _encode((name, arguments)))
        try:
            getattr(self.core, name)(*arguments)
        except Exception as bug:
            self._on_bug(bug)
            raise


_OTHERS = frozenset(
    ["start", "restart", "leave", "meet", "timer", "suspect", "trust", "bury", "report"],
)


def replay(core: Core, records: Iterable[bytes | memoryview]) -> None:
    """Feed the core what a journal has kept. What a peer did wrong then, it does wrong again; of
    what this member did, nothing is left out."""
    for record in records:
        kind = record[0]
        if kind == TAKE:
            with contextlib.suppress(PeerError):
                core.take(_TAKE.unpack_from(record)[1], bytes(record[_TAKE.size :]))
        elif kind == SUBMIT:
            end = _SUBMIT.size + _SUBMIT.unpack_from(record)[1]
            bundle = bytes(record[end:])
            first, payloads = _opened(core, bundle)
            core.submit(bundle, first, payloads, _decode_to(record[_SUBMIT.size : end]))
        else:
            name, arguments = _decode_other(record[1:])
            assert name in _OTHERS, f"a journal names the input {name!r}"
            getattr(core, name)(*arguments)


def _opened(core: Core, bundle: bytes) -> tuple[int, list[bytes]]:
    try:
        return unpack(Message(MessageId(core.stack.me, core.stack.sent + 1), bundle))
    except PeerError as error:
        raise JournalError(
            f"the journal has a bundle of this member's own that nobody takes: {error}; give the "
            "member up: remove its journal directory, and start the whole group afresh"
        ) from None
