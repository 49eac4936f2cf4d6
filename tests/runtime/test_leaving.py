"""Leaving: nobody is kept waiting by whoever is on the way out."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NoReturn

import pytest

import ordercast
from ordercast import Group
from ordercast.errors import JournalError
from ordercast.runtime import memory, node
from ordercast.runtime.journal import Journal, writer
from ordercast.testing import World
from ordercast.testing import run as run_story
from ordercast.trace.spans import log_files, read_log

from .helpers import until
from .test_join import addresses, joined, take

pytestmark = pytest.mark.timeout(60)


def test_members_that_leave_at_the_same_time_do_not_wait_for_each_other() -> None:
    async def run() -> None:
        async with joined("a", "b", "c") as groups:
            for group in groups:
                await group.send(b"and away")
            leaving = (group._node.aclose(flush_s=100) for group in groups)
            async with asyncio.timeout(30):
                await asyncio.gather(*leaving)

    asyncio.run(run())


def test_whoever_takes_a_message_and_leaves_has_said_that_it_was_delivered() -> None:
    async def run() -> None:
        async with joined("a", "b", reliability="best_effort") as (a, b):
            receipt = await a.send(b"take this")
            await take(b, 1)
            await b.aclose()
            async with asyncio.timeout(20):
                assert await receipt.delivered_by() == ("a", "b")

    asyncio.run(run())


@contextlib.asynccontextmanager
async def with_journals(directory: Path, *names: str, sync: str) -> AsyncIterator[list[Group]]:
    peers = addresses(*names)
    async with contextlib.AsyncExitStack() as stack:
        joins = [
            stack.enter_async_context(
                ordercast.join(
                    "g",
                    me=name,
                    peers=peers,
                    reliability="best_effort",
                    journal=directory / name,
                    sync=sync,  # type: ignore[arg-type]
                    trace=directory / "trace",
                )
            )
            for name in names
        ]
        yield list(await asyncio.gather(*joins))


@pytest.fixture(params=["write", "disk"])
def sync(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """On a disk that takes its time."""

    def slow(fd: int) -> None:
        time.sleep(0.03)
        os.fsync(fd)

    monkeypatch.setattr(writer, "sync_file", slow)
    kind: str = request.param
    return kind


def test_the_last_word_of_whoever_leaves_is_in_its_trace(tmp_path: Path, sync: str) -> None:
    async def run() -> list[int]:
        async with with_journals(tmp_path, "a", "b", sync=sync) as groups:
            for group in groups:
                await group.send(b"and away")
            await asyncio.gather(*(group.aclose() for group in groups))
        return [group._node.core.rows for group in groups]

    rows = asyncio.run(run())
    for name, count in zip("ab", rows, strict=True):
        spans = [span for file in log_files(tmp_path / "trace", name) for span in read_log(file)[1]]
        assert sum(span.count for span in spans) == count
        assert spans[-1].kind == "leave"


def test_whoever_takes_a_message_and_leaves_a_slow_disk_has_said_that_it_was_delivered(
    tmp_path: Path, sync: str
) -> None:
    async def run() -> None:
        async with with_journals(tmp_path, "a", "b", sync=sync) as (a, b):
            receipt = await a.send(b"take this")
            await take(b, 1)
            await b.aclose()
            async with asyncio.timeout(20):
                assert await receipt.delivered_by() == ("a", "b")

    asyncio.run(run())


@pytest.mark.parametrize("cancelled", [False, True])
def test_whoever_leaves_a_disk_that_hangs_does_not_stop_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cancelled: bool
) -> None:
    """Other groups of the process go on, and nobody else has the journal until the disk is back."""
    for place, name, limit_s in (
        (node, "LAST_COMMIT_S", 0.1),
        (memory, "CLOSE_S", 60 if cancelled else 0.1),
    ):
        monkeypatch.setattr(place, name, limit_s)
    works = threading.Event()
    works.set()

    def sync_file(fd: int) -> None:
        works.wait()
        os.fsync(fd)

    async def live(here: asyncio.Event) -> None:
        async with with_journals(tmp_path, "a", sync="disk") as (a,):
            await (await a.send(b"one")).stable()
            works.clear()
            await a.send(b"two")
            here.set()

    async def run() -> None:
        here = asyncio.Event()
        leaving = asyncio.create_task(live(here))
        await here.wait()
        if cancelled:
            await asyncio.sleep(1.5)  # for longer than it flushes, and waits for a last commit
            leaving.cancel()
        await asyncio.wait([leaving])
        assert not works.is_set()
        with pytest.raises(JournalError, match="is in use by this process"):
            Journal(tmp_path / "a", identity={})
        works.set()
        await until(lambda: lock_is_free(tmp_path / "a" / "lock"))

    def truncate(fd: int, size: int) -> None:
        assert threading.current_thread() is not threading.main_thread()
        cut(fd, size)

    cut = os.ftruncate
    monkeypatch.setattr(writer, "sync_file", sync_file)
    monkeypatch.setattr(os, "ftruncate", truncate)
    try:
        asyncio.run(run())
    finally:
        works.set()


def lock_is_free(path: Path) -> bool:
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


@pytest.mark.parametrize("turns", range(12))
def test_whoever_is_cancelled_while_leaving_leaves_nothing_behind(turns: int) -> None:
    async def run() -> None:
        peers = addresses("a", "b", "c")
        groups: dict[str, ordercast.Group] = {}

        async def live(me: str) -> None:
            async with ordercast.join("g", me=me, peers=peers) as group:
                groups[me] = group
                async for _ in group:
                    pass

        lives = {me: asyncio.create_task(live(me)) for me in peers}
        await until(lambda: len(groups) == 3)
        await groups["c"].send(b"nobody has acknowledged this")
        lives["c"].cancel()
        for _ in range(turns):
            await asyncio.sleep(0)
        lives["c"].cancel()
        await asyncio.wait([lives["c"]])
        node = groups["c"]._node
        await until(lambda: not node.reception.connections, within_s=5)
        assert all(task.done() for task in node._dialling._tasks)
        await until(lambda: groups["a"].view.present == groups["b"].view.present == ("a", "b"))
        for me in "ab":
            lives[me].cancel()
        await asyncio.wait(lives.values())

    asyncio.run(run())


def test_whoever_leaves_twice_at_once_has_left_when_either_says_so() -> None:
    async def run() -> None:
        async with joined("a", "b") as (a, _):
            first = asyncio.create_task(a.aclose())
            await asyncio.sleep(0)
            assert not first.done()
            await a.aclose()
            await asyncio.sleep(0)
            assert first.done()

    asyncio.run(run())


def test_who_has_begun_to_leave_sends_nothing_any_more() -> None:
    """Neither while it leaves, nor in the turns after that in which something is still done."""
    refused = []

    async def send(group: ordercast.Group, times: int) -> None:
        for _ in range(times):
            try:
                await group.send(b"too late")
            except ordercast.UsageError as error:
                refused.append(str(error))
            await asyncio.sleep(0)

    async def run() -> None:
        async with joined("a", "b", reliability="best_effort") as (a, b):
            await (await a.send(b"in time")).delivered_by("b")
            leaving = asyncio.create_task(a.aclose())
            await asyncio.sleep(0)
            await send(a, 50)
            await leaving
            await send(a, 50)
            assert await take(b, 1) == ["a:1 in time"]
            assert b._node.core.delivered == a._node.core.sent == 1

    asyncio.run(run())
    assert len(refused) == 100
    assert {*refused} == {"this member has left the group: it can neither send nor receive"}


@pytest.mark.parametrize("after_s", [1, 7])
def test_whoever_fails_while_it_leaves_waits_for_its_disk_no_longer(
    after_s: float, tmp_path: Path
) -> None:
    """Neither for what others wait for, nor for its last word."""

    async def story(world: World) -> None:
        peers = {"a": "127.0.0.1:7001"}
        async with ordercast.join("g", me="a", peers=peers, journal=tmp_path / "a") as group:
            node, began = group._node, world.now
            assert node.journal is not None
            node.journal.write = lambda: False  # type: ignore[method-assign]
            node.journal.commit = lambda then: None  # type: ignore[method-assign]
            world.loop.call_later(after_s, node.fail, JournalError("no answer"))
            await node.aclose(flush_s=5)
            assert world.now == began + after_s

    run_story(story)


def test_a_disk_that_fails_after_the_last_turn_fails_the_member(
    tmp_path: Path, sync: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When it is only waited for that all is safe: nobody else would look then."""
    broken = OSError(errno.EIO, os.strerror(errno.EIO))

    def fails(*_: object) -> NoReturn:
        raise broken

    async def run() -> None:
        async with with_journals(tmp_path, "a", "b", sync=sync) as (a, b):
            await a.send(b"take this")
            await take(b, 1)  # which it says as it leaves
            node, journal, commit = b._node, b._node.journal, b._node.turn.commit
            assert journal is not None

            def last_turn() -> None:
                commit()
                if sync == "write":
                    monkeypatch.setattr(journal._files, "write", fails)
                else:
                    thread = threading.Thread(target=journal._trouble.in_thread, args=(broken,))
                    thread.start()
                    thread.join()

            node.turn.stop()
            node.turn.commit = last_turn  # type: ignore[method-assign]
            await node._commit()
            assert journal.failure is not None
            with pytest.raises(JournalError, match="Input/output error"):
                await b.send(b"more")

    asyncio.run(run())
