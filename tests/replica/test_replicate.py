"""`ordercast.replicate` as a program uses it: on real sockets, and in stories."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import re
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

import ordercast
from ordercast import Replica
from ordercast.runtime.keys import make_group
from ordercast.testing import Process, World, check, run
from tests.runtime.test_join import addresses

pytestmark = pytest.mark.timeout(60)


class Tally:
    """A machine: names and how often each was called out."""

    def __init__(self, filling: int = 0) -> None:
        self.counts: dict[str, int] = {}
        self.filling = "." * filling

    def apply(self, command: bytes, sender: str) -> int:
        name = command.decode()
        if name == "nobody":
            raise LookupError(f"{sender} called nobody")
        self.counts[name] = self.counts.get(name, 0) + 1
        return self.counts[name]

    def save(self) -> bytes:
        return json.dumps([self.counts, self.filling]).encode()

    def load(self, state: bytes) -> None:
        self.counts, self.filling = json.loads(state)


class Story:
    """Replicas as processes of a story."""

    def __init__(self, world: World, home: Path | None = None, **options: Any) -> None:
        self.world = world
        self.places = {name: f"127.0.0.1:{7000 + at}" for at, name in enumerate("abcdef")}
        self.replicas: dict[str, Replica] = {}
        self.machines: dict[str, Tally] = {}
        self.changes: dict[str, list[tuple[str, ...]]] = {}
        self.removed: dict[str, str] = {}
        self._home = home
        self._options = options

    def begin(self, names: str, peers: dict[str, str] | None = None) -> dict[str, Process]:
        peers = peers or {name: self.places[name] for name in names}
        return {name: self.start(name, peers=peers) for name in names}

    def add(self, name: str, *via: str) -> Process:
        return self.start(name, via=[self.places[each] for each in via])

    def start(self, name: str, machine: Tally | None = None, **options: Any) -> Process:
        return self.world.start(name, self._replica, name, machine or Tally(), options)

    async def _replica(self, me: str, machine: Tally, options: dict[str, Any]) -> None:
        changes = self.changes[me] = []
        home = self._home
        async with ordercast.replicate(
            "tally",
            machine,
            me=me,
            listen=self.places[me],
            journal=home / me if home is not None else None,
            on_change=changes.append,
            **{**self._options, **options},
        ) as replica:
            self.replicas[me], self.machines[me] = replica, machine
            try:
                await replica.ended()
            except ordercast.RemovedError as error:
                self.removed[me] = str(error)

    def kill(self, process: Process) -> None:
        process.kill()
        self.replicas.pop(process.name, None)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not condition():  # noqa: ASYNC110  # of virtual time
                await asyncio.sleep(0.05)

    async def there(self, *names: str) -> None:
        await self.until(lambda: all(name in self.replicas for name in names))

    async def many(self, name: str, count: int) -> None:
        """More than may be under way."""
        for _ in range(count):
            await self.replicas[name].do(b"x" * 100)

    def counts(self, *names: str) -> list[dict[str, int]]:
        return [self.machines[name].counts for name in names]


def tell(story: Callable[..., Any], *args: Any, seed: int = 1, **options: Any) -> None:
    run(lambda world: story(Story(world, *args, **options)), seed=seed)


@contextlib.asynccontextmanager
async def replicas(*names: str, **options: Any) -> AsyncIterator[dict[str, Replica]]:
    """On real sockets."""
    peers = addresses(*names)
    async with contextlib.AsyncExitStack() as stack:
        made = [
            ordercast.replicate("tally", Tally(), me=name, peers=peers, **options) for name in names
        ]
        found = await asyncio.gather(*map(stack.enter_async_context, made))
        yield dict(zip(names, found, strict=True))


# What it is for.


def test_commands_are_carried_out_everywhere_in_one_order_and_answered() -> None:
    async def program() -> None:
        async with replicas("a", "b", "c") as made:
            results = await asyncio.gather(
                *(replica.do(b"x") for replica in made.values() for _ in range(20))
            )
            assert sorted(results) == list(range(1, 61))
            with pytest.raises(LookupError, match="b called nobody"):
                await made["b"].do(b"nobody")
            assert await made["a"].do(b"x") == 61
            assert made["c"].members == ("a", "b", "c")
            assert made["c"].generation == 1

    asyncio.run(program())


def test_over_tls_a_newcomer_gets_the_state_and_a_stranger_does_not(tmp_path: Path) -> None:
    make_group(tmp_path / "keys", "tally", ("a", "b", "c"))
    make_group(tmp_path / "others", "tally", ("d",))

    async def program() -> None:
        [place] = addresses("a").values()
        keys = tmp_path / "keys"
        machine = Tally()
        async with (
            ordercast.replicate("tally", Tally(), me="a", peers={"a": place}, keys=keys) as a,
            contextlib.AsyncExitStack() as stack,
        ):
            await a.do(b"x")
            b = await stack.enter_async_context(
                ordercast.replicate("tally", machine, me="b", via=place, keys=keys)
            )
            assert machine.counts == {"x": 1}
            assert await b.do(b"x") == 2
            with pytest.raises(ordercast.DiscoveryError, match="d has not been let in at"):
                await stack.enter_async_context(
                    ordercast.replicate(
                        *("tally", Tally()),
                        me="d",
                        via=place,
                        keys=tmp_path / "others",
                        timeout_s=1,
                    )
                )
            assert a.members == ("a", "b")
            assert a.view.present == ("a", "b")

    asyncio.run(program())


def test_a_large_state_comes_in_pieces() -> None:
    async def story(told: Story) -> None:
        filled = Tally(filling=3_500_000)
        told.start("a", filled, peers={"a": told.places["a"]})
        await told.there("a")
        await told.replicas["a"].do(b"x")
        told.add("b", "a")
        await told.there("b")
        assert told.machines["b"].filling == filled.filling
        assert told.counts("b") == [{"x": 1}]

    tell(story)


def test_members_come_and_go_and_everyone_hears_of_it_at_the_same_place() -> None:
    async def story(told: Story) -> None:
        told.begin("ab")
        await told.there("a", "b")
        told.add("c", "a")
        await told.there("c")
        told.add("d", "c")  # any member will do
        await told.there("d")
        assert told.replicas["d"].members == ("a", "b", "c", "d")
        await told.replicas["b"].remove("a")
        assert told.replicas["b"].members == ("b", "c", "d")
        with pytest.raises(ordercast.RemovedError, match="a was removed from 'tally': to be"):
            await told.replicas["a"].do(b"x")
        await told.replicas["c"].leave()
        await told.until(lambda: told.replicas["d"].members == ("b", "d"))
        assert await told.replicas["d"].do(b"x") == 1
        row = told.changes["b"]
        for changes in told.changes.values():  # each has seen a part of the same row
            assert changes == row[row.index(changes[0]) :][: len(changes)]

    tell(story)


def test_it_goes_on_whoever_is_killed_and_whoever_comes_back_gets_what_it_missed() -> None:
    async def story(told: Story) -> None:
        processes = told.begin("abc")
        await told.there("a", "b", "c")
        told.kill(processes["a"])  # which leads
        assert await told.replicas["b"].do(b"x") == 1
        told.start("a", peers={name: told.places[name] for name in "abc"})
        await told.there("a")
        assert told.counts("a") == [{"x": 1}]
        assert told.replicas["a"].members == ("a", "b", "c")
        told.kill(processes["b"])
        assert await told.replicas["a"].do(b"x") == 2

    tell(story)


def test_a_journal_brings_all_of_them_back(tmp_path: Path) -> None:
    async def story(told: Story) -> None:
        for life in range(1, 4):
            processes = told.begin("abc")
            await told.there("a", "b", "c")
            for name in "abc":
                for _ in range(100):
                    await told.replicas[name].do(b"x")
            for process in processes.values():
                told.kill(process)
            assert told.counts("c") == [{"x": 300 * life}]

    settings = ordercast.Settings(segment_bytes=3000, keep_bytes=0)
    tell(story, tmp_path, settings=settings)
    [kept] = (tmp_path / "a").glob("generation-*")
    assert sum(path.stat().st_size for path in kept.rglob("*.segment")) < 100_000, "it is compacted"


def test_a_newcomer_keeps_what_it_was_given(tmp_path: Path) -> None:
    """It comes back with it, though nobody is there."""

    async def story(told: Story) -> None:
        founder = told.begin("a")["a"]
        await told.there("a")
        await told.replicas["a"].do(b"x")
        newcomer = told.add("b", "a")
        await told.there("b")
        told.kill(newcomer)
        told.kill(founder)
        told.add("b", "a")
        await told.there("b")
        assert told.counts("b") == [{"x": 1}]

    tell(story, tmp_path)


def test_a_replica_that_is_away_for_long_does_not_stop_the_others(tmp_path: Path) -> None:
    """They go on without it when they would have to wait, and take it back when it comes."""

    async def story(told: Story) -> None:
        processes = told.begin("abc")
        await told.there("a", "b", "c")
        told.kill(processes["c"])
        await told.many("a", 200)
        assert told.replicas["a"].members == ("a", "b")
        told.begin("c")
        await told.there("c")
        await told.until(lambda: told.replicas["c"].generation == told.replicas["a"].generation)
        assert told.replicas["a"].members == ("a", "b", "c")
        assert await told.replicas["c"].do(b"x" * 100) == 201
        await told.replicas["a"].sync()
        assert told.counts("a") == told.counts("c")

    tell(story, tmp_path, settings=ordercast.Settings(window_bytes=2000))


def test_a_replica_that_is_started_again_at_once_keeps_its_place(tmp_path: Path) -> None:
    """However much the others have to say meanwhile, they wait for it and not for its copy."""

    async def story(told: Story) -> None:
        processes = told.begin("abc")
        await told.there("a", "b", "c")
        generation = told.replicas["a"].generation
        told.kill(processes["c"])
        commands = asyncio.create_task(told.many("a", 200))
        await asyncio.sleep(1)
        assert not commands.done()
        told.begin("c")
        await told.there("c")
        await commands
        assert told.replicas["a"].generation == generation
        assert await told.replicas["c"].do(b"x" * 100) == 201

    tell(story, tmp_path, settings=ordercast.Settings(window_bytes=2000))


def test_one_that_nobody_here_has_met_does_not_stop_the_others(tmp_path: Path) -> None:
    """It was away already when they were started again."""

    async def story(told: Story) -> None:
        processes = told.begin("abc")
        await told.there("a", "b", "c")
        for process in processes.values():
            told.kill(process)
        told.begin("a", peers=(peers := {name: told.places[name] for name in "abc"}))
        told.begin("b", peers=peers)
        await told.there("a", "b")
        await told.many("a", 200)
        assert told.replicas["a"].members == ("a", "b")

    tell(story, tmp_path, settings=ordercast.Settings(window_bytes=2000))


def test_one_that_was_removed_while_it_was_away_is_told(tmp_path: Path) -> None:
    async def story(told: Story) -> None:
        processes = told.begin("abc")
        await told.there("a", "b", "c")
        told.kill(processes["c"])
        await told.replicas["a"].remove("c")
        await told.start("c", via=[told.places["a"]])
        assert told.removed["c"] == (
            "c was removed from 'tally': to be a member again it has to start without the "
            f"directory {tmp_path / 'c'}"
        )

    tell(story, tmp_path)


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_a_member_may_come_back_elsewhere(tmp_path: Path, name: str) -> None:
    """The others dial it, or it dials them: both find out where it is now."""

    async def story(told: Story) -> None:
        processes = told.begin("abc")
        await told.there("a", "b", "c")
        await told.replicas["b"].do(b"x")
        told.kill(processes[name])
        told.places[name] = "127.0.0.1:7999"
        told.start(name, peers=told.places)
        await told.there(name)
        assert await told.replicas[name].do(b"x") == 2
        await told.until(lambda: set(told.replicas["b"].view.present) == {"a", "b", "c"})
        assert told.replicas[name].members == ("a", "b", "c")

    tell(story, tmp_path)


def test_a_removal_that_is_under_way_when_the_members_change_harms_nobody() -> None:
    """It is proposed again then, and must not bring back who was a member before."""

    async def story(told: Story) -> None:
        processes = told.begin("abcde")
        await told.there(*"abcde")
        told.kill(processes["c"])
        told.kill(processes["d"])
        context = processes["a"].context
        removing = context.run(asyncio.ensure_future, told.replicas["a"].remove("d"))
        told.start("c", peers={name: told.places[name] for name in "abcde"})
        await removing
        await told.there("c")
        assert await told.replicas["c"].do(b"x") == 1
        await told.until(lambda: told.replicas["a"].members == ("a", "b", "c", "e"))
        assert await told.replicas["a"].do(b"x") == 2

    for seed in range(10):
        tell(story, seed=seed)


def test_a_founder_that_begins_afresh_gives_way_to_the_group_it_has_founded() -> None:
    """It has kept nothing, and asks nobody whether there is one; but the others ask after it."""

    async def story(told: Story) -> None:
        processes = told.begin("a")
        await told.there("a")
        for name in "bc":
            told.add(name, "a")
            await told.there(name)
        assert await told.replicas["b"].do(b"x") == 1
        told.kill(processes["a"])
        told.begin("a")
        await told.there("a")
        await told.until(lambda: told.replicas["a"].members == ("a", "b", "c"))
        assert await told.replicas["a"].do(b"x") == 2

    tell(story)


def test_a_founder_that_is_told_where_to_ask_does_not_begin_afresh() -> None:
    async def story(told: Story) -> None:
        processes = told.begin("a")
        await told.there("a")
        for name in "bc":
            told.add(name, "a")
            await told.there(name)
        assert await told.replicas["b"].do(b"x") == 1
        told.kill(processes["a"])
        via = [told.places["b"], told.places["c"]]
        told.start("a", peers={"a": told.places["a"]}, via=via)
        await told.there("a")
        assert told.changes["a"] == [("a", "b", "c")]
        assert told.counts("a") == [{"x": 1}]

    tell(story)


def test_two_groups_of_one_name_do_not_become_one(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever the numbers of their generations: what was answered in one would be lost."""

    async def story(told: Story) -> None:
        processes = told.begin("a")
        await told.there("a")
        told.add("b", "a")
        told.add("c", "a")
        await told.there("b", "c")
        assert await told.replicas["b"].do(b"old") == 1
        told.kill(processes["a"])
        told.begin("a")  # it is at work before anybody has asked after it
        told.world.cut("a", "bc")
        await told.there("a")
        assert await told.replicas["a"].do(b"new") == 1
        told.world.heal()
        for name in "def":
            told.add(name, "a")
            await told.there(name)
        await asyncio.sleep(30)
        assert sorted(told.replicas["b"].members) == ["a", "b", "c"]
        assert told.counts(*"bc") == [{"old": 1}] * 2
        assert told.counts(*"adef") == [{"new": 1}] * 4

    tell(story)
    assert "there are two groups called 'tally'" in caplog.text


def test_one_that_lost_its_disk_and_starts_first_is_taken_back(tmp_path: Path) -> None:
    async def story(told: Story) -> None:
        processes = told.begin("abc")
        await told.there("a", "b", "c")
        assert await told.replicas["a"].do(b"x") == 1
        for process in processes.values():
            told.kill(process)
        shutil.rmtree(tmp_path / "a")
        peers = {name: told.places[name] for name in "abc"}
        told.start("a", peers=peers)
        await asyncio.sleep(2)
        told.begin("bc", peers)
        await told.there("a", "b", "c")
        assert told.counts("a") == [{"x": 1}]
        assert await told.replicas["a"].do(b"x") == 2

    tell(story, tmp_path)


def test_a_group_that_never_met_has_not_begun(tmp_path: Path) -> None:
    """However often its founders are started: somebody who is not there may know better."""

    async def story(told: Story) -> None:
        peers = {name: told.places[name] for name in "abc"}
        for _ in range(2):
            waiting = [told.start(name, peers=peers, timeout_s=3) for name in "ab"]
            for error in await asyncio.gather(*waiting, return_exceptions=True):
                assert isinstance(error, ordercast.DiscoveryError)
                assert "no connection with c" in str(error)
        told.begin("abc")
        await told.there("a", "b", "c")
        assert await told.replicas["c"].do(b"x") == 1

    tell(story, tmp_path)


def test_one_of_two_may_leave_whatever_is_lost_on_the_way() -> None:
    async def story(told: Story, cut_after_s: float) -> None:
        processes = told.begin("ab")
        await told.there("a", "b")
        leaving = processes["b"].context.run(asyncio.ensure_future, told.replicas["b"].leave())
        await asyncio.sleep(cut_after_s)
        told.world.cut("a", "b")
        await asyncio.sleep(1)
        told.world.heal()
        await leaving
        await told.until(lambda: told.replicas["a"].members == ("a",))
        assert await told.replicas["a"].do(b"x") == 1

    for half_ms in range(1, 16):
        tell(lambda told, at=half_ms / 2000: story(told, at))


def test_nobody_takes_the_place_of_one_who_is_there() -> None:
    async def story(told: Story) -> None:
        told.begin("ab")
        await told.there("a", "b")
        told.places["b"] = "127.0.0.1:7099"
        second = told.world.start(
            "impostor", told._replica, "b", Tally(), {"via": told.places["a"]}
        )
        with pytest.raises(ordercast.DiscoveryError, match="b is a member already, and seems"):
            await second
        assert await told.replicas["b"].do(b"x") == 1

    tell(story, timeout_s=3)


def test_what_was_given_while_cut_off_is_done_once(tmp_path: Path) -> None:
    """The others have gone on to another generation meanwhile."""

    async def story(told: Story) -> None:
        processes = told.begin("abc")
        await told.there("a", "b", "c")
        giving = processes["c"].context.run(
            asyncio.gather,
            *(told.replicas["c"].do(b"c") for _ in range(50)),
            return_exceptions=True,
        )
        await asyncio.sleep(0.0007)  # some are on their way
        told.world.cut("ab", "c")
        await told.replicas["a"].do(b"a")
        told.add("d", "a")
        await told.there("d")
        told.world.heal()
        waiting = processes["c"].context.run(asyncio.ensure_future, told.replicas["c"].sync())
        results = await giving
        await waiting  # it has no outcome that could be unknown
        unknown = [each for each in results if isinstance(each, ordercast.OutcomeUnknownError)]
        known = [each for each in results if isinstance(each, int)]
        assert len(unknown) + len(known) == 50
        await told.replicas["d"].sync()
        assert told.counts("d") == told.counts("c") == [{"a": 1, "c": 50}]

    tell(story, tmp_path)


def test_each_generation_has_a_trace_that_can_be_judged(tmp_path: Path) -> None:
    async def story(told: Story) -> None:
        told.begin("ab")
        await told.there("a", "b")
        await told.replicas["a"].do(b"x")
        told.add("c", "b")
        await told.there("c")
        await told.replicas["c"].do(b"y")
        await asyncio.sleep(3)

    tell(story, trace=tmp_path)
    for generation in ("1", "2"):
        check(tmp_path / generation)


# What goes wrong.


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "say who begins, with peers=, or where a group runs, with via="),
        ({"via": 7001}, "via=7001: give 'host:port', or several of them"),
        ({"via": "127.0.0.1:2", "on_change": 1}, "on_change=1: give a function"),
        ({"via": "nowhere"}, "'nowhere' is no address"),
        ({"peers": {"a": "127.0.0.1:1"}, "sync": "disk"}, "without a journal nothing is kept"),
        ({"peers": {"b": "127.0.0.1:1"}}, "'a' is not in the list of members"),
        ({"peers": {"a": "10.0.0.1:1"}}, "10.0.0.1:1 is not on this machine, and without keys"),
    ],
)
def test_wishes_that_make_no_sense(options: dict[str, Any], sentence: str) -> None:
    async def program() -> None:
        async with ordercast.replicate("g", Tally(), me="a", **options):
            raise AssertionError("nobody comes here")

    with pytest.raises(ordercast.UsageError, match=re.escape(sentence)):
        asyncio.run(program())


def test_a_machine_can_be_saved() -> None:
    class Half:
        def apply(self, command: bytes, sender: str) -> None: ...

    async def program() -> None:
        async with ordercast.replicate("g", Half(), me="a", peers={"a": "127.0.0.1:1"}):  # type: ignore[arg-type]
            raise AssertionError("nobody comes here")

    with pytest.raises(ordercast.UsageError, match=r"has no save\(\): a machine has apply, save"):
        asyncio.run(program())


def test_what_cannot_be_asked_of_a_replica() -> None:
    async def program() -> None:
        async with replicas("a", "b") as made:
            replica = made["a"]
            with pytest.raises(ordercast.UsageError, match="a command of type str: give bytes"):
                await replica.do("x")  # type: ignore[arg-type]
            with pytest.raises(ordercast.UsageError, match=r"\d+ bytes: \d+ is the limit"):
                await replica.do(bytes(16 * 2**20))
            with pytest.raises(ordercast.UsageError, match="'z' is no member: there are a, b"):
                await replica.remove("z")
            with pytest.raises(ordercast.UsageError, match="somebody has to stay"):
                await replica.remove("a", "b")
            await made["b"].leave()
            with pytest.raises(ordercast.UsageError, match="the last one just closes"):
                await replica.leave()
            assert not replica._life.leaving
        with pytest.raises(ordercast.UsageError, match="this replica is closed"):
            await replica.do(b"x")

    asyncio.run(program())


def test_another_thread_is_told_how_to_ask() -> None:
    async def program() -> None:
        async with replicas("a") as made:
            replica = made["a"]

            async def ask() -> int:
                answer: int = await replica.do(b"x")
                await replica.sync()
                return answer

            for use in (ask, replica.sync, replica.leave, functools.partial(replica.remove, "a")):
                with pytest.raises(ordercast.UsageError, match="belongs to another event loop: f"):
                    await asyncio.to_thread(asyncio.run, use())  # type: ignore[operator]
            with pytest.raises(ordercast.UsageError, match="belongs to another event loop: from"):
                await asyncio.to_thread(replica.do, b"x")  # no loop runs there
            proper = asyncio.run_coroutine_threadsafe(ask(), replica.loop)
            assert await asyncio.wrap_future(proper) == 1  # nothing was carried out before

    asyncio.run(program())


def test_nobody_there() -> None:
    async def program() -> None:
        [place] = addresses("a").values()
        async with ordercast.replicate("g", Tally(), me="b", via=place, timeout_s=0.3):
            raise AssertionError("nobody comes here")

    with pytest.raises(ordercast.DiscoveryError, match=r"b has not been let in at .*: .*refused"):
        asyncio.run(program())


def test_a_group_that_does_not_change_says_so() -> None:
    async def program() -> None:
        peers = addresses("a")
        async with (
            ordercast.join("g", me="a", peers=peers),
            ordercast.replicate("g", Tally(), me="b", via=peers["a"], timeout_s=0.3),
        ):
            raise AssertionError("nobody comes here")

    with pytest.raises(ordercast.DiscoveryError, match="the members of 'g' do not change"):
        asyncio.run(program())


def test_apply_may_raise_whatever_it_likes() -> None:
    class Odd(Tally):
        def apply(self, command: bytes, sender: str) -> int:
            return next(iter(()))

    async def story(told: Story) -> None:
        told.start("a", Odd(), peers={"a": told.places["a"]})
        await told.there("a")
        with pytest.raises(RuntimeError, match=r"apply\(\) raised StopIteration"):
            await told.replicas["a"].do(b"x")
        with pytest.raises(RuntimeError, match="StopIteration"):
            await told.replicas["a"].do(b"")  # a command like any other

    tell(story)


@pytest.mark.parametrize(
    ("machine", "sentence"),
    [
        (Tally, "Tally is a class: give an object of it"),
        (type("Waits", (Tally,), {"apply": asyncio.sleep})(), r"apply\(\) of .* is a coroutine"),
    ],
)
def test_machines_that_cannot_be(machine: Any, sentence: str) -> None:
    async def program() -> None:
        async with ordercast.replicate("g", machine, me="a", peers={"a": "127.0.0.1:1"}):
            raise AssertionError("nobody comes here")

    with pytest.raises(ordercast.UsageError, match=sentence):
        asyncio.run(program())
