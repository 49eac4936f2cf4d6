"""Every way to find each other, through `ordercast.join`."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest

import ordercast
from ordercast import UsageError
from ordercast.runtime.discovery import Address, Dns, StaticList
from ordercast.runtime.door import Door
from ordercast.runtime.keys import make_group

from .helpers import until
from .test_join import addresses, take

pytestmark = pytest.mark.timeout(60)


async def meet(forms: dict[str, dict[str, Any]]) -> None:
    """Join, say one thing each, and hear it."""
    async with contextlib.AsyncExitStack() as stack:
        joins = [
            stack.enter_async_context(ordercast.join("g", me=me, timeout_s=20, **options))
            for me, options in forms.items()
        ]
        groups = await asyncio.gather(*joins)
        for group in groups:
            assert group.view.members == tuple(sorted(forms))
            await group.send(group.me.encode())
        for group in groups:
            heard = await take(group, len(forms))
            assert sorted(heard) == [f"{name}:1 {name}" for name in sorted(forms)]


def test_a_toml_file(tmp_path: Path) -> None:
    file = tmp_path / "group.toml"
    lines = [f'{name} = "{address}"' for name, address in addresses("a", "b", "c").items()]
    file.write_text("\n".join(["[members]", *lines]))
    asyncio.run(meet({name: {"peers": str(file)} for name in "abc"}))


def test_a_registry(tmp_path: Path) -> None:
    peers = f"registry:{tmp_path}?size=3"
    asyncio.run(meet({name: {"peers": peers} for name in "abc"}))
    assert list(tmp_path.glob("*.json")) == []


def test_through_any_member_that_is_known() -> None:
    known = addresses("b")["b"]
    via = f"via:{known}?size=3"
    forms: dict[str, dict[str, Any]] = {name: {"peers": via} for name in "abc"}
    forms["b"]["listen"] = known
    asyncio.run(meet(forms))


def test_a_name_with_several_addresses() -> None:
    """127.0.0.1 to 127.0.0.3, as a headless service would have them."""
    port = Address.parse(addresses("x")["x"]).port

    async def resolve(name: Address) -> list[Address]:
        assert name == Address("group.test", port)
        return [Address(f"127.0.0.{host}", port) for host in (1, 2, 3)]

    async def run() -> None:
        forms = {}
        for host, name in enumerate("abc", 1):
            asking = Door("g", name)
            finder = Dns(Address("group.test", port), 3, ask=asking.ask, resolve=resolve)
            forms[name] = {"peers": finder, "listen": f"127.0.0.{host}"}
        await meet(forms)

    asyncio.run(run())


def test_a_member_that_comes_back_elsewhere_is_found_there(tmp_path: Path) -> None:
    """Its address has changed; whoever dials it looks again."""
    peers = f"registry:{tmp_path / 'registry'}?size=2"

    async def run() -> None:
        async with contextlib.AsyncExitStack() as stack:
            first = contextlib.AsyncExitStack()
            a, b = await asyncio.gather(
                first.enter_async_context(
                    ordercast.join("g", me="a", peers=peers, journal=tmp_path / "a")
                ),
                stack.enter_async_context(
                    ordercast.join("g", me="b", peers=peers, journal=tmp_path / "b")
                ),
            )
            where = a._node.reception.door.address
            await first.aclose()
            await b.send(b"while a is away")
            a = await stack.enter_async_context(
                ordercast.join("g", me="a", peers=peers, journal=tmp_path / "a")
            )
            assert a._node.reception.door.address != where
            await until(lambda: b.view.present == ("a", "b"))
            assert await take(a, 1) == ["b:1 while a is away"]

    asyncio.run(run())


@pytest.mark.parametrize("way", ["registry:{}/registry?size=2", "via:{}?size=2"])
def test_a_member_that_comes_back_waits_for_nobody_however_it_found_them(
    way: str, tmp_path: Path
) -> None:
    places = addresses("a", "b")
    where = tmp_path if way.startswith("registry") else places["b"]

    def come(me: str) -> contextlib.AbstractAsyncContextManager[ordercast.Group]:
        peers = way.format(where)
        journal = tmp_path / me
        return ordercast.join(
            "g", me=me, peers=peers, listen=places[me], journal=journal, timeout_s=5
        )

    async def both() -> None:
        async with contextlib.AsyncExitStack() as stack:
            await asyncio.gather(*(stack.enter_async_context(come(me)) for me in places))

    async def run() -> None:
        await both()
        async with contextlib.AsyncExitStack() as stack:
            async with asyncio.timeout(3):
                a = await stack.enter_async_context(come("a"))
            await a.send(b"while b is away")
            b = await stack.enter_async_context(come("b"))
            assert await take(b, 1) == ["a:1 while b is away"]

    asyncio.run(run())


@pytest.mark.parametrize("keys", [False, True])
def test_a_member_is_found_elsewhere_though_another_answers_where_it_was(
    keys: bool, tmp_path: Path
) -> None:
    """It takes the connection, and hangs up without a word."""
    places = addresses("old", "new")
    options: dict[str, Any] = {"peers": f"registry:{tmp_path / 'registry'}?size=2"}
    if keys:
        make_group(tmp_path / "keys", "g", ("a", "b"))
        options["keys"] = tmp_path / "keys"

    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n" if keys else b"")
        writer.close()

    def come(me: str, **more: Any) -> contextlib.AbstractAsyncContextManager[ordercast.Group]:
        return ordercast.join("g", me=me, journal=tmp_path / me, **options, **more)

    async def run() -> None:
        async with contextlib.AsyncExitStack() as stack:
            first = contextlib.AsyncExitStack()
            _, b = await asyncio.gather(
                first.enter_async_context(come("a", listen=places["old"])),
                stack.enter_async_context(come("b")),
            )
            await first.aclose()
            old = Address.parse(places["old"])
            await stack.enter_async_context(await asyncio.start_server(hang_up, *old))
            await stack.enter_async_context(come("a", listen=places["new"]))
            await until(lambda: b.view.present == ("a", "b"))

    asyncio.run(run())


def test_many_members_in_one_process() -> None:
    """Forty of them: 780 connections, 1,600 deliveries; then all leave."""
    names = [f"m{number:02}" for number in range(40)]
    peers = addresses(*names)
    asyncio.run(meet({name: {"peers": peers} for name in names}))


class Forgetful(StaticList):
    """It finds the others once."""

    async def look(self) -> dict[str, Address]:
        found, self.known = self.known, {}
        return {name: found[name] for name in self.names or ()}


def test_a_finder_with_a_bug_ends_the_member_that_looks_for_another() -> None:
    finder = Forgetful({name: Address.parse(at) for name, at in addresses("a", "b").items()})

    async def run() -> None:
        async with ordercast.join("g", me="b", peers=finder, timeout_s=20):
            raise AssertionError("there is nobody else")

    with pytest.raises(KeyError, match="a"):
        asyncio.run(run())


@pytest.mark.parametrize("listen", ["host..example", "host..example:7001"])
def test_a_mistyped_host_is_told_in_a_sentence(listen: str) -> None:
    async def run() -> None:
        async with ordercast.join("g", me="a", peers=addresses("a"), listen=listen):
            raise AssertionError("nobody can listen there")

    with pytest.raises(UsageError, match=r"'host\.\.example' is no name of a host"):
        asyncio.run(run())
