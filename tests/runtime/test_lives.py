"""One member's several lives: what the journal gives back, and what becomes of the absent."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import ordercast
from ordercast import Group, Settings, TraceError, UsageError
from ordercast.runtime import memory
from ordercast.runtime.core import Core
from ordercast.testing import World
from ordercast.testing import run as run_story
from ordercast.trace.spans import log_files, read_log

from .helpers import until
from .test_join import addresses, take

pytestmark = pytest.mark.timeout(60)

SMALL = Settings(segment_bytes=8000, keep_bytes=24_000)


class Pair:
    """Two members with journals; each may die and come back."""

    def __init__(self, directory: Path, **options: Any) -> None:
        self.peers = addresses("a", "b")
        self.directory = directory
        self.options = options
        self._stacks: dict[str, contextlib.AsyncExitStack] = {}

    async def join(self, me: str, **changes: Any) -> Group:
        stack = self._stacks[me] = contextlib.AsyncExitStack()
        options = {"journal": self.directory / me, **self.options, **changes}
        return await stack.enter_async_context(
            ordercast.join("g", me=me, peers=self.peers, **options)
        )

    async def both(self) -> tuple[Group, Group]:
        a, b = await asyncio.gather(self.join("a"), self.join("b"))
        return a, b

    async def leave(self, me: str) -> None:
        await self._stacks.pop(me).aclose()

    async def die(self, me: str, group: Group) -> None:
        """As a kill does: nothing is flushed, and nobody is told."""
        group._node.fail(ZeroDivisionError("killed"))
        await self._stacks.pop(me).aclose()

    async def __aenter__(self) -> Pair:
        return self

    async def __aexit__(self, *_: object) -> None:
        for me in list(self._stacks):
            await self.leave(me)


def test_what_was_not_taken_is_delivered_after_the_restart(tmp_path: Path) -> None:
    async def run() -> None:
        async with Pair(tmp_path) as pair:
            a, b = await pair.both()
            for number in range(10):
                receipt = await a.send(b"%d" % number)
            await receipt.delivered_by("b")
            assert await take(b, 4) == [f"a:{n + 1} {n}" for n in range(4)]
            await pair.die("b", b)
            late = await a.send(b"while b is away")
            b = await pair.join("b")
            assert await take(b, 7) == [f"a:{n + 1} {n}" for n in range(4, 10)] + [
                "a:11 while b is away"
            ]
            async with asyncio.timeout(10):
                await late.stable()
            await b.send(b"and b still counts its own")
            assert (await take(a, 12))[-1] == "b:1 and b still counts its own"

    asyncio.run(run())


def test_leaving_ends_iterators_and_the_rest_comes_in_the_next_life(tmp_path: Path) -> None:
    taken: list[int] = []

    async def read(group: Group) -> None:
        async for delivery in group:
            taken.append(delivery.position)
            await asyncio.sleep(0.001)

    async def run() -> None:
        async with Pair(tmp_path) as pair:
            a, b = await pair.both()
            for _ in range(300):
                receipt = await a.send(b"x")
            await receipt.delivered_by("b")
            for enough in (50, 100, 300):
                reading = asyncio.create_task(read(b))
                await until(partial(lambda enough: len(taken) >= enough, enough))
                await pair.leave("b")
                async with asyncio.timeout(5):
                    await reading
                b = await pair.join("b")

    asyncio.run(run())
    assert taken == list(range(1, 301))


def test_both_down_and_both_back(tmp_path: Path) -> None:
    async def run() -> None:
        async with Pair(tmp_path, order="total") as pair:
            for life in range(1, 4):
                a, b = await pair.both()
                await a.send(b"a%d" % life)
                await b.send(b"b%d" % life)
                assert await take(a, 2) == await take(b, 2)
                await pair.die("a", a)
                await pair.die("b", b)

    asyncio.run(run())


def test_replay_from_a_position_reaches_back_over_several_segments(tmp_path: Path) -> None:
    async def run() -> None:
        async with Pair(tmp_path, settings=SMALL) as pair:
            a, b = await pair.both()
            for number in range(400):
                await a.send(b"%0100d" % number)
                if number % 20 == 19:
                    assert len(await take(b, 20)) == 20
                    await take(a, 20)
            assert len(list((tmp_path / "b").glob("*.segment"))) > 1
            await pair.die("b", b)
            b = await pair.join("b", replay_from=350)
            replayed = await take(b, 51)
            assert [entry.split()[0] for entry in replayed] == [f"a:{n}" for n in range(350, 401)]
            await pair.leave("b")
            with pytest.raises(UsageError, match="not in the journal any more: replay from"):
                await pair.join("b", replay_from=1)
            with pytest.raises(UsageError, match="from position 401 on were never taken, and noth"):
                await pair.join("b", replay_from=402)
            b = await pair.join("b")
            await a.send(b"new")
            assert await take(b, 1) == ["a:401 new"]

    asyncio.run(run())


def test_whoever_keeps_positions_begins_like_any_other_time(tmp_path: Path) -> None:
    """With the same call in each life: `replay_from` the position that was kept, plus one."""
    kept = 0

    async def run() -> None:
        nonlocal kept
        async with Pair(tmp_path) as pair:
            with pytest.raises(UsageError, match="to replay from position 2 on: this journal is n"):
                await pair.join("b", replay_from=2)
            a, b = await asyncio.gather(pair.join("a"), pair.join("b", replay_from=kept + 1))
            for life in range(3):
                await a.send(b"%d" % life)
                assert await take(b, 1) == [f"a:{life + 1} {life}"]
                kept += 1
                await pair.die("b", b)
                b = await pair.join("b", replay_from=kept + 1)

    asyncio.run(run())


def test_leaving_is_not_crashing(tmp_path: Path) -> None:
    async def run() -> None:
        async with Pair(tmp_path, trace=tmp_path / "trace") as pair:
            a, b = await pair.both()
            await a.send(b"x")
            await take(b, 1)
            await pair.leave("b")
            b = await pair.join("b")
            await asyncio.sleep(0.1)  # until it has written down that it is back
            await pair.die("b", b)
            await pair.join("b")

    asyncio.run(run())
    from ordercast.trace.spans import log_files, read_log

    (file,) = log_files(tmp_path / "trace", "b")
    kinds = [span.kind for span in read_log(file)[1]]
    assert kinds == ["receive", "deliver", "leave", "join", "crash", "recover", "leave"]


def test_whoever_comes_back_without_its_journal_is_a_stranger(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with Pair(tmp_path, timeout_s=5) as pair:
            a, b = await pair.both()
            await a.send(b"x")
            await take(b, 1)
            await pair.die("b", b)
            with pytest.raises(ordercast.DiscoveryError, match="without what it knew"):
                await pair.join("b", journal=None)
            await pair.join("b")
            await until(lambda: a.view.present == ("a", "b"))

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert "b has come back without what it knew" in caplog.text


@pytest.mark.parametrize("wrong", ["order", "group"])
def test_whoever_comes_back_as_something_else_harms_nobody(wrong: str, tmp_path: Path) -> None:
    """a is started again with a slip of the pen, or its port now belongs to another group."""

    async def run() -> None:
        async with Pair(tmp_path, order="causal") as pair:
            _, b = await pair.both()
            await pair.leave("a")
            group, order = ("g", "fifo") if wrong == "order" else ("other", "causal")
            with pytest.raises(ordercast.DiscoveryError, match=r"turned away, since a (runs|bel)"):
                async with ordercast.join(
                    group, me="a", peers=pair.peers, order=order, timeout_s=0.5
                ):
                    pass
            assert not b._node.failure.done()
            a = await pair.join("a")
            await b.send(b"all is well")
            assert await take(a, 1) == ["b:1 all is well"]

    asyncio.run(run())


def test_another_groups_journal_is_refused(tmp_path: Path) -> None:
    async def run() -> None:
        async with Pair(tmp_path) as pair:
            await pair.both()
        async with Pair(tmp_path, order="fifo") as pair:
            with pytest.raises(
                ordercast.JournalError,
                match="is of causal_vector over majority_acks, and this member",
            ):
                await pair.join("a")

    asyncio.run(run())


def test_a_member_that_takes_nothing_is_given_up_and_told(tmp_path: Path) -> None:
    async def run() -> None:
        settings = Settings(window_bytes=1000, heartbeat_s=0.05, dead_after_s=0.5)
        options = {"journal": None, "settings": settings, "reliability": "best_effort"}
        async with Pair(tmp_path, **options) as pair:
            a, b = await pair.both()
            reading = asyncio.create_task(take(a, 2000))
            async with asyncio.timeout(20):
                for _ in range(2000):
                    await a.send(b"x" * 100)
            assert a.view.dead == ("b",)
            with pytest.raises(ordercast.OrdercastError, match=r"b dead: took nothing for 0\.5 s"):
                async for _ in b:
                    pass
            reading.cancel()

    asyncio.run(run())


def test_whoever_was_given_up_stays_so_after_a_restart(tmp_path: Path) -> None:
    async def run() -> None:
        settings = Settings(heartbeat_s=0.05, dead_after_s=0.3)
        async with Pair(tmp_path, settings=settings, reliability="best_effort") as pair:
            a, b = await pair.both()
            await pair.die("b", b)
            await until(lambda: a.view.dead == ("b",))
            await asyncio.sleep(0.05)  # until it is in the journal
            await pair.die("a", a)
            a = await pair.join("a")
            assert a.view.dead == ("b",)
            await a.send(b"to whom it may concern")
            assert await take(a, 1) == ["a:1 to whom it may concern"]
            b = await pair.join("b")
            with pytest.raises(ordercast.OrdercastError, match="a declared b dead"):
                async for _ in b:
                    pass

    asyncio.run(run())


def test_a_suspicion_that_proves_wrong_is_withdrawn() -> None:
    async def run() -> None:
        settings = Settings(heartbeat_s=0.05)
        async with Pair(Path("/nowhere"), journal=None, settings=settings) as pair:
            a, b = await pair.both()
            b._node._stop()  # no heartbeats, as of a process that is stopped
            await until(lambda: a.view.suspected == ("b",))
            await a.send(b"does anybody hear me?")
            b._node.pulse.beat()
            await until(lambda: a.view.suspected == ())
            assert await take(b, 1) == ["a:1 does anybody hear me?"]

    asyncio.run(run())


def test_how_long_the_absent_are_waited_for() -> None:
    assert Settings().patience_s(journal=True) is None
    assert Settings(linger_s=0).patience_s(journal=False) == 30
    assert Settings(dead_after_s=None).patience_s(journal=False) is None
    assert Settings(dead_after_s=5).patience_s(journal=True) == 5


def test_stable_is_not_said_before_it_is_written(tmp_path: Path) -> None:
    def written() -> int:
        return sum(file.stat().st_size for file in tmp_path.glob("*.segment"))

    async def run() -> None:
        options: dict[str, Any] = {"me": "a", "peers": addresses("a"), "journal": tmp_path}
        async with ordercast.join("g", **options) as group:
            receipt = await group.send(b"x" * 5000)
            await receipt.stable()
            assert written() > 5000

    asyncio.run(run())


def test_whoever_delivers_and_leaves_at_once_has_told_the_others(tmp_path: Path) -> None:
    """Two members, uniform: b's own message needs a's word, which a was about to give."""

    async def run() -> None:
        async with Pair(tmp_path) as pair:
            a, b = await pair.both()
            await b.send(b"x")
            assert await take(a, 1) == ["b:1 x"]
            await pair.leave("a")
            assert await take(b, 1) == ["b:1 x"]

    asyncio.run(run())


class Fates:
    """Members in a world of virtual time, who give up whoever is away for four seconds."""

    def __init__(self, world: World, names: str) -> None:
        self.peers = {name: f"127.0.0.1:{port}" for port, name in enumerate(names, 7001)}
        self.ended: dict[str, str] = {}
        self.groups: dict[str, Group] = {}
        self.processes = {name: world.start(name, self._live, name) for name in names}

    async def _live(self, me: str) -> None:
        options: dict[str, Any] = {"order": "fifo", "reliability": "relay"}
        try:
            async with ordercast.join(
                "g", me=me, peers=self.peers, settings=Settings(dead_after_s=4), **options
            ) as group:
                self.groups[me] = group
                async for _ in group:
                    pass
        except ordercast.OrdercastError as error:
            self.ended[me] = str(error)


@pytest.mark.parametrize("victim", ["a", "b", "c"])
def test_whoever_was_given_up_while_it_stood_still_is_told(victim: str) -> None:
    async def story(world: World) -> dict[str, str]:
        fates = Fates(world, "abc")
        await asyncio.sleep(3)
        fates.processes[victim].pause()
        await asyncio.sleep(12)
        fates.processes[victim].resume()
        await asyncio.sleep(30)
        return fates.ended

    ended = run_story(story)
    assert list(ended) == [victim]
    assert f"declared {victim} dead" in ended[victim]


@pytest.mark.parametrize(
    ("sides", "told"),
    [("a bc", "a"), ("ab c", "c"), ("ab cd", "cd"), ("a b", "b"), ("bcd aef", "bcd")],
)
def test_of_two_sides_that_gave_each_other_up_one_goes_on(sides: str, told: str) -> None:
    """The greater one; of two halves that with the first member."""

    async def story(world: World) -> dict[str, str]:
        fates = Fates(world, "".join(sorted(sides.replace(" ", ""))))
        await asyncio.sleep(3)
        world.cut(*sides.split())
        await asyncio.sleep(20)
        assert all(group.view.dead for group in fates.groups.values())
        world.heal()
        await asyncio.sleep(40)
        return fates.ended

    assert sorted(run_story(story)) == list(told)


def test_whoever_comes_back_after_it_was_given_up_is_told_however_late() -> None:
    """Without what it knew, and the first of all: the others dial it, and it waits for them."""

    async def story(world: World) -> dict[str, str]:
        fates = Fates(world, "abc")
        await asyncio.sleep(3)
        fates.processes["a"].kill()
        await asyncio.sleep(1000)
        world.start("a", fates._live, "a")
        await asyncio.sleep(30)
        return fates.ended

    assert "does not let a in" in run_story(story)["a"]


@pytest.mark.parametrize("damage", ["zeros", "no head"])
def test_a_trace_that_a_power_loss_damaged_is_mended_from_the_journal(
    tmp_path: Path, damage: str
) -> None:
    trace = tmp_path / "t"

    def rows() -> list[tuple[str, int | None]]:
        found = (span for file in log_files(trace, "a") for span in read_log(file)[1])
        return [(span.kind, span.first) for span in found]

    async def run() -> None:
        async with Pair(tmp_path, sync="disk") as pair:
            a, b = await asyncio.gather(pair.join("a", trace=trace), pair.join("b"))
            for number in range(3):
                await a.send(b"%d" % number)
            await take(a, 3)
            await pair.leave("a")
            before = rows()
            (file,) = log_files(trace, "a")
            whole = file.read_bytes()
            file.write_bytes(b"" if damage == "no head" else whole[:-20] + bytes(20))
            with pytest.raises(TraceError, match=r"a-0001.spans"):
                await pair.join("a", trace=trace, journal=tmp_path / "new")
            await pair.leave("a")
            a = await pair.join("a", trace=trace)
            await a.send(b"3")
            assert await take(b, 4) == [f"a:{number + 1} {number}" for number in range(4)]
            await take(a, 1)
            assert rows()[: len(before)] == before
            assert ("send", 4) in rows()[len(before) :]

    asyncio.run(run())


def test_the_loop_turns_while_a_member_is_recalled_and_the_log_says_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Other groups of the process go on, and whoever starts a service sees that it is at work."""
    turns = 0
    seen: list[int] = []
    replay = memory.replay

    def watched(core: Core, records: list[bytes]) -> None:
        seen.append(turns)
        replay(core, records)

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def run() -> None:
        async with Pair(tmp_path) as pair:
            a, b = await pair.both()
            for number in range(300):
                await a.send(b"%d" % number)
                await take(a, 1)
            await pair.die("a", a)
            counting = asyncio.create_task(count())
            monkeypatch.setattr(memory, "replay", watched)
            monkeypatch.setattr(memory, "TELL_EVERY_S", -1.0)
            a = await pair.join("a")
            counting.cancel()
            assert (await take(b, 300))[-1] == "a:300 299"
            await a.send(b"again")
            assert await take(a, 1) == ["a:301 again"]

    with caplog.at_level(logging.INFO, "ordercast"):
        asyncio.run(run())
    assert len(seen) > 3
    assert seen == sorted(set(seen))
    assert "a: recalling what is in its journal: 0 of 0 MiB" in caplog.messages
    assert "a: recalled from its journal: it had sent 300 messages, and delivered 300" in (
        caplog.messages
    )
