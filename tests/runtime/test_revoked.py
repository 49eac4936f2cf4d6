"""Certificates that were revoked: whoever shows one stays outside, and is put there if it is in."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import ordercast
from ordercast import Group, UsageError
from ordercast.runtime import door
from ordercast.runtime.discovery import Address
from ordercast.runtime.frames import VERSION, Ask, encode_frame
from ordercast.runtime.keys import Credentials, make_group, revoke_members

from .helpers import until
from .test_handshakes import run_on
from .test_join import addresses, take
from .test_tls import context_of, knock, two_of_three

pytestmark = pytest.mark.timeout(60)

NAMES = ("a", "b", "c")


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of a group whose members look for a new list all the time."""
    monkeypatch.setattr(door, "LOOK_EVERY_S", 0.05)
    make_group(tmp_path / "keys", "g", NAMES)
    return tmp_path / "keys"


@contextlib.asynccontextmanager
async def all_three(keys: Path) -> AsyncIterator[list[Group]]:
    peers = addresses(*NAMES)
    async with contextlib.AsyncExitStack() as stack:
        joins = [ordercast.join("g", me=me, peers=peers, keys=keys) for me in NAMES]
        yield list(await asyncio.gather(*map(stack.enter_async_context, joins)))


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("who", ["a", "c"])
def test_a_member_is_put_out_and_the_others_lose_nothing(loop: str, who: str, keys: Path) -> None:
    """Everyone dials a, and c dials everyone: the list counts for both sides of a connection."""

    async def scene() -> None:
        async with all_three(keys) as groups:
            stay = [group for group in groups if group.me != who]
            (out,) = (group for group in groups if group.me == who)
            names = tuple(group.me for group in stay)
            sending = asyncio.create_task(send_all(stay[0]))
            await take(stay[1], 5)
            revoke_members(keys, "g", [who])
            await until(lambda: all(group.view.present == names for group in stay))
            texts = [line.split()[1] for line in await take(stay[1], 95)]
            assert texts == [str(number) for number in range(5, 100)]
            await sending
            await until(lambda: out.view.present == (who,))
            await until(lambda: any("revoked" in g.status().failed_handshakes for g in stay))

    run_on(loop, scene)


async def send_all(group: Group) -> None:
    for number in range(100):
        await group.send(b"%d" % number)
        await asyncio.sleep(0.002)


def test_one_after_the_other_in_the_same_second(keys: Path) -> None:
    """Of two lists the newer one counts, and what replaces a certificate is welcome."""
    make_group(keys, "g", ("x", "y"))
    question = {name: encode_frame(Ask(VERSION, "g", name, "")) for name in "xy"}

    async def welcome(name: str, where: Address) -> bool:
        with contextlib.suppress(OSError):
            return await knock(where, context_of(keys, name), question[name]) != b""
        return False

    async def scene() -> None:
        async with two_of_three(keys) as (_, where):
            assert await welcome("x", where)
            assert await welcome("y", where)
            for name, other in (("x", "y"), ("y", "x")):
                revoke_members(keys, "g", [name])
                async with asyncio.timeout(20):
                    while await welcome(name, where):
                        pass
                assert await welcome(other, where) == (name == "x")
            for suffix in ("pem", "key"):
                (keys / f"x.{suffix}").unlink()
            make_group(keys, "g", ("x",))
            assert await welcome("x", where)
            assert not await welcome("y", where)

    asyncio.run(scene())


@pytest.mark.parametrize("what", ["garbage", "another group's", "half of one"])
def test_a_list_that_is_none_changes_nothing(
    what: str, keys: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    foreign = tmp_path / "foreign"
    make_group(foreign, "g", NAMES)
    revoke_members(foreign, "g", ["b"])
    theirs = (foreign / "revoked.pem").read_bytes()
    content = {"garbage": b"nobody", "another group's": theirs, "half of one": theirs[:200]}[what]

    async def scene() -> None:
        async with all_three(keys) as groups:
            (keys / "revoked.pem").write_bytes(content)
            await until(lambda: caplog.text.count("is not heeded") == 3)
            receipt = await groups[0].send(b"still here")
            await receipt.delivered_by()
            assert all(peer.connections == 1 for g in groups for peer in g.status().peers)

    with caplog.at_level(logging.WARNING):
        asyncio.run(scene())
    with pytest.raises(UsageError, match=r"revoked\.pem is no"):
        Credentials.load(keys, group="g", me="a")


def test_who_is_on_the_list_cannot_even_start(keys: Path) -> None:
    revoke_members(keys, "g", ["c"])
    Credentials.load(keys, group="g", me="a")
    with pytest.raises(UsageError, match=r"c\.pem has been revoked"):
        Credentials.load(keys, group="g", me="c")


def test_what_cannot_be_revoked(keys: Path, tmp_path: Path) -> None:
    make_group(tmp_path / "foreign", "g", ("d",))
    (keys / "d.pem").write_bytes((tmp_path / "foreign" / "d.pem").read_bytes())
    for name, sentence in [
        ("x", "there is no file"),
        ("d", "no certificate that the CA beside it has issued"),
        ("ca.key/../a", "cannot be the name of a member"),
    ]:
        with pytest.raises(UsageError, match=sentence):
            revoke_members(keys, "g", [name])
    assert not (keys / "revoked.pem").exists()
    with pytest.raises(UsageError, match="there is no CA in"):
        revoke_members(tmp_path, "g", ["a"])
    with pytest.raises(UsageError, match="the group's own"):
        make_group(keys, "g", ["revoked"])
