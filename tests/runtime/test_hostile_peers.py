"""A peer that breaks the rules costs its own connection and one log line, never the node."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import AsyncIterator
from random import Random

import pytest

from ordercast.protocols import catalog
from ordercast.protocols.messages import Message, MessageId
from ordercast.protocols.orderings.causal_vector import Stamped
from ordercast.runtime import connection as connection_module
from ordercast.runtime import sparing
from ordercast.runtime.bundle import pack
from ordercast.runtime.discovery import Address
from ordercast.runtime.frames import VERSION, Ack, Bye, Data, Hello, decode_frame, encode_frame
from ordercast.runtime.node import HOST
from ordercast.runtime.reception import STRANGERS_MAX
from ordercast.trace.jsonl import decode_event, encode_event

from .helpers import CHARTER, RUN, Group, until

pytestmark = pytest.mark.timeout(60)


def hello(
    version: int = VERSION,
    *,
    group: str = RUN,
    charter: str = CHARTER,
    member: int = 2,
    life: str = "life of 2",
    received: int = 0,
    sent: int = 100,
) -> bytes:
    return encode_frame(Hello(version, group, charter, member, life, received, sent))


HELLO = hello()
CODEC = catalog.build("causal_vector", "best_effort", 2, 3).codec()


def packet(origin: int, number: int, stamp: tuple[int, ...]) -> bytes:
    return CODEC.encode(Stamped(Message(MessageId(origin, number), pack(1, [b"x"])), stamp))


def data(number: int, body: bytes, received: int = 0) -> bytes:
    return encode_frame(Data(number, [body], received))


GOOD = packet(2, 1, (0, 0, 1))
EARLY = packet(2, 2, (0, 0, 2))
"""Nothing wrong with it, and never delivered: only p0 gets it, and p1 must not depend on it."""

BYE = encode_frame(Bye("go away", final=True))

ATTACKS = {
    "random bytes": (Random(1).randbytes(5000), "a stranger"),
    "a huge length": (b"\xff\xff\xff\xff", "a frame of 4294967295 bytes"),
    "a huge length after hello": (HELLO + b"\x7f\xff\xff\xff", "a frame of 2147483647 bytes"),
    "another protocol": (b"GET / HTTP/1.1\r\n\r\n", "it speaks HTTP, as no member does"),
    "TLS": (b"\x16\x03\x01\x02\x00\x01", "it speaks TLS where none is spoken: give keys"),
    "another version": (hello(1), "p0 speaks version 5, and not 1"),
    "another run": (hello(group="other\nrun"), r"'other\\nrun'"),
    "no such member": (hello(member=3), "says it is member 3"),
    "our own index": (hello(member=0), "says it is p0"),
    "a hello from the future": (hello(received=1), "claims to have 1 packets"),
    "another charter": (
        hello(charter="fifo over direct"),
        "p0 runs '.*', and not 'fifo over direct'",
    ),
    "two hellos": (HELLO + HELLO, "second hello"),
    "a last word of another run": (hello(group="other", life="") + BYE, "not to 'other'"),
    "a last word of no member": (hello(member=3, life="") + BYE, "says it is member 3"),
    "data after an introduction": (hello(life="") + data(1, GOOD), "before any hello"),
    "a hello after an introduction": (hello(life="") + HELLO, "second hello"),
    "data before hello": (data(1, GOOD), "before any hello"),
    "ack before hello": (encode_frame(Ack(0)), "before any hello"),
    "ack from the future": (HELLO + encode_frame(Ack(7)), "claims to have 7 packets"),
    "a gap": (HELLO + data(2, EARLY), "where 1 was expected"),
    "no packet at all": (HELLO + data(1, b"\xc1"), "does not fit the wire format"),
    "a stamp too short": (HELLO + data(1, packet(2, 1, (0, 1))), "stamp"),
    "a stamp of another number": (HELLO + data(1, packet(2, 1, (0, 0, 2))), "stamp"),
    "an origin outside": (HELLO + data(1, packet(7, 1, (0, 0, 1))), "7:1"),
    "number zero": (HELLO + data(1, packet(2, 0, (0, 0, 0))), "2:0"),
    "the same message twice": (HELLO + data(1, EARLY) + data(2, EARLY), "come before"),
}


@contextlib.asynccontextmanager
async def two_of_three() -> AsyncIterator[Group]:
    """A group of three whose last member never came; the attacker plays its part."""
    members = Group("causal_vector", 3)
    try:
        await members.listen()
        absent = members.nodes.pop()
        await absent.aclose()
        members.dial()
        await until(lambda: all(node.company.present for node in members.nodes))
        yield members
    finally:
        await members.aclose()
        assert all(node.failure.cancelled() for node in members.nodes)


async def attack(port: int, stream: bytes, *, patience_s: float = 10) -> None:
    """Send the bytes and wait until the node hangs up."""
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(stream)
    with contextlib.suppress(OSError):
        async with asyncio.timeout(patience_s):
            await reader.read(-1)
    writer.transport.abort()
    await asyncio.sleep(0)


async def still_working(members: Group) -> None:
    before = [len(delivered) for delivered in members.delivered]
    await members.members[0].send(b"still here")
    await members.members[1].send(b"me too")
    await until(
        lambda: all(
            len(members.delivered[me]) == before[me] + 2 for me in range(len(members.nodes))
        )
    )


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_costs_one_connection_and_one_line(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    stream, words = ATTACKS[name]

    async def run() -> None:
        async with two_of_three() as members:
            await attack(members.ports[0], stream)
            await still_working(members)

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    (record,) = caplog.records
    assert record.name == "ordercast.runtime.connection"
    line = record.getMessage()
    assert line.startswith("p0: dropped the connection with ")
    assert "\n" not in line
    assert re.search(words, line)


def test_strangers_that_keep_coming_are_a_line_now_and_then(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with two_of_three() as members:
            for path in range(20):
                await attack(members.ports[0], b"GET /%d HTTP/1.1\r\n\r\n" % path)
            await attack(members.ports[0], hello(group="other"))
            monkeypatch.setattr(sparing, "LOG_EVERY_S", 0.0)
            await attack(members.ports[0], b"POST / HTTP/1.1\r\n\r\n")

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    first, foreign, last = (record.getMessage() for record in caplog.records)
    assert first.endswith("a health check or a browser belongs elsewhere")
    assert "'other'" in foreign, "one kind does not silence another"
    assert last.endswith("belongs elsewhere; 19 more like it since the last such line")


def test_who_says_nothing_is_dropped_after_a_while(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "HELLO_TIMEOUT_S", 0.1)

    async def run() -> None:
        async with two_of_three() as members:
            await attack(members.ports[0], HELLO[:7])
            await still_working(members)

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    (record,) = caplog.records
    assert "no hello came within 0.1 s" in record.getMessage()


def test_a_member_with_a_bad_packet_comes_back_and_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The bad packet is used up; what follows it is welcome on the next connection."""

    async def run() -> list[bytes]:
        async with two_of_three() as members:
            port = members.ports[0]
            await attack(port, HELLO + data(1, b"\xc1"))
            reader, writer = await asyncio.open_connection(HOST, port)
            writer.write(HELLO + data(2, GOOD))
            await until(lambda: members.delivered[0] != [])
            length = await reader.readexactly(4)
            answer = decode_frame(await reader.readexactly(int.from_bytes(length, "big")))
            assert isinstance(answer, Hello)
            assert (answer.member, answer.life) == (0, "life of 0")
            assert (answer.received, answer.sent) == (1, 0)
            writer.transport.abort()
            await asyncio.sleep(0)
            return [message.payload for message in members.delivered[0]]

    with caplog.at_level(logging.WARNING):
        assert asyncio.run(run()) == [b"x"]
    assert len(caplog.records) == 1


@pytest.mark.parametrize("name", ["an origin outside", "number zero"])
def test_an_impossible_message_does_not_reach_the_trace(name: str) -> None:
    """A row that breaks the rules of the trace would make all of it unreadable."""

    async def run() -> Group:
        async with two_of_three() as members:
            await attack(members.ports[0], ATTACKS[name][0])
            await still_working(members)
            return members

    rows = [decode_event(encode_event(event), where="here") for event in asyncio.run(run()).events]
    assert {event.origin for event in rows} == {0, 1}


def test_the_newest_connection_of_a_member_wins(caplog: pytest.LogCaptureFixture) -> None:
    """It dials again because the old one is dead to it; the old one ends here as well."""

    async def run() -> None:
        async with two_of_three() as members:
            old, old_writer = await asyncio.open_connection(HOST, members.ports[0])
            old_writer.write(HELLO)
            await until(lambda: members.nodes[0].company.present == (1, 2))
            new, new_writer = await asyncio.open_connection(HOST, members.ports[0])
            new_writer.write(HELLO)
            with contextlib.suppress(ConnectionError):
                async with asyncio.timeout(5):
                    await old.read(-1)
            await members.members[0].send(b"to the new one")
            async with asyncio.timeout(5):
                await new.readuntil(b"to the new one")
            assert members.nodes[0].company.present == (1, 2)
            for writer in (old_writer, new_writer):
                writer.transport.abort()
            await asyncio.sleep(0)

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert caplog.records == []


def test_a_hundred_attackers_at_once(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with two_of_three() as members:
            streams = [Random(seed).choice(list(ATTACKS.values()))[0] for seed in range(100)]
            attackers = [
                attack(members.ports[seed % 2], stream, patience_s=1)
                for seed, stream in enumerate(streams)
            ]
            await asyncio.gather(*attackers, still_working(members))
            await still_working(members)

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert len(caplog.records) <= 100


def test_a_wrong_process_at_a_members_port_is_not_taken_for_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """p2 dials p1's port and finds p0 there, as after a port was given to someone else."""

    async def run() -> None:
        members = Group("fifo", 3)
        await members.listen()
        p0 = Address(HOST, members.ports[0])
        members.nodes[2].dial({0: p0, 1: p0})
        await until(lambda: bool(caplog.records))
        assert 1 not in members.nodes[2].company.present
        await members.aclose()

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert "p0 answered where p1 should be" in caplog.records[0].getMessage()


def test_a_crowd_that_says_nothing_leaves_room_for_members(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> None:
        async with two_of_three() as members:
            crowd = [
                await asyncio.open_connection(HOST, members.ports[0])
                for _ in range(2 * STRANGERS_MAX)
            ]
            await until(lambda: bool(caplog.records))
            known = members.nodes[0].reception.connections
            assert len(known) <= STRANGERS_MAX + 2 * len(members.nodes[0].names)
            await still_working(members)
            for _, writer in crowd:
                writer.transport.abort()
            await asyncio.sleep(0)

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert "too many at the door" in caplog.text


@pytest.mark.parametrize(
    ("words", "believed"),
    [
        (BYE, False),
        (hello(member=0, group="other", life="") + BYE, False),
        (hello(member=0, charter="fifo over direct", life="") + BYE, False),
        (hello(2, member=0, life="") + BYE, False),
        (hello(member=2, life="") + BYE, False),
        (hello(member=0, life="") + BYE, True),
    ],
    ids=["nobody", "another run", "another charter", "another version", "another member", "p0"],
)
def test_a_last_word_is_believed_only_of_who_has_said_who_it_is(
    words: bytes, believed: bool
) -> None:
    """Someone is at the address of p0, which is down, and sends p1 away for good."""
    knocks = 0

    async def send_away(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal knocks
        knocks += 1
        writer.write(words)
        writer.close()

    async def run() -> bool:
        members = Group("causal_vector", 2)
        await members.listen()
        members.dial()
        await until(members.everyone_present)
        p0, p1 = members.nodes
        await p0.aclose()
        async with await asyncio.start_server(send_away, HOST, members.ports[0]):
            await until(lambda: knocks >= 3 or p1.failure.done())
        ended = p1.failure.done()
        await members.aclose()
        return ended

    assert asyncio.run(run()) == believed
