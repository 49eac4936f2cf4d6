"""Strangers at the door of a replica: they are told, or dropped, and it goes on."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

import ordercast
from ordercast.runtime.discovery import Address
from ordercast.runtime.door import read_frame
from ordercast.runtime.frames import (
    PIECE_BYTES,
    VERSION,
    Bye,
    Fetch,
    Frame,
    Knock,
    Piece,
    Roll,
    Seat,
    encode_frame,
)
from tests.runtime.test_join import addresses

from .test_replicate import Tally

pytestmark = pytest.mark.timeout(60)

HERE = "127.0.0.1:6999"


def knock(
    name: str = "x", address: str = HERE, life: str = "life", *, version: int = VERSION
) -> Knock:
    return Knock(version, "tally", name, address, life, True)


def fetch(
    name: str = "a", generation: int = 1, token: str = "", offset: int = 0, group: str = "tally"
) -> Fetch:
    return Fetch(VERSION, group, name, generation, token, offset)


async def ask(place: str, *frames: Frame | bytes) -> list[Frame]:
    """What is answered, until the other end hangs up or has answered everything."""
    reader, writer = await asyncio.open_connection(*Address.parse(place))
    answers: list[Frame] = []
    try:
        for frame in frames:
            writer.write(frame if isinstance(frame, bytes) else encode_frame(frame))
            async with asyncio.timeout(5):
                answers.append(await read_frame(reader, limit=2 * PIECE_BYTES))
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()
    return answers


REFUSED = {
    "no address": (knock(address="nowhere"), "'nowhere' is no address"),
    "nowhere to be reached": (knock(address="0.0.0.0:7"), "others cannot reach 0.0.0.0:7"),
    "another host": (knock(address="10.0.0.1:7"), "10.0.0.1:7 is not on this machine"),
    "a bad name": (knock(name="../x"), "'../x'"),
    "no life": (knock(life=""), "'x' does not say which life it is"),
    "the name of one who is here": (
        knock(name="b"),
        "b is a member already, and seems",
    ),
    "a state of no generation": (fetch(generation=7), "has no state of generation 7"),
    "a state of long ago": (fetch(token="t"), "does not have that state any more"),
}
TOLD = {
    "another history, from nowhere": Knock(VERSION, "tally", "x", "?", "l", True, "h", 9),
    "another history": Knock(VERSION, "tally", "x", HERE, "l", True, "h", 9),
    "one who is sure of a seat": Knock(VERSION, "tally", "x", HERE, "l", False),
}
DROPPED = {
    "another group": fetch(group="other"),
    "another version": knock(version=1),
    "random bytes": Random(1).randbytes(3000),
    "a roll": Roll(1, {"a": Seat(HERE, "l")}),
    "a piece": Piece("t", 1, b"x"),
}


@pytest.mark.parametrize("what", [*REFUSED, *TOLD, *DROPPED])
def test_strangers_are_told_or_dropped_and_the_replicas_go_on(what: str) -> None:
    async def program() -> None:
        peers = addresses("a", "b")
        async with (
            asyncio.timeout(20),
            asyncio.TaskGroup() as tasks,
        ):
            done, ready = asyncio.Event(), asyncio.Barrier(3)

            async def replica(me: str) -> None:
                async with ordercast.replicate("tally", Tally(), me=me, peers=peers) as made:
                    await ready.wait()
                    await done.wait()
                    assert await made.do(b"x") in (1, 2)
                    assert made.members == ("a", "b")
                    await ready.wait()

            for me in peers:
                tasks.create_task(replica(me))
            await ready.wait()
            if what in REFUSED:
                frame, reason = REFUSED[what]
                [answer] = await ask(peers["a"], frame)
                assert isinstance(answer, Bye)
                assert reason in answer.reason
            elif what in TOLD:
                [answer] = await ask(peers["a"], TOLD[what])
                assert isinstance(answer, Roll)
            else:
                assert await ask(peers["a"], DROPPED[what]) == []
            done.set()
            await ready.wait()

    asyncio.run(program())


def test_a_state_is_given_piece_by_piece_and_not_to_too_many() -> None:
    async def program() -> None:
        peers = addresses("a")
        machine = Tally(filling=2 * PIECE_BYTES)
        async with ordercast.replicate("tally", machine, me="a", peers=peers):
            [first] = await ask(peers["a"], fetch())
            assert isinstance(first, Piece)
            assert len(first.data) == PIECE_BYTES < first.total
            again = fetch(token=first.token, offset=PIECE_BYTES)
            beyond = fetch(token=first.token, offset=first.total + 5)
            [second, last] = await ask(peers["a"], again, beyond)
            assert isinstance(second, Piece)
            assert isinstance(last, Piece)
            assert (len(second.data), last.data) == (PIECE_BYTES, b"")
            answers = [await ask(peers["a"], fetch()) for _ in range(6)]
            kinds = [type(answer) for [answer] in answers]
            assert kinds == [Piece] * 4 + [Bye] * 2

    asyncio.run(program())
