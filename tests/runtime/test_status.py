"""What a member says of itself: counted right, served to this user alone."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import shutil
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import ordercast
from ordercast import Group, JournalError, OrdercastError, TraceError, UsageError
from ordercast.runtime.ask_status import ask
from ordercast.runtime.discovery import Address
from ordercast.runtime.logs import JsonFormatter
from ordercast.runtime.watching import REQUEST_BYTES_MAX, Watch

from .helpers import until
from .test_join import joined, take

pytestmark = pytest.mark.timeout(60)


async def request(path: Path, data: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(data)
    async with asyncio.timeout(20):
        answer = await reader.read()
    writer.close()
    return answer


@contextlib.asynccontextmanager
async def watching(group: Group, path: Path) -> AsyncIterator[None]:
    async with contextlib.aclosing(Watch.on_socket(path)) as watch:
        await watch.open()
        watch.serve(group)
        yield


def test_everything_is_counted(tmp_path: Path) -> None:
    async def run() -> None:
        async with joined("a", "b") as (a, b):
            for number in range(10):
                await a.send(b"%d" % number)
            await until(lambda: b.status().delivered == 10)
            status = b.status()
            assert (status.me, status.group, status.members) == ("b", "g", ("a", "b"))
            assert (status.queued, status.taken, status.bundles_delivered) == (10, 0, 1)
            assert status.bytes_delivered == status.queued_bytes > 10
            await take(b, 4)
            assert (b.status().queued, b.status().taken) == (6, 4)
            async for batch in b.batches():
                assert len(batch) == 6
                break
            assert (b.status().queued, b.status().taken, b.status().queued_bytes) == (0, 10, 0)
            assert b.status().bytes_delivered == status.bytes_delivered
            await until(lambda: a.status().peers[0].undelivered_bundles == 0)
            status = a.status()
            assert (status.sent, status.bundles_sent, status.waiting) == (10, 1, 0)
            assert status.bytes_sent == b.status().bytes_delivered
            [peer] = status.peers
            assert (peer.name, peer.connected, peer.connections) == ("b", True, 1)
            assert status.journal is None
            await a.send(b"about to leave")
            assert a.status().waiting == 1

    asyncio.run(run())


def test_the_window_and_what_is_held_are_told() -> None:
    async def run() -> None:
        async with joined("a", "b", "c") as (a, b, c):
            await b.aclose()
            await c.aclose()
            await until(lambda: a.view.present == ("a",))
            await a.send(b"x" * 1000)
            await until(lambda: a.status().held == 1)
            status = a.status()
            assert [str(hold) for hold in status.why_held] == ["a:1 waits for word from b, c"]
            assert 1000 < status.window_used_bytes < 1100
            assert status.undelivered_bundles == 1
            assert [peer.window_used_bytes > 1000 for peer in status.peers] == [True, True]
            assert all(peer.unacknowledged_bytes > 1000 for peer in status.peers)

    asyncio.run(run())


def test_a_journal_is_told(tmp_path: Path) -> None:
    async def run() -> None:
        async with joined("a", journal=tmp_path / "journal") as (a,):
            await a.send(b"x" * 500)
            await until(lambda: a.status().taken == 0 and a.status().delivered == 1)
            await asyncio.sleep(0)  # what is delivered in one turn is written at its end
            journal = a.status().journal
            assert journal is not None
            assert journal.directory == str(tmp_path / "journal")
            assert (journal.segment, journal.commits >= 1) == (1, True)
            assert journal.segment_bytes > journal.written_bytes > 500

    asyncio.run(run())


def test_a_journal_that_is_removed_under_a_member_fails_it(tmp_path: Path) -> None:
    async def run() -> None:
        async with joined("a", journal=tmp_path / "journal") as (a,):
            await (await a.send(b"safe")).stable()
            shutil.rmtree(tmp_path / "journal")
            async with asyncio.timeout(20):
                with pytest.raises(JournalError, match=r"the journal in .*/journal is lost: "):
                    await _send_for_ever(a)

    asyncio.run(run())


def test_a_trace_that_is_removed_under_a_member_fails_it(tmp_path: Path) -> None:
    async def run() -> None:
        async with joined("a", trace=tmp_path / "trace") as (a,):
            await (await a.send(b"seen")).stable()
            shutil.rmtree(tmp_path / "trace")
            async with asyncio.timeout(20):
                with pytest.raises(TraceError, match=r"the trace in .*/trace is lost: "):
                    await _send_for_ever(a)

    asyncio.run(run())


async def _send_for_ever(group: Group) -> None:
    while True:
        await (await group.send(b"not safe")).stable()
        await asyncio.sleep(0.01)


def test_it_is_served_on_a_socket_of_this_user(tmp_path: Path) -> None:
    path = tmp_path / "a.status"

    async def run() -> None:
        async with joined("a") as (a,):
            await a.send(b"hello")
            await until(lambda: a.status().delivered == 1)
            async with watching(a, path):
                assert path.stat().st_mode & 0o777 == 0o600
                told = await asyncio.to_thread(ask, path)
                assert (told.me, told.delivered) == ("a", 1)
                assert type(told) is ordercast.Status
                answer = await request(path, b"GET /metrics HTTP/1.0\r\n\r\n")
                assert b"\nordercast_messages_sent_total{" in answer
                with pytest.raises(UsageError, match="another member serves its status"):
                    Watch.on_socket(path)
                with pytest.raises(UsageError, match=r"runs already \(its status is served at"):
                    Watch.beside(path, None)
            assert not path.exists()

    asyncio.run(run())


def test_whoever_asks_a_member_that_waits_is_told_so(tmp_path: Path) -> None:
    path = tmp_path / "a.status"

    async def run() -> None:
        async with contextlib.aclosing(Watch.on_socket(path)) as watch:
            await watch.open()
            with pytest.raises(OrdercastError, match="this member has not joined yet"):
                await asyncio.to_thread(ask, path)
            answer = await request(path, b"GET /metrics HTTP/1.1\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 503 ")
            async with joined("a") as (a,):
                watch.serve(a)
                assert (await asyncio.to_thread(ask, path)).me == "a"

    asyncio.run(run())


def test_a_socket_is_taken_before_anyone_answers_there(tmp_path: Path) -> None:
    path = tmp_path / "both.status"
    first = Watch.on_socket(path)
    with pytest.raises(UsageError, match=r"another member serves its status at .*/both"):
        Watch.on_socket(path)
    with pytest.raises(UsageError, match=r"runs already \(its status is served at"):
        Watch.beside(path, None)
    asyncio.run(first.aclose())
    assert not path.exists()


def test_only_the_socket_of_its_own_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "a.status"
    first = Watch.on_socket(path)
    path.unlink()  # as an administrator may, who takes it for a dead member's
    second = Watch.on_socket(path)
    asyncio.run(first.aclose())
    assert path.exists()
    asyncio.run(second.aclose())
    assert not path.exists()


def test_whoever_asks_wrongly_is_told_or_dropped(tmp_path: Path) -> None:
    path = tmp_path / "a.status"

    async def run() -> None:
        async with joined("a") as (a,), watching(a, path):
            answer = await request(path, b"GET /secrets HTTP/1.1\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 404 ")
            assert answer.endswith(b"there is: /status /metrics\n")
            answer = await request(path, b"DELETE /status HTTP/1.1\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 405 ")
            with contextlib.suppress(OSError):  # the door may shut before all is said
                assert await request(path, b"x" * 3 * REQUEST_BYTES_MAX) == b""
            answer = await request(path, b"GET /status\r\n\r\n")
            assert json.loads(answer.split(b"\r\n\r\n")[1])["me"] == "a"

    asyncio.run(run())


def test_metrics_that_nothing_is_installed_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.status"
    monkeypatch.delitem(sys.modules, "ordercast.runtime.metrics", raising=False)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)

    async def run() -> None:
        async with joined("a") as (a,), watching(a, path):
            answer = await request(path, b"GET /metrics HTTP/1.1\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 404 ")
            assert answer.endswith(b"pip install 'ordercast[metrics]'\n")
            assert (await asyncio.to_thread(ask, path)).me == "a"

    asyncio.run(run())


def test_what_is_in_the_way_of_a_socket(tmp_path: Path) -> None:
    left_behind = tmp_path / "killed.status"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(left_behind))
    asyncio.run(Watch.on_socket(left_behind).aclose())
    (tmp_path / "file").write_text("precious")
    with pytest.raises(UsageError, match="is in the way of the status socket"):
        Watch.on_socket(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "precious"
    with pytest.raises(UsageError, match="is too long for a socket"):
        Watch.on_socket(tmp_path / ("x" * 100))
    with pytest.raises(
        UsageError, match=r"cannot be served at .*: there is no directory .*/file: m"
    ):
        Watch.on_socket(tmp_path / "file" / "a.status")
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = Address("127.0.0.1", other.getsockname()[1])
        with pytest.raises(UsageError, match=r"served at 127[.0-9:]+: Address already in use$"):
            Watch.on_port(taken)


def test_only_the_directory_that_nobody_has_chosen_is_made(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no directory .*/deep: make it first"):
        Watch.on_socket(tmp_path / "deep" / "a.status")
    assert not (tmp_path / "deep").exists()
    watch = Watch.beside(tmp_path / "deep" / "a.status", None)
    assert (tmp_path / "deep").stat().st_mode & 0o777 == 0o700
    asyncio.run(watch.aclose())


def test_what_is_in_the_way_of_a_journal_is_told_of_the_journal(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    for journal in (tmp_path / "file" / "a", Path("/proc/ordercast")):
        with pytest.raises(JournalError, match=f"the journal in {journal} cannot be opened: "):
            Watch.beside(journal.with_name("a.status"), journal)
    with pytest.raises(UsageError, match=r"cannot be served at .*; choose another path with node"):
        Watch.beside(Path("/proc/a.status"), tmp_path / "journal")


def test_who_does_not_answer(tmp_path: Path) -> None:
    with pytest.raises(OrdercastError, match=r"answers at .*gone: is it running, and is that "):
        ask(tmp_path / "gone")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "dead"))
    with pytest.raises(OrdercastError, match="no member answers"):
        ask(tmp_path / "dead")
    (tmp_path / "file").write_text("")
    with pytest.raises(OrdercastError, match=r"no member answers|does not answer"):
        ask(tmp_path / "file")


def test_logs_for_machines() -> None:
    lines: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    handler = Keep()
    handler.setFormatter(JsonFormatter(member="x"))
    logger = logging.getLogger("ordercast")
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.INFO)

    async def run() -> None:
        async with joined("a", "b") as (a, b):
            await b.aclose()
            await until(lambda: a.view.suspected == ("b",))

    try:
        asyncio.run(run())
        try:
            raise ValueError("for the log")
        except ValueError:
            logging.getLogger("ordercast.x").exception("it %s", "failed")
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    found = [json.loads(line) for line in lines]
    facts = [(line.get("event"), line.get("member"), line.get("peer")) for line in found]
    assert all(line["group"] == "g" for line in found[:-1] if "event" in line)
    for fact in [
        ("connected", "a", "b"),
        ("joined", "a", None),
        ("suspected", "a", "b"),
        ("disconnected", "a", "b"),
    ]:
        assert fact in facts
    assert all(line["time"].endswith("+00:00") for line in found)
    assert (found[-1]["message"], found[-1]["member"]) == ("it failed", "x")
    assert "ValueError: for the log" in found[-1]["exception"]
    assert found[-1]["level"] == "error"


def test_refused_connections_are_counted() -> None:
    async def run() -> None:
        async with joined("a", "b") as (a, _):
            address = _address(a)
            _, writer = await asyncio.open_connection(*address)
            writer.write(b"\x00\x00\x00\x05nonse")
            await until(lambda: a.status().refused_connections == 1)
            writer.close()

    asyncio.run(run())


def _address(group: Group) -> Address:
    address = group._node.reception.door.address
    assert address is not None
    return address
