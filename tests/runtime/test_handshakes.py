"""Handshakes that fail are counted by their reason, on either loop, and told once, not always."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
import uvloop
from prometheus_client import CollectorRegistry

import ordercast
from ordercast.runtime import door
from ordercast.runtime.discovery import Address
from ordercast.runtime.handshakes import REASONS, Handshakes, Reason
from ordercast.runtime.keys import make_group

from .helpers import until
from .test_join import addresses
from .test_tls import context_of, foreign, keys, knock, no_certificate, still_working, two_of_three

__all__ = ["foreign", "keys"]

pytestmark = pytest.mark.timeout(60)

Come = Callable[[Address], Awaitable[object]]


def run_on(loop: str, scene: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await scene()

    factory = uvloop.new_event_loop if loop == "uvloop" else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(run())


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Path:
    """Certificates of this group's authority that were good once, or will be."""
    directory = tmp_path_factory.mktemp("old")
    for name in ("ca.pem", "ca.key"):
        (directory / name).write_bytes((keys / name).read_bytes())
    now = datetime.now(UTC)
    make_group(directory, "g", ("c",), days=30, now=now - timedelta(days=60))
    make_group(directory, "g", ("d",), days=30, now=now + timedelta(days=60))
    return directory


def with_context(context: ssl.SSLContext) -> Come:
    async def come(where: Address) -> None:
        await knock(where, context, b"")

    return come


def saying(data: bytes) -> Come:
    async def come(where: Address) -> None:
        await knock(where, None, data)

    return come


async def hang_up(where: Address) -> None:
    _, writer = await asyncio.open_connection(where.host, where.port)
    writer.close()


def refusing(authority: Path) -> Come:
    """asyncio hangs up without a word; others say what they do not like."""

    def come(where: Address) -> None:
        context = ssl.create_default_context(cafile=authority / "ca.pem")
        context.check_hostname = False
        with (
            socket.create_connection(where) as plain,
            pytest.raises(ssl.SSLCertVerificationError),
        ):
            context.wrap_socket(plain)

    return partial(asyncio.to_thread, come)


def last_century() -> ssl.SSLContext:
    context = no_certificate()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_each_failure_is_counted_by_its_reason(
    loop: str, keys: Path, foreign: Path, old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "ASK_TIMEOUT_S", 1.0)
    strangers: list[tuple[Reason, Come]] = [
        ("expired", with_context(context_of(old, "c"))),
        ("not_yet_valid", with_context(context_of(old, "d"))),
        ("other_authority", with_context(context_of(foreign, "c"))),
        ("no_certificate", with_context(no_certificate())),
        ("old_tls", with_context(last_century())),
        ("not_tls", saying(b"GET / HTTP/1.1\r\n\r\n")),
        ("not_tls", saying(b"\0\0\0\x10" + bytes(16))),
        ("not_tls", saying(b"SSH-2.0-OpenSSH_9.2\r\n")),
        ("refused_by_peer", refusing(foreign)),
        ("unfinished", hang_up),
        ("unfinished", saying(b"")),
    ]

    async def scene() -> None:
        async with two_of_three(keys) as (groups, where):
            a = groups[0]
            registry = CollectorRegistry()
            registry.register(ordercast.metrics(a))
            expected = dict.fromkeys(REASONS, 0)
            assert a.status().failed_handshakes == {}
            assert counted(registry) == expected
            for reason, come in strangers:
                with contextlib.suppress(OSError):  # some are turned away even earlier
                    await come(where)
                expected[reason] += 1
                await until(lambda: counted(registry) == expected)
            only = {reason: count for reason, count in expected.items() if count}
            assert a.status().failed_handshakes == only
            await still_working(groups)

    run_on(loop, scene)


def test_in_debug_mode_strangers_are_told_of_in_a_line_as_well(
    keys: Path, foreign: Path, caplog: pytest.LogCaptureFixture
) -> None:
    strangers = [hang_up, saying(b"GET / HTTP/1.1\r\n\r\n"), with_context(context_of(foreign, "c"))]

    async def scene() -> None:
        async with two_of_three(keys) as (groups, where):
            for come in strangers:
                with contextlib.suppress(OSError):
                    await come(where)
            await until(lambda: sum(groups[0].status().failed_handshakes.values()) == 3)
            await still_working(groups)

    with caplog.at_level(logging.ERROR):
        asyncio.run(scene(), debug=True)
    assert not caplog.messages


def counted(registry: CollectorRegistry) -> dict[str, float | None]:
    labels = {"group": "g", "member": "a"}
    name = "ordercast_failed_handshakes_total"
    return {each: registry.get_sample_value(name, labels | {"reason": each}) for each in REASONS}


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_both_sides_of_a_mistrust_say_so_once(
    loop: str,
    keys: Path,
    foreign: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """b dials a again and again, and hangs up when it sees a's certificate."""
    monkeypatch.setattr(door, "ASK_TIMEOUT_S", 0.5)

    async def scene() -> None:
        peers = addresses("a", "b")

        async def come(me: str, directory: Path, timeout_s: float) -> None:
            async with ordercast.join("g", me=me, peers=peers, keys=directory, timeout_s=timeout_s):
                pass

        # b goes first: asyncio leaves a socket to the garbage collector, with a warning that is an
        # error here, if someone comes in the very turn in which a server closes.
        both = come("a", keys, 2.0), come("b", foreign, 1.5)
        await asyncio.gather(*both, return_exceptions=True)

    with caplog.at_level(logging.WARNING):
        run_on(loop, scene)
    lines = [record.getMessage().partition(" (")[0] for record in caplog.records]
    assert sorted(lines) == [
        "a: no secure connection with a stranger: unfinished",
        "b: no secure connection with a: other authority",
    ]


def test_a_line_now_and_then_says_how_many(caplog: pytest.LogCaptureFixture) -> None:
    now = 100.0
    handshakes = Handshakes("g", "a", clock=lambda: now)
    error = ssl.SSLError(1, "new")
    with caplog.at_level(logging.WARNING):
        for _ in range(42):
            handshakes.fail(error)
        handshakes.give_up()
        now += 9
        handshakes.fail(error)
        now += 1
        handshakes.fail(error)
    other, unfinished, later = (record.getMessage() for record in caplog.records)
    assert other == "a: no secure connection with a stranger: other (new)"
    assert "unfinished" in unfinished, "one reason does not silence another"
    assert later.endswith("; 42 more like it since the last such line)")
    assert handshakes.failed["other"] == 44
