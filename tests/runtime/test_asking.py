"""Members that are asked who they are: over real sockets; DNS by a made-up resolver."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Sequence

import pytest

from ordercast.errors import PeerError, UsageError
from ordercast.runtime.discovery import (
    Address,
    Answer,
    DiscoveryError,
    Dns,
    Finder,
    Membership,
    StaticList,
    Via,
    assemble,
    parse_peers,
)
from ordercast.runtime.discovery.asking import resolve
from ordercast.runtime.door import Door
from ordercast.runtime.frames import VERSION, Ask

A, B, C = (Address("127.0.0.1", port) for port in (7001, 7002, 7003))


async def nobody(address: Address) -> Answer:
    raise ConnectionRefusedError("nobody there")


class Host:
    """A member that can be asked, over a real socket."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.finder: Finder
        self.address: Address
        self.asked = 0

    async def ask(self, address: Address) -> Answer:
        reader, writer = await asyncio.open_connection(*address)
        try:
            writer.write(json.dumps([self.name, *self.address]).encode() + b"\n")
            name, members = json.loads(await reader.readline() or "[0, {}]")
        finally:
            writer.close()
        if not name:
            raise PeerError("it hung up")
        return Answer(name, {who: Address(*where) for who, where in members.items()})

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked += 1
        name, *where = json.loads(await reader.readline())
        if name != self.name:
            self.finder.learn(name, Address(*where))
        writer.write(json.dumps([self.name, self.finder.known]).encode() + b"\n")
        writer.close()

    async def assemble(self, timeout_s: float = 10) -> Membership:
        return await assemble(
            self.finder, me=self.name, address=self.address, timeout_s=timeout_s, poll_s=0.02
        )


@contextlib.asynccontextmanager
async def hosts(*names: str) -> AsyncIterator[list[Host]]:
    async with contextlib.AsyncExitStack() as stack:
        made = [Host(name) for name in names]
        for host in made:
            server = await asyncio.start_server(host.answer, "127.0.0.1", 0)
            await stack.enter_async_context(server)
            host.address = Address(*server.sockets[0].getsockname()[:2])
        yield made


def test_all_join_through_one_which_learns_of_them() -> None:
    async def go() -> None:
        async with hosts("a", "b", "c", "d") as group:
            for host in group:
                host.finder = Via([B, group[0].address], 4, ask=host.ask)
            memberships = await asyncio.gather(*(host.assemble() for host in group))
            expected = Membership(tuple("abcd"), {host.name: host.address for host in group})
            assert memberships == [expected] * 4
            assert group[2].asked == group[3].asked == 0

    asyncio.run(go())


def test_a_newcomer_learns_of_everyone_from_any_member() -> None:
    async def go() -> None:
        async with hosts("a", "b") as (a, b):
            a.finder = StaticList({"a": a.address, "b": b.address, "c": C})
            b.finder = Via([a.address], 3, ask=b.ask)
            assert (await b.assemble()).addresses == await a.finder.look()

    asyncio.run(go())


def test_one_who_comes_back_elsewhere_is_known_by_its_own_word() -> None:
    async def answer(address: Address) -> Answer:
        if address == A:
            return Answer("a", {"a": A, "b": Address("old", 1)})
        return Answer("b", {"b": B})

    for seeds in ([A, B], [B, A]):
        finder = Via(seeds, 2, ask=answer)
        assert asyncio.run(finder.look()) == {"a": A, "b": B}
    through_a = Via([A], 2, ask=answer)
    through_a.learn("b", B)
    assert asyncio.run(through_a.look()) == {"a": A, "b": B}


def test_a_name_with_several_addresses() -> None:
    """One of them refuses at first, one is no member, and one member is met twice."""

    async def go() -> None:
        async with hosts("a", "b", "c") as group:
            gone: set[Address] = {group[2].address}
            strange = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
            elsewhere = Address(*strange.sockets[0].getsockname()[:2])

            async def lookup(name: Address) -> Sequence[Address]:
                assert name == Address("orders.example", 7001)
                return [*(host.address for host in group), group[1].address, elsewhere]

            for host in group:

                async def ask(address: Address, host: Host = host) -> Answer:
                    if address in gone:
                        gone.clear()
                        raise ConnectionRefusedError
                    return await host.ask(address)

                host.finder = Dns(Address("orders.example", 7001), 3, ask=ask, resolve=lookup)
            memberships = await asyncio.gather(*(host.assemble() for host in group))
            expected = Membership(tuple("abc"), {host.name: host.address for host in group})
            assert memberships == [expected] * 3
            strange.close()

    asyncio.run(go())


def test_whoever_asks_is_known_at_once_and_an_address_is_asked_once() -> None:
    asked: list[Address] = []

    async def ask(address: Address) -> Answer:
        asked.append(address)
        return Answer("b", {"b": B})

    async def twice(name: Address) -> Sequence[Address]:
        return [B, B]

    finder = Dns(Address("orders", 1), 3, ask=ask, resolve=twice)
    finder.learn("c", C)
    assert finder.known == {"c": C}
    assert asyncio.run(finder.look()) == finder.known == {"b": B, "c": C}
    assert asked == [B]


@pytest.mark.parametrize(
    ("name", "address", "said"),
    [
        ("no/such name", "127.0.0.1:7002", "cannot be the name of a member"),
        ("\x1b[2J", "127.0.0.1:7002", "cannot be the name of a member"),
        ("b", "0.0.0.0:7002", "others cannot reach"),
        ("b", "nowhere", "is no address"),
    ],
)
def test_who_cannot_be_a_member_is_told_so_and_nobody_else_hears_of_it(
    name: str, address: str, said: str
) -> None:
    async def go() -> None:
        door = Door("orders", "a")
        door.finder = parse_peers("via:127.0.0.1:7009?size=2", ask=door.ask)
        with pytest.raises(PeerError, match=said):
            door.answer(Ask(VERSION, "orders", name, address), asyncio.Transport())
        assert door.finder.known == {}

    asyncio.run(go())


def test_of_very_many_who_ask_only_so_many_are_remembered() -> None:
    finder = Via([B], 3, ask=nobody)
    for number in range(10_100):
        finder.learn(f"m{number}", Address("127.0.0.1", 1 + number))
    finder.learn("m7", C)
    assert len(finder.known) == 10_000
    assert finder.known["m7"] == C


def test_one_member_behind_two_addresses_is_one() -> None:
    async def both(name: Address) -> Sequence[Address]:
        return [Address("::1", 7002), B]

    async def ask(address: Address) -> Answer:
        return Answer("b", {"b": B})

    finder = Dns(Address("orders", 1), 2, ask=ask, resolve=both)
    assert asyncio.run(finder.look()) == {"b": Address("::1", 7002)}


def test_two_members_of_one_name_are_refused() -> None:
    async def twins(address: Address) -> Answer:
        return Answer("b", {"b": address})

    with pytest.raises(DiscoveryError, match=r"two members call themselves 'b', at .*7002 and at"):
        asyncio.run(Via([B, C], 3, ask=twins).look())

    async def under_my_name() -> None:
        finder = Via([B], 3, ask=twins)
        await finder.announce("b", A)
        await finder.look()

    with pytest.raises(DiscoveryError, match="two members call themselves 'b'"):
        asyncio.run(under_my_name())


@pytest.mark.parametrize(
    "members",
    [{}, {"c": C}, {"b": B, "x/y": C}, {"b": B, "c": Address("0.0.0.0", 1)}],
)
def test_an_answer_that_makes_no_sense_is_none(
    members: dict[str, Address], caplog: pytest.LogCaptureFixture
) -> None:
    async def ask(address: Address) -> Answer:
        return Answer("b", members)

    async def go(finder: Via) -> dict[str, Address]:
        await finder.look()
        return await finder.look()

    finder = Via([B], 2, ask=ask)
    assert asyncio.run(go(finder)) == {}
    assert finder.trouble.startswith("127.0.0.1:7002: 'b' ")
    assert len(caplog.messages) == 1


def test_who_does_not_answer_in_time_holds_nobody_up() -> None:
    async def ask(address: Address) -> Answer:
        if address == B:
            await asyncio.Event().wait()
        return Answer("c", {"c": C})

    finder = Via([B, C], 2, ask=ask, ask_timeout_s=0.05)
    assert asyncio.run(finder.look()) == {"c": C}
    assert finder.trouble == "127.0.0.1:7002: no answer in time"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            ConnectionRefusedError(111, "Connect call failed ('127.0.0.1', 7002)"),
            "Connection refused",
        ),
        (ssl.SSLError(1, "[SSL] certificate verify failed"), "[SSL] certificate verify failed"),
        (OSError("Multiple exceptions: …"), "Multiple exceptions: …"),
    ],
)
def test_who_cannot_be_asked_is_told_without_numbers(error: OSError, words: str) -> None:
    async def ask(address: Address) -> Answer:
        raise error

    finder = Via([B], 2, ask=ask)
    assert asyncio.run(finder.look()) == {}
    assert finder.trouble.startswith("127.0.0.1:7002: ")
    assert words in finder.trouble
    assert "Errno" not in finder.trouble


def test_a_name_that_nobody_has_yet_is_told_at_the_timeout() -> None:
    async def unknown(name: Address) -> Sequence[Address]:
        raise OSError(-2, "Name or service not known")

    finder = Dns(Address("orders", 7001), 2, ask=nobody, resolve=unknown)
    said = r"still missing: 1 more \(orders cannot be resolved: Name or service not known\)"
    with pytest.raises(DiscoveryError, match=said):
        asyncio.run(assemble(finder, me="a", address=A, timeout_s=0.1, poll_s=0.02))


def test_an_address_that_nobody_can_reach_is_not_announced() -> None:
    with pytest.raises(UsageError, match="others cannot reach"):
        asyncio.run(Via([B], 2, ask=nobody).announce("a", Address("0.0.0.0", 7001)))


def test_the_resolver_of_this_machine_is_used_by_default() -> None:
    assert Address("127.0.0.1", 7001) in asyncio.run(resolve(Address("localhost", 7001)))
