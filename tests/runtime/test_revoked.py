"""Certificates that were revoked: whoever shows one stays outside, and is put there if it is in."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import ssl
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import ordercast
from ordercast import Group, UsageError
from ordercast.runtime import door
from ordercast.runtime.discovery import Address
from ordercast.runtime.frames import VERSION, Ask, encode_frame
from ordercast.runtime.keys import Credentials, make_group, revoke_members
from ordercast.runtime.revoked import RevokedList

from .helpers import until
from .test_handshakes import run_on
from .test_join import addresses, take
from .test_keys import meet
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


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_handshake_that_was_under_way_when_the_list_came(
    loop: str, keys: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        async with two_of_three(keys) as (_, where):
            reader, writer = await asyncio.open_connection(where.host, where.port)
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            tls = context_of(keys, "c").wrap_bio(incoming, outgoing)
            with pytest.raises(ssl.SSLWantReadError):
                tls.do_handshake()
            writer.write(outgoing.read())
            incoming.write(await reader.read(2**16))
            tls.do_handshake()
            revoke_members(keys, "g", ["c"])
            await until(lambda: caplog.text.count("heeds the new") == 2)
            tls.write(encode_frame(Ask(VERSION, "g", "c", "")))
            writer.write(outgoing.read())
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
            writer.close()

    with caplog.at_level(logging.INFO):
        run_on(loop, scene)


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


def own_files_replaced(keys: Path, *suffixes: str, by: Path) -> None:
    for suffix in suffixes:
        shutil.copy(by / f"a.{suffix}", keys / f"a.{suffix}")


def shuts_out(mine: Credentials, theirs: Credentials) -> bool:
    """Whichever side dials."""
    met = []
    for calling, called in ((mine, theirs), (theirs, mine)):
        with contextlib.suppress(OSError):
            met.append(asyncio.run(meet(calling, called)))
    assert len(met) in (0, 2)
    return not met


@pytest.mark.parametrize("how", ["half renewed", "gone", "garbage", "of another CA"])
def test_what_becomes_of_the_own_files_does_not_matter(
    how: str, keys: Path, tmp_path: Path
) -> None:
    a, b, c = (Credentials.load(keys, group="g", me=me) for me in NAMES)
    revoked = RevokedList(a)
    revoke_members(keys, "g", ["c"])
    make_group(tmp_path / "new", "g", NAMES)
    if how == "half renewed":
        own_files_replaced(keys, "key", by=tmp_path / "new")
    elif how == "gone":
        for file in a.files:
            file.unlink()
    elif how == "garbage":
        for file in a.files:
            file.write_text("nothing")
    else:
        own_files_replaced(keys, "key", "pem", by=tmp_path / "new")
        shutil.copy(tmp_path / "new" / "ca.pem", keys / "ca.pem")
    assert revoked.renewed()
    assert shuts_out(a, c)
    assert not shuts_out(a, b)


@pytest.fixture
def expiring(keys: Path) -> Credentials:
    """Of d, in the same group, whose certificate expires in a moment."""
    soon = datetime.now(UTC) - timedelta(days=1) + timedelta(seconds=4)
    make_group(keys, "g", ["d"], days=1, now=soon)
    return Credentials.load(keys, group="g", me="d")


def wait_for_the_end_of(mine: Credentials) -> None:
    time.sleep(max(0.0, mine.expires.timestamp() + 1.1 - time.time()))


def test_a_member_that_has_expired_meanwhile_heeds_a_list(
    keys: Path, expiring: Credentials
) -> None:
    """Of its own CA: one that has expired does not believe just any."""
    revoked = RevokedList(expiring)
    wait_for_the_end_of(expiring)
    with pytest.raises(UsageError, match="has expired"):
        Credentials.load(keys, group="g", me="d")
    make_group(keys / "foreign", "g", NAMES)
    revoke_members(keys / "foreign", "g", ["c"])
    shutil.copy(keys / "foreign" / "revoked.pem", keys)
    assert not revoked.renewed()
    (keys / "revoked.pem").unlink()
    revoke_members(keys, "g", ["c"])
    assert revoked.renewed()


def test_a_list_of_another_ca_is_not_heeded_even_if_all_other_files_are_of_it(
    keys: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    new = tmp_path / "new"
    make_group(new, "g", (*NAMES, "x"))
    revoke_members(new, "g", ["x"])

    async def scene() -> None:
        async with all_three(keys) as groups:
            for file in new.iterdir():
                shutil.copy(file, keys / file.name)
            await until(lambda: caplog.text.count("is not heeded") == 3)
            await (await groups[0].send(b"still here")).delivered_by()
            assert all(peer.connections == 1 for g in groups for peer in g.status().peers)

    with caplog.at_level(logging.WARNING):
        asyncio.run(scene())
    said = "revoked.pem is not a list that the CA of this member has signed"
    assert caplog.text.count(said) == 3


def test_what_was_not_heeded_is_tried_again_and_told_once(
    keys: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if the file looks the same as when it could not be used."""
    a, c = (Credentials.load(keys, group="g", me=me) for me in "ac")
    revoked = RevokedList(a)
    revoke_members(keys, "g", ["c"])
    file = keys / "revoked.pem"
    whole = file.read_bytes()
    looks = revoked._look()
    monkeypatch.setattr(revoked, "_look", lambda: looks)
    for content in (b"", whole[:-40], b"x" * len(whole)):
        file.write_bytes(content)
        for _ in range(3):
            assert not revoked.renewed()
    assert 1 <= len(caplog.messages) <= 3
    assert not shuts_out(a, c)
    file.write_bytes(whole)
    assert revoked.renewed()
    assert not revoked.renewed()
    assert shuts_out(a, c)
    monkeypatch.undo()
    file.unlink()
    assert not revoked.renewed()
    assert shuts_out(a, c)


def test_a_list_that_is_not_valid_yet_is_heeded_when_it_is(
    keys: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The clock of the machine where it was made is an hour and a little ahead."""
    revoked = RevokedList(Credentials.load(keys, group="g", me="a"))
    revoke_members(keys, "g", ["c"], now=datetime.now(UTC) + timedelta(hours=1, seconds=5))
    assert not revoked.renewed()
    assert not revoked.renewed()
    (said,) = caplog.messages
    assert "revoked.pem is not valid yet: is the clock of this machine right?" in said
    with pytest.raises(UsageError, match=r"revoked\.pem is not valid yet"):
        Credentials.load(keys, group="g", me="a")
    asyncio.run(until(revoked.renewed))


def list_of(keys: Path, *, since: datetime, until: datetime) -> bytes:
    """Nobody is on it. As another CA's tools might make it."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization

    from ordercast.runtime.certificates import the_authority

    authority = the_authority(keys, "g")
    builder = x509.CertificateRevocationListBuilder().issuer_name(authority.certificate.subject)
    made = builder.last_update(since).next_update(until).sign(authority.key, hashes.SHA256())
    return made.public_bytes(serialization.Encoding.PEM)


def test_lists_with_nobody_on_them(keys: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One that has lapsed would shut everyone out."""
    a, b = (Credentials.load(keys, group="g", me=me) for me in "ab")
    revoked = RevokedList(a)
    now, day = datetime.now(UTC), timedelta(days=1)
    (keys / "revoked.pem").write_bytes(list_of(keys, since=now - 2 * day, until=now - day))
    assert not revoked.renewed()
    assert "revoked.pem is not valid any more: make a new list" in caplog.text
    assert not shuts_out(a, b)
    (keys / "revoked.pem").write_bytes(list_of(keys, since=now - day, until=now + day))
    assert revoked.renewed()
    assert not shuts_out(a, b)


def test_who_is_on_the_list_heeds_it_too(keys: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Two that are shut out do not stay with each other."""
    b, c = (Credentials.load(keys, group="g", me=me) for me in "bc")
    revoked = RevokedList(c)
    revoke_members(keys, "g", ["b", "c"])
    assert revoked.renewed()
    assert "the certificate it was started with is on the new" in caplog.text
    assert shuts_out(c, b)


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
