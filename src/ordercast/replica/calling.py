"""How one gets in from outside: ask who the members are, knock, and fetch the state."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import NamedTuple

from ordercast.errors import PeerError, UsageError
from ordercast.replica.checkpoint import Checkpoint, decode
from ordercast.replica.rolls import check
from ordercast.runtime.discovery import Address
from ordercast.runtime.door import Door, read_frame
from ordercast.runtime.frames import (
    HELLO_BYTES_MAX,
    PIECE_BYTES,
    VERSION,
    Bye,
    Fetch,
    Frame,
    Knock,
    Piece,
    Roll,
    encode_frame,
)
from ordercast.runtime.keys import peer_name

__all__ = ["Given", "Words", "fetch", "knock", "unchanged"]

ANSWER_S = 5.0


class Words(NamedTuple):
    """What one says of oneself."""

    life: str
    wants: bool
    history: str
    generation: int


class Given(NamedTuple):
    """A state that was fetched."""

    where: Address
    token: str
    checkpoint: Checkpoint


async def knock(door: Door, address: Address, words: Words) -> Roll:
    """Who the members are now, as whoever is there has it. Whether we are let in shows later."""
    own = str(door.address)
    async with _call(door, address) as ask:
        answer = await ask(Knock(VERSION, door.group, door.name, own, *words))
    if not isinstance(answer, Roll):
        raise _unexpected(address, answer)
    try:
        for name, seat in answer.seats.items():
            check(name, seat)
    except UsageError as error:
        raise PeerError(f"{address} tells of members that cannot be: {error}") from None
    return answer


async def fetch(door: Door, address: Address, generation: int) -> Given:
    """The state that the member there has come to in this generation."""
    pieces = bytearray()
    token, total = "", 1
    async with _call(door, address) as ask:
        while len(pieces) < total:
            wish = Fetch(VERSION, door.group, door.name, generation, token, len(pieces))
            piece = await ask(wish)
            if not isinstance(piece, Piece):
                raise _unexpected(address, piece)
            if not piece.data or (token and (piece.token, piece.total) != (token, total)):
                raise PeerError(f"{address} gives pieces of a state that do not fit together")
            token, total = piece.token, piece.total
            pieces += piece.data
    checkpoint = decode(bytes(pieces))
    if checkpoint.generation != generation:
        raise PeerError(f"{address} gives a state of generation {checkpoint.generation}")
    return Given(address, token, checkpoint)


async def unchanged(door: Door, given: Given, generation: int) -> bool:
    """Whether the member there is in this state still, and in this generation by now."""
    async with _call(door, given.where) as ask:
        answer = await ask(Fetch(VERSION, door.group, door.name, generation, given.token, 0))
    return isinstance(answer, Piece) and not answer.data


class _Asking:
    def __init__(
        self, address: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._address = address
        self._reader = reader
        self._writer = writer

    async def __call__(self, frame: Frame) -> Frame:
        try:
            async with asyncio.timeout(ANSWER_S):
                self._writer.write(encode_frame(frame))
                limit = HELLO_BYTES_MAX + PIECE_BYTES
                return await read_frame(self._reader, limit=limit)
        except EOFError:
            raise PeerError(f"{self._address} hung up without an answer") from None


@contextlib.asynccontextmanager
async def _call(door: Door, address: Address) -> AsyncIterator[_Asking]:
    context = door.credentials.client if door.credentials else None
    async with asyncio.timeout(ANSWER_S):
        reader, writer = await asyncio.open_connection(*address, ssl=context)
    try:
        if door.credentials is not None:  # whoever is there has to be of this group
            peer_name(writer.get_extra_info("ssl_object"), door.group)
        yield _Asking(address, reader, writer)
    finally:
        writer.close()


def _unexpected(address: Address, answer: Frame) -> PeerError:
    if isinstance(answer, Bye):
        return PeerError(f"{address} says: {answer.reason}")
    return PeerError(f"{address} answers with a {type(answer).__name__} frame")
