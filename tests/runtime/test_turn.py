"""What members tell each other: it rides on the next frame, and leaves at once if someone waits."""

from __future__ import annotations

import asyncio
import errno
import math
import os
from pathlib import Path
from typing import Any, Literal

import pytest

from ordercast import Group, Settings, TraceError
from ordercast.protocols.disseminations.majority_acks import MajorityAcks
from ordercast.protocols.effects import Effect, StartTimer
from ordercast.runtime import outgoing, timers, turn
from ordercast.runtime.connection import Connection
from ordercast.runtime.frames import Data, Frame
from ordercast.runtime.intake import CROWD
from ordercast.runtime.peer import Peer
from ordercast.trace import span_log
from ordercast.trace.spans import Span, log_files, read_log

from .helpers import until
from .test_join import joined, take
from .test_lives import Pair

pytestmark = pytest.mark.timeout(60)

NEVER_S = 1e9


@pytest.fixture(autouse=True)
def nothing_leaves_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has just sent waits for a ride for ever, and reports wait as long."""
    for name in ("REPORT_DELAY_S", "REPORT_RIDE_S", "ACK_DELAY_S"):
        monkeypatch.setattr(turn, name, NEVER_S)
    monkeypatch.setattr(timers, "RIDE_S", NEVER_S)
    monkeypatch.setattr(outgoing, "SENDS_S", NEVER_S)
    monkeypatch.setattr(outgoing, "PROMPT_S", -1.0)


def unreported(group: Group) -> int:
    return len(group._node.core.standing.lacking)


async def all_send(*groups: Group) -> None:
    """And everything has arrived: whatever is not told by now waits for a ride."""
    for group in groups:
        await group.send(b"something")
    await until(lambda: all(not len(group._node.outgoing) for group in groups))
    await until(
        lambda: all(
            link.received == groups[peer]._node.core.links[me].sent
            for me, group in enumerate(groups)
            for peer, link in group._node.core.links.items()
        )
    )


@pytest.mark.parametrize("reliability", ["best_effort", "uniform"])
def test_whoever_waits_is_told_at_once(reliability: str) -> None:
    async def run() -> None:
        async with joined("a", "b", "c", reliability=reliability) as groups:
            await all_send(*groups)
            assert any(unreported(group) for group in groups)
            async with asyncio.timeout(10):
                receipt = await groups[0].send(b"mine")
                await receipt.stable()
                assert await receipt.delivered_by() == ("a", "b", "c")
            assert not unreported(groups[0])

    asyncio.run(run())


@pytest.mark.parametrize("size", [3, 4, 5])
def test_whoever_waits_is_not_put_off_by_word_of_something_older(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From four members on, the others have something to hear first before they deliver it."""
    monkeypatch.setattr(turn, "REPORT_EVERY_S", math.inf)

    async def run() -> None:
        async with joined(*"abcde"[:size], reliability="uniform") as groups:
            await groups[0].send(b"older, and nobody has said that it is delivered")
            await until(lambda: all(group._node.core.delivered == 1 for group in groups))
            assert unreported(groups[0])
            async with asyncio.timeout(10):
                receipt = await groups[0].send(b"mine")
                assert await receipt.delivered_by() == tuple("abcde"[:size])
            assert not any(group._node.company.peers[0].waits_for for group in groups[1:])

    asyncio.run(run())


def test_a_bundle_that_waits_for_company_does_not_keep_another_waiting() -> None:
    async def run() -> None:
        settings = Settings(linger_s=NEVER_S)
        async with joined("a", "b", "c", reliability="uniform", settings=settings) as (a, b, _):
            for _ in range(2 * outgoing.MANY):
                await b.send(b"many have left lately")
            await until(lambda: not len(b._node.outgoing))
            for _ in range(2 * CROWD):
                await b.send(b"and many wait for company")
            assert len(b._node.outgoing) == 2 * CROWD
            async with asyncio.timeout(10):
                receipt = await a.send(b"mine")
                assert await receipt.delivered_by("b") == ("a", "b", "c")

    asyncio.run(run())


def test_whoever_waits_gets_all_there_is_to_say_in_one_frame(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That a member has the message, and that it has delivered it."""
    frames: list[tuple[str, str, int]] = []
    write = Connection.write

    def watched(connection: Connection, frame: Frame) -> None:
        if isinstance(frame, Data) and connection._peer is not None:
            frames.append((connection._host.name, connection._peer.name, len(frame.packets)))
        write(connection, frame)

    monkeypatch.setattr(Connection, "write", watched)

    async def run() -> None:
        async with joined("a", "b", "c", reliability="uniform") as (a, *_):
            receipt = await a.send(b"mine")
            async with asyncio.timeout(10):
                assert await receipt.delivered_by() == ("a", "b", "c")

    asyncio.run(run())
    assert sorted(frame for frame in frames if frame[1] == "a") == [("b", "a", 2), ("c", "a", 2)]


def test_a_report_rides_on_what_is_sent_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn, "REPORT_EVERY_S", 0.0)

    async def run() -> None:
        async with joined("a", "b", reliability="best_effort") as (a, b):
            await all_send(a, b)
            before = unreported(a)
            await b.send(b"with a report")
            await until(lambda: unreported(a) < before)

    asyncio.run(run())


def test_whoever_leaves_reports_even_if_it_owes_no_acknowledgement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turn, "REPORT_EVERY_S", float("inf"))

    async def run() -> None:
        async with joined("a", "b", reliability="best_effort") as (a, b):
            here, there = a._node.core.links[1], b._node.core.links[0]
            await a.send(b"to be reported")
            await until(lambda: there.received == 1)
            await b.send(b"with the acknowledgement, and without the report")
            await until(lambda: here.received == 1)
            assert (unreported(a), there.owes_ack) == (1, False)
            await b.aclose()
            await until(lambda: not unreported(a))

    asyncio.run(run())


def test_whoever_has_filled_its_window_hears_of_room() -> None:
    settings = Settings(window_bytes=10_000, heartbeat_s=30)

    async def send_many(group: Group) -> None:
        for _ in range(30):
            await group.send(bytes(5_000))

    async def run() -> None:
        async with joined("a", "b", reliability="best_effort", settings=settings) as (a, b):
            reading = asyncio.create_task(take(a, 30))
            sending = asyncio.create_task(send_many(a))
            await until(lambda: a._node.outgoing.busy and b._node.core.queue)
            assert not sending.done()
            async with asyncio.timeout(10):
                await asyncio.gather(take(b, 30), sending, reading)

    asyncio.run(run())


def test_a_majority_is_known_from_what_others_send_next() -> None:
    async def run() -> None:
        async with joined("a", "b", "c", reliability="uniform") as groups:
            await all_send(*groups)
            await all_send(*groups)
            last = groups[2]
            assert last._node.core.last[2] == 1  # of the second nobody has told it yet
            await all_send(*groups)
            await until(lambda: last._node.core.last[2] == 2)

    asyncio.run(run())


def test_an_application_that_sends_when_its_own_came_back_seems_to_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outgoing, "PROMPT_S", NEVER_S)

    async def ping(group: Group, times: int) -> None:
        await (await group.send(b"the first")).stable()
        for number in range(1, times + 1):
            await group.send(b"mine")
            async for delivery in group:
                if (delivery.sender, delivery.number) == (group.me, number):
                    break

    async def run() -> None:
        async with joined("a", "b", "c", reliability="uniform") as groups:
            async with asyncio.timeout(20):
                await asyncio.gather(*(ping(group, 50) for group in groups))

    asyncio.run(run())


def test_only_a_task_that_gets_its_own_back_seems_to_wait_and_says_so_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outgoing, "PROMPT_S", NEVER_S)
    hurries: list[bool] = []
    pump = Peer.pump

    def watched(peer: Peer, *, hurry: bool = False) -> None:
        hurries.append(hurry)
        pump(peer, hurry=hurry)

    monkeypatch.setattr(Peer, "pump", watched)

    async def send(group: Group, times: int) -> None:
        """While another task takes them."""
        before = group._handout.bundles_taken
        for number in range(1, times + 1):
            await group.send(b"mine")
            await until(lambda now=before + number: group._handout.bundles_taken == now)

    async def run() -> None:
        async with joined("a", "b", reliability="best_effort") as (a, b):
            await asyncio.gather(take(a, 5), send(a, 5), take(b, 5))
            assert not any(hurries)
            for _ in range(3):
                await a.send(b"mine")
                await take(a, 1)
            await asyncio.gather(take(b, 3), until(lambda: hurries.count(True) == 2))
            hurries.clear()
            await b.send(b"something else")
            await take(a, 1)
            assert hurries
            assert not any(hurries)

    asyncio.run(run())


def test_a_timer_that_is_put_off_ends_once_and_not_before() -> None:
    ended: list[tuple[str, bool]] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()

        def on_end(name: str) -> None:
            ended.append((name, loop.time() > ends[name] - 2 * timers.CLOCK_S))

        async with joined("a", "b", reliability="best_effort") as (a, _):
            begin = loop.time()
            ends = {"put off": begin + 0.2, "brought forward": begin + 0.1}
            running = timers.Timers(a._node.core, a._node.outgoing, on_end)
            running.run("put off", begin, begin + 0.05)
            running.run("brought forward", begin, begin + NEVER_S)
            for name, end in ends.items():
                running.run(name, begin, end)
            assert len(running) == 2
            await until(lambda: not len(running))

    asyncio.run(run())
    # On a busy machine both may be up by the time that anyone looks, and come in any order.
    assert sorted(ended) == [("brought forward", True), ("put off", True)]


def test_a_timer_ends_once_and_one_that_is_up_at_once_again_and_again_lets_the_loop_turn() -> None:
    ended: list[str] = []

    async def run() -> None:
        async with joined("a", "b", reliability="best_effort") as (a, _):
            core = a._node.core

            def on_end(name: str) -> None:
                ended.append(name)
                if name == "again":
                    core.timers[name] = 0
                    core.started.append(name)

            running = timers.Timers(core, a._node.outgoing, on_end)
            core.timers["once"] = 1
            for hurried in (False, True):
                core.started.append("once")
                running.hurried = hurried
                running.start()
            assert ended == ["once"]
            core.timers["again"] = 0
            core.started.append("again")
            running.start()
            running.start(now=False)
            assert ended == ["once", "again"]
            await until(lambda: len(ended) > 2)
            running.stop()

    asyncio.run(run())


def test_a_timer_that_is_up_at_once_may_start_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outgoing, "SENDS_S", 0.0)
    ended: list[str] = []

    def timer(acks: MajorityAcks, name: str) -> list[Effect]:
        ended.append(name)
        return [StartTimer("another", 1000)] if name != "another" else []

    monkeypatch.setattr(MajorityAcks, "timer", timer)

    async def run() -> None:
        async with joined("a", "b", reliability="uniform") as (a, _):
            await a.send(b"tell me that you have it")
            await until(lambda: "another" in ended)

    asyncio.run(run())


def test_nobody_who_is_waited_for_waits_for_company() -> None:
    """Neither with a timer that runs already, nor with one that begins now."""
    ended: list[str] = []

    async def run() -> None:
        async with joined("a", "b", reliability="best_effort") as (a, _):
            core = a._node.core
            running = timers.Timers(core, a._node.outgoing, ended.append)
            for hurries, name in ((False, "company"), (True, "more company"), (False, "later")):
                core.timers[name] = int(NEVER_S / 2 * 1e6)
                core.started.append(name)
                if hurries:
                    running.hurry()
                running.start()
            await until(lambda: len(ended) == 2)
            assert len(running) == 1
            running.stop()

    asyncio.run(run())
    assert sorted(ended) == ["company", "more company"]


def test_acknowledgements_ride_only_as_long_as_there_is_a_ride(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turn, "ACK_DELAY_S", 0.01)

    async def run() -> None:
        settings = Settings(heartbeat_s=30)
        async with joined("a", "b", reliability="best_effort", settings=settings) as (a, b):
            await all_send(a, b)
            assert a._node.core.links[1].unacknowledged  # b waits for a ride
            monkeypatch.setattr(outgoing, "SENDS_S", 0.0)
            await until(lambda: not a._node.core.links[1].unacknowledged)

    asyncio.run(run())


class FullDisk:
    """In place of `os` in the log's module: there is no room left, once it is `full`."""

    def __init__(self) -> None:
        self.full = False

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def write(self, file: int, data: bytes) -> int:
        if not self.full:
            return os.write(file, data)
        if len(data) > 1:
            return os.write(file, data[: len(data) // 2])  # as much as still fits
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("sync", ["write", "disk"])
def test_a_member_whose_trace_cannot_be_written_stops(
    sync: Literal["write", "disk"], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FullDisk()
    monkeypatch.setattr(span_log, "os", disk)
    words = rf"the trace cannot be written: {tmp_path}/t/a-0001.spans: No space left .* has room"

    async def run() -> None:
        async with Pair(tmp_path, sync=sync, order="fifo", reliability="best_effort") as pair:
            a, b = await asyncio.gather(pair.join("a", trace=tmp_path / "t"), pair.join("b"))
            await a.send(b"1")
            await take(b, 1)
            await take(a, 1)
            disk.full = True
            await a.send(b"2")
            with pytest.raises(TraceError, match=words):
                await take(a, 1)
            with pytest.raises(TraceError, match=words):
                await a.send(b"3")
            disk.full = False
            await pair.leave("a")
            a = await pair.join("a", trace=tmp_path / "t")  # and what the trace lacks is added
            await a.send(b"3")
            assert await take(b, 2) == ["a:2 2", "a:3 3"]
            (file,) = log_files(tmp_path / "t", "a")
            sends = [span for span in read_log(file)[1] if span.kind == "send"]
            assert [span.first for span in sends] == [1, 2, 3]

    asyncio.run(run())


def test_a_trace_that_cannot_be_begun_is_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FullDisk()
    monkeypatch.setattr(span_log, "os", disk)

    async def run() -> None:
        disk.full = True
        with pytest.raises(TraceError, match=rf"written: {tmp_path}/a-0001.spans: No space left"):
            async with joined("a", trace=tmp_path):
                pass
        disk.full = False
        async with joined("a", trace=tmp_path) as (a,):
            await a.send(b"now")

    asyncio.run(run())


def test_a_trace_whose_next_file_cannot_be_made_says_so(tmp_path: Path) -> None:
    with span_log.SpanLog(tmp_path, "a", run="g", process=0, rotate_bytes=1) as log:
        tmp_path.joinpath("a-0002.spans").touch()
        with pytest.raises(TraceError, match=r"a-0002.spans: File exists"):
            log.write([Span("join", 1)])
    assert [span.kind for span in read_log(tmp_path / "a-0001.spans")[1]] == ["join"]
