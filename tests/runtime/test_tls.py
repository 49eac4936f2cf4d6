"""Members over mutual TLS, and those who are not what they say."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import ordercast
from ordercast import Group
from ordercast.runtime.discovery import Address
from ordercast.runtime.frames import (
    VERSION,
    Ack,
    Ask,
    Bye,
    Hello,
    Members,
    decode_frame,
    encode_frame,
)
from ordercast.runtime.keys import Credentials, make_group

from .helpers import until
from .test_join import addresses, take

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("keys") / "g"
    make_group(directory, "g", ("a", "b", "c"))
    return directory


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another authority that calls its group the same."""
    directory = tmp_path_factory.mktemp("foreign") / "g"
    make_group(directory, "g", ("a", "b", "c"))
    return directory


@contextlib.asynccontextmanager
async def two_of_three(keys: Path) -> AsyncIterator[tuple[list[Group], Address]]:
    """A group of a, b and c, of which c is down; where a is."""
    peers = addresses("a", "b", "c")
    async with contextlib.AsyncExitStack() as stack:
        joins = [
            stack.enter_async_context(ordercast.join("g", me=me, peers=peers, keys=keys))
            for me in peers
        ]
        a, b, c = await asyncio.gather(*joins)
        await c.aclose()
        await until(lambda: a.view.present == b.view.present == ("a", "b"))
        yield [a, b], Address.parse(peers["a"])


async def still_working(groups: list[Group]) -> None:
    number = (await groups[0].send(b"still here")).number
    for group in groups:
        assert (await take(group, 1))[0] == f"a:{number} still here"


async def knock(where: Address, context: ssl.SSLContext | None, data: bytes) -> bytes:
    """Connect, say this, and wait until they hang up; what they answered."""
    reader, writer = await asyncio.open_connection(where.host, where.port, ssl=context)
    writer.write(data)
    answer = b""
    with contextlib.suppress(OSError):
        async with asyncio.timeout(10):
            answer = await reader.read(-1)
    writer.transport.abort()
    await asyncio.sleep(0)
    return answer


def hello(groups: list[Group], member: int) -> bytes:
    charter = groups[0]._node.reception.charter
    return encode_frame(Hello(VERSION, "g", charter, member, "life", 0, 0))


def test_a_group_over_tls(keys: Path) -> None:
    async def run() -> None:
        async with two_of_three(keys) as (groups, _):
            await still_working(groups)
            (connection,) = groups[0]._node.reception.connections
            tls = connection._transport.get_extra_info("ssl_object")
            assert tls.version() == "TLSv1.3"

    asyncio.run(run())


def test_nobody_can_speak_for_another(keys: Path, caplog: pytest.LogCaptureFixture) -> None:
    """c has a good certificate, and says it is b, or asks in b's name."""
    c = Credentials.load(keys, group="g", me="c").client

    async def run() -> None:
        async with two_of_three(keys) as (groups, a):
            assert await knock(a, c, encode_frame(Ack(0))) == b""
            assert await knock(a, c, hello(groups, 1)) == b""
            assert await knock(a, c, encode_frame(Ask(VERSION, "g", "b", ""))) == b""
            await still_working(groups)

    with caplog.at_level(logging.DEBUG, "ordercast"):
        asyncio.run(run())
    words = "it says it is 'b', and its certificate says 'c'"
    levels = [each.levelno for each in caplog.records if words in each.getMessage()]
    assert levels == [logging.WARNING, logging.DEBUG], "other strangers do not silence this"


def test_a_member_may_ask_who_is_there(keys: Path) -> None:
    c = Credentials.load(keys, group="g", me="c").client

    async def run() -> None:
        async with two_of_three(keys) as (_, a):
            answer = await knock(a, c, encode_frame(Ask(VERSION, "g", "c", "")))
            members = decode_frame(answer[4:])
            assert isinstance(members, Members)
            assert members.name == "a"
            assert set(members.addresses) == {"a", "b", "c"}

    asyncio.run(run())


def context_of(keys: Path, name: str) -> ssl.SSLContext:
    """What a client has that does not look at its own certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(keys / f"{name}.pem", keys / f"{name}.key")
    return context


def no_certificate() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@pytest.mark.parametrize("who", ["foreign", "expired", "nobody", "plain"])
def test_strangers_stay_outside(who: str, keys: Path, foreign: Path, tmp_path: Path) -> None:
    if who == "expired":
        long_ago = datetime.now(UTC) - timedelta(days=400)
        make_group(tmp_path / "old", "g", ("c",), days=30, now=long_ago)
    context = {
        "foreign": lambda: context_of(foreign, "c"),
        "expired": lambda: context_of(tmp_path / "old", "c"),
        "nobody": no_certificate,
        "plain": lambda: None,
    }[who]()

    async def run() -> None:
        async with two_of_three(keys) as (groups, a):
            with contextlib.suppress(OSError):  # some are turned away even earlier
                assert await knock(a, context, hello(groups, 2)) in (b"",)
            assert groups[0].view.present == ("a", "b")
            await still_working(groups)

    asyncio.run(run())


def test_a_flood_of_strangers_and_one_who_says_nothing(keys: Path) -> None:
    async def run() -> None:
        async with two_of_three(keys) as (groups, a):
            _, silent = await asyncio.open_connection(a.host, a.port)
            flood = [knock(a, None, bytes(1000)) for _ in range(200)]
            results = asyncio.gather(*flood, return_exceptions=True)
            for _ in range(20):
                await still_working(groups)
            await results
            await still_working(groups)
            silent.transport.abort()
            await asyncio.sleep(0)

    asyncio.run(run())


def test_members_of_two_authorities_never_meet(keys: Path, foreign: Path) -> None:
    async def run() -> None:
        peers = addresses("a", "b")

        async def come(me: str, directory: Path) -> None:
            async with ordercast.join("g", me=me, peers=peers, keys=directory, timeout_s=1.5):
                pass

        results = await asyncio.gather(come("a", keys), come("b", foreign), return_exceptions=True)
        for result in results:
            assert isinstance(result, ordercast.DiscoveryError)
            assert "no connection with" in str(result)
        assert "the last one did not become secure: other authority (" in str(results[1])

    asyncio.run(run())


def test_whoever_has_no_keys_is_told_what_may_be_wrong(keys: Path) -> None:
    async def run() -> None:
        peers = addresses("a", "b")

        async def come(me: str, directory: Path | None) -> None:
            async with ordercast.join("g", me=me, peers=peers, keys=directory, timeout_s=1.5):
                pass

        results = await asyncio.gather(come("a", keys), come("b", None), return_exceptions=True)
        assert "the last one did not become secure: not tls (" in str(results[0])
        assert str(results[1]) == (
            "after 1.5 s there is no connection with a: whoever is at the address of a hung up "
            "without a word: perhaps it speaks TLS, and b has no keys"
        )

    asyncio.run(run())


@pytest.mark.parametrize("who", ["a", "c"])
def test_a_last_word_counts_if_it_comes_from_the_one_in_whose_name_it_is_said(
    who: str, keys: Path
) -> None:
    """At the address of a is somebody with the keys of a, or of c, and sends b away for good."""
    context = Credentials.load(keys, group="g", me=who).server
    knocks = 0

    async def run() -> str:
        async with two_of_three(keys) as ([a, b], where):
            await a.aclose()
            introduction = Hello(VERSION, "g", b._node.reception.charter, 0, "", 0, 0)

            async def send_away(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                nonlocal knocks
                knocks += 1
                writer.write(encode_frame(introduction) + encode_frame(Bye("go away", True)))
                writer.close()

            async with await asyncio.start_server(send_away, where.host, where.port, ssl=context):
                await until(lambda: knocks >= 3 or b._node.failure.done())
            failure = b._node.failure
            return str(failure.exception()) if failure.done() else "it goes on"

    expected = {"a": "a will not have this member: go away", "c": "it goes on"}
    assert asyncio.run(run()) == expected[who]
