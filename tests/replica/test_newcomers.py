"""Newcomers that cannot take the state, and states that cannot be given: they harm nobody."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ordercast
from ordercast.errors import PeerError
from ordercast.replica.calling import fetch
from ordercast.replica.checkpoint import Checkpoint, decode
from ordercast.replica.machine import Workshop
from ordercast.replica.pending import Pending
from ordercast.runtime.discovery import Address
from ordercast.runtime.door import Door
from ordercast.runtime.frames import PIECE_BYTES, Bye, Piece
from ordercast.runtime.keys import Credentials, make_group
from tests.runtime.test_join import addresses

from .test_hostile import ask
from .test_hostile import fetch as wish
from .test_replicate import Story, Tally, tell

pytestmark = pytest.mark.timeout(60)

CANNOT_LOAD = (
    "cannot take the state that the others are in, so it has asked for no seat among them: "
    r"load\(\) raised ValueError: another version of the program"
)


class Older(Tally):
    """It cannot load what the others have saved."""

    def load(self, state: bytes) -> None:
        self.counts = {}
        if b"x" in state:
            raise ValueError("another version of the program")
        super().load(state)


class Odd(Tally):
    """It cannot be saved any more, once it has been spoilt."""

    spoilt: object = None
    saves = 0

    def save(self) -> bytes:
        self.saves += 1
        if isinstance(self.spoilt, Exception):
            raise self.spoilt
        return super().save() if self.spoilt is None else self.spoilt  # type: ignore[return-value]


@pytest.mark.parametrize("founders", ["a", "ab", "abc"])
def test_newcomers_that_cannot_load_the_state_do_not_stop_a_group(founders: str) -> None:
    async def story(told: Story) -> None:
        told.begin(founders)
        await told.there(*founders)
        assert await told.replicas["a"].do(b"x") == 1
        for name in "def":
            with pytest.raises(ordercast.UsageError, match=f"{name} {CANNOT_LOAD}") as caught:
                await told.start(name, Older(), via=told.places["a"])
            assert isinstance(caught.value.__cause__, ValueError)
        assert told.replicas["a"].members == tuple(founders)
        assert told.replicas["a"].generation == 1
        assert await told.replicas["a"].do(b"x") == 2
        told.add("d", "a")
        await told.there("d")
        assert told.replicas["d"].members == (*founders, "d")
        assert await told.replicas["d"].do(b"x") == 3

    tell(story)


@pytest.mark.parametrize("first", [False, True])
def test_one_that_lost_its_disk_and_cannot_load_gets_no_seat(tmp_path: Path, first: bool) -> None:
    async def story(told: Story) -> None:
        processes = told.begin("abc")
        await told.there("a", "b", "c")
        assert await told.replicas["a"].do(b"x") == 1
        peers = {name: told.places[name] for name in "abc"}
        told.kill(processes["c"])
        shutil.rmtree(tmp_path / "c")
        if first:  # then it begins the first generation, and is found there
            for name in "ab":
                told.kill(processes[name])
            coming = told.start("c", Older(), peers=peers)
            await asyncio.sleep(2)
            told.begin("ab", peers)
        else:
            coming = told.start("c", Older(), peers=peers)
        with pytest.raises(ordercast.UsageError, match=f"c {CANNOT_LOAD}"):
            await coming
        await told.there("a", "b")
        assert await told.replicas["b"].do(b"x") == 2
        assert told.replicas["a"].generation == 1

    tell(story, tmp_path)


def test_a_founder_that_should_give_way_and_cannot_load_gets_no_seat() -> None:
    """It is at work, in a group of its own that has done nothing yet."""
    machine = Older()

    async def story(told: Story) -> None:
        processes = told.begin("a")
        await told.there("a")
        told.add("b", "a")
        told.add("c", "a")
        await told.there("b", "c")
        assert await told.replicas["b"].do(b"x") == 1
        generation = told.replicas["b"].generation
        told.kill(processes["a"])
        with pytest.raises(ordercast.UsageError, match=f"a {CANNOT_LOAD}"):
            await told.start("a", machine, peers={"a": told.places["a"]})
        assert told.replicas["b"].generation == generation
        assert await told.replicas["b"].do(b"x") == 2

    tell(story)


class Watched(Odd):
    """It tells what it loads."""

    def __init__(self, on_load: Callable[[], object] = lambda: None) -> None:
        super().__init__()
        self.loaded: list[dict[str, int]] = []
        self._on_load = on_load

    def load(self, state: bytes) -> None:
        super().load(state)
        self.loaded.append(dict(self.counts))
        self._on_load()


async def begins_afresh(told: Story, machine: Tally) -> None:
    """The founder a, which its group goes on without: as soon as the cut is healed, it hears so."""
    processes = told.begin("ab")
    await told.there("a", "b")
    told.add("c", "a")
    await told.there("c")
    assert await told.replicas["b"].do(b"x") == 1
    told.kill(processes["a"])
    told.world.cut("a", "bc")
    told.start("a", machine, peers={"a": told.places["a"]})
    await told.there("a")


def test_a_machine_at_work_is_in_its_own_state_after_a_trial() -> None:
    """It gives way: until it has the seat, it may yet stay."""
    machine = Watched()

    async def story(told: Story) -> None:
        await begins_afresh(told, machine)
        told.world.heal()
        await told.until(lambda: told.replicas["a"].members == ("a", "b", "c"))
        assert machine.loaded == [{"x": 1}, {}, {"x": 1}]
        assert await told.replicas["a"].do(b"x") == 2

    tell(story)


@pytest.mark.parametrize("seat", [False, True])
def test_a_machine_at_work_that_cannot_be_saved_is_not_tried_out(seat: bool) -> None:
    """It could not be had back; and without a seat it is what its own group has made of it."""
    machine = Watched()

    async def story(told: Story) -> None:
        await begins_afresh(told, machine)
        machine.spoilt, saves = KeyError("no state"), machine.saves
        told.world.heal()
        while machine.saves == saves:  # noqa: ASYNC110  # of virtual time
            await asyncio.sleep(0.0001)  # nothing gets from one to the other in that
        if seat:
            await told.until(lambda: told.replicas["a"].members == ("a", "b", "c"))
        else:
            told.world.cut("a", "bc")
        assert await told.replicas["a"].do(b"x") == (2 if seat else 1)
        assert told.replicas["a"].members == (("a", "b", "c") if seat else ("a",))
        assert machine.loaded == [{"x": 1}] * seat

    tell(story)


@pytest.mark.parametrize("journal", [False, True])
def test_a_state_that_was_tried_is_saved_and_fetched_once(tmp_path: Path, journal: bool) -> None:
    """If nothing is carried out until the newcomer has its seat."""
    founder, machine = Odd(), Watched()

    async def story(told: Story) -> None:
        told.start("a", founder, peers={"a": told.places["a"]})
        await told.there("a")
        assert await told.replicas["a"].do(b"x") == 1
        saves = founder.saves
        coming = told.start("b", machine, via=told.places["a"])
        await told.there("b")
        assert machine.loaded == [{"x": 1}]
        assert founder.saves == saves + (2 if journal else 1)  # as with any change of members
        assert await told.replicas["a"].do(b"x") == 2
        if journal:
            told.kill(coming)
            told.add("b", "a")
            await told.there("b")
        await told.replicas["b"].sync()
        assert told.counts("b") == [{"x": 2}]
        assert await told.replicas["b"].do(b"x") == 3

    tell(story, tmp_path if journal else None)


def checkpoints() -> set[int]:
    gc.collect()
    return {id(each) for each in gc.get_objects() if isinstance(each, Checkpoint)}


def test_nobody_keeps_a_state_that_it_has_begun_with(tmp_path: Path) -> None:
    """The machine is in it, and it may be large: whether it was tried, fetched or kept on disk."""
    before = checkpoints()

    async def story(told: Story) -> None:
        founder = told.begin("a")["a"]
        await told.there("a")
        assert await told.replicas["a"].do(b"x") == 1
        tried = Watched()
        told.start("b", tried, via=told.places["a"])
        await told.there("b")
        assert tried.loaded == [{"x": 1}]
        assert checkpoints() <= before
        fetched = Watched(lambda: founder.context.run(told.replicas["a"].do, b"x"))
        process = told.start("c", fetched, via=told.places["a"])
        await told.there("c")
        assert len(fetched.loaded) == 2
        assert checkpoints() <= before
        told.kill(process)
        await asyncio.sleep(30)  # until nobody is in an earlier generation, and it has to come back
        kept = Watched()
        told.start("c", kept, via=told.places["a"])
        await told.there("c")
        assert len(kept.loaded) == 1
        assert checkpoints() <= before

    tell(story, tmp_path)


def test_a_state_that_was_tried_and_is_not_the_state_any_more_is_fetched_anew() -> None:
    async def story(told: Story) -> None:
        processes = told.begin("a")
        await told.there("a")
        assert await told.replicas["a"].do(b"x") == 1
        give = [b"x", b"nobody", b""]  # each is a step
        machine = Watched(
            lambda: give and processes["a"].context.run(told.replicas["a"].do, give.pop())
        )
        told.start("b", machine, via=told.places["a"])
        await told.there("b")
        assert machine.loaded[:2] == [{"x": 1}, {"x": 1, "": 1}]
        await told.until(lambda: told.counts("a") == told.counts("b"))
        assert await told.replicas["b"].do(b"x") == told.machines["a"].counts["x"] + 1

    for seed in range(5):
        tell(story, seed=seed)


def test_a_state_that_was_tried_is_not_the_state_where_the_others_are_further() -> None:
    """Whoever gave it has yet to hear what came before the newcomer, and that there is one."""

    async def story(told: Story) -> None:
        processes = told.begin("abc")
        await told.there("a", "b", "c")
        assert await told.replicas["a"].do(b"x") == 1
        await told.replicas["c"].sync()

        def on_load() -> None:
            if len(machine.loaded) == 1:
                told.world.cut("ab", "c")  # and the newcomer sees all of them
                processes["a"].context.run(told.replicas["a"].do, b"x")

        machine = Watched(on_load)
        told.start("d", machine, via=told.places["c"])
        await told.there("d")
        assert told.replicas["c"].generation == 1
        assert await told.replicas["d"].do(b"x") == 3
        assert machine.loaded == [{"x": 1}, {"x": 2}]
        told.world.heal()
        await told.until(lambda: told.replicas["c"].generation == 2)
        await told.replicas["c"].sync()
        assert told.counts(*"abcd") == [{"x": 3}] * 4

    for seed in range(3):
        tell(story, seed=seed)


@pytest.mark.parametrize("spoilt", ["a str", KeyError("no state")])
def test_a_state_that_cannot_be_saved_is_told_to_newcomers_and_logged_once(
    spoilt: object, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(told: Story) -> None:
        machines = {name: Odd() for name in "ab"}
        peers = {name: told.places[name] for name in "ab"}
        for name, machine in machines.items():
            told.start(name, machine, peers=peers)
        await told.there("a", "b")
        for machine in machines.values():
            machine.spoilt = spoilt
        with pytest.raises(ordercast.DiscoveryError, match="cannot save its state: its log says"):
            await told.start("c", via=told.places["a"], timeout_s=5)
        assert told.replicas["a"].members == ("a", "b")
        assert await told.replicas["a"].do(b"x") == 1
        assert machines["a"].saves > 2
        machines["b"].spoilt = None  # one is enough
        told.add("c", "a")
        await told.there("c")
        assert await told.replicas["c"].do(b"x") == 2

    tell(story, tmp_path)
    for name in "ab":
        assert caplog.text.count(f"{name}: the state cannot be saved") == 1
    words = "save() gave str, and not bytes" if spoilt == "a str" else "KeyError: 'no state'"
    assert words in caplog.text


@pytest.mark.parametrize(
    ("spoilt", "why"),
    [
        ("a str", r"TypeError: save\(\) gave str, and not bytes"),
        (KeyError("no state"), "KeyError: 'no state'"),
    ],
)
def test_a_founder_whose_state_cannot_be_saved_does_not_begin(spoilt: object, why: str) -> None:
    machine = Odd()
    machine.spoilt = spoilt

    async def program() -> None:
        async with ordercast.replicate("g", machine, me="a", peers={"a": "127.0.0.1:1"}):
            raise AssertionError("nobody comes here")

    with pytest.raises(ordercast.UsageError, match=rf"cannot be saved \({why}\): save\(\) has to"):
        asyncio.run(program())


def test_over_tls_only_those_who_could_knock_see_the_state(tmp_path: Path) -> None:
    make_group(tmp_path / "keys", "tally", ("a", "b"))
    make_group(tmp_path / "others", "tally", ("d",))

    async def program() -> None:
        [place] = addresses("a").values()
        at = Address.parse(place)

        def calling(name: str, keys: str = "keys", proven: str = "b") -> Any:
            shown = Credentials.load(tmp_path / keys, group="tally", me=proven)
            return fetch(Door("tally", name, credentials=shown), at, 1)

        async with ordercast.replicate(
            "tally", Tally(), me="a", peers={"a": place}, keys=tmp_path / "keys"
        ) as a:
            await a.do(b"x")
            assert (await calling("b")).checkpoint.state == b'[{"x": 1}, ""]'
            for name, keys, proven in (
                ("c", "keys", "b"),
                ("a", "keys", "b"),
                ("d", "others", "d"),
            ):
                with pytest.raises((PeerError, OSError)):
                    await calling(name, keys, proven)

    asyncio.run(program())


def test_nobody_fetches_a_state_in_the_clear_from_another_host() -> None:
    """Whoever is asked first is on this machine, and the others are not."""
    machines, newcomer = {name: Odd() for name in "ab"}, Watched()

    async def story(told: Story) -> None:
        told.places["b"] = "10.0.0.2:7001"
        peers = {name: told.places[name] for name in "ab"}
        for name, machine in machines.items():
            told.start(name, machine, peers=peers, insecure=True)
        await told.there("a", "b")
        machines["a"].spoilt = KeyError("no state")
        saves = machines["b"].saves
        coming = told.start("c", newcomer, via=told.places["a"])
        with pytest.raises(ordercast.UsageError, match=r"10\.0\.0\.2:7001 is not on this machine"):
            await coming
        assert machines["b"].saves == saves
        assert newcomer.loaded == []
        assert told.replicas["a"].members == ("a", "b")

    tell(story)


def test_a_state_to_try_is_given_to_the_end_though_the_members_change() -> None:
    """Else those who come at the same time would have to begin anew, each for all others."""

    async def program() -> None:
        places = addresses("a", "b")
        async with contextlib.AsyncExitStack() as stack:
            filled = Tally(filling=3 * 2**20)
            a = await stack.enter_async_context(
                ordercast.replicate("tally", filled, me="a", peers={"a": places["a"]})
            )
            [first] = await ask(places["a"], wish("x"))
            await stack.enter_async_context(
                ordercast.replicate("tally", Tally(), me="b", via=places["a"], listen=places["b"])
            )
            assert a.generation == 2
            pieces = [first]
            for _ in range(3):
                assert isinstance(first, Piece)
                offset = len(pieces) * PIECE_BYTES
                pieces += await ask(places["a"], wish("x", token=first.token, offset=offset))
            data = b"".join(piece.data for piece in pieces if isinstance(piece, Piece))
            assert decode(data).state == filled.save()

    asyncio.run(program())


def test_whoever_has_tried_a_large_state_has_as_much_time_to_fetch_what_has_changed() -> None:
    """It has a seat by then: to give up would harm the others."""

    async def story(told: Story) -> None:
        filled = Tally(filling=10 * 2**20)
        process = told.start("a", filled, peers={"a": told.places["a"]})
        await told.there("a")
        assert await told.replicas["a"].do(b"x") == 1
        told.world.slow_down((0.2, 0.2))
        began, loads = told.world.now, []

        def on_load() -> None:
            loads.append(told.world.now - began)
            process.context.run(told.replicas["a"].do, b"x")

        told.start("b", Watched(on_load), via=told.places["a"], timeout_s=7)
        await told.there("b")
        assert len(loads) == 2
        assert loads[0] < 7 < loads[1]

    tell(story)


def test_a_state_that_nobody_fetches_to_its_end_is_not_kept() -> None:
    async def story(told: Story) -> None:
        told.start("a", Tally(filling=2 * PIECE_BYTES), peers={"a": told.places["a"]})
        await told.there("a")
        for answer in [Piece] * 4 + [Bye]:
            [got] = await told.world.start("x", ask, told.places["a"], wish("x"))
            assert isinstance(got, answer)
        await asyncio.sleep(31)
        [got] = await told.world.start("x", ask, told.places["a"], wish("x"))
        assert isinstance(got, Piece)

    tell(story)


def test_nobody_sees_a_state_before_the_group_has_begun() -> None:
    """Somebody may have been a member before, and have forgotten it: there may be another one."""

    async def story(told: Story) -> None:
        told.start("a", peers={name: told.places[name] for name in "ab"})
        await told.world.start("b", asyncio.sleep, 1)
        [got] = await told.world.start("x", ask, told.places["a"], wish("x"))
        assert isinstance(got, Bye)
        assert "a has no state of generation 1" in got.reason

    tell(story)


def test_a_machine_that_has_loaded_a_state_is_not_in_the_one_that_it_gave() -> None:
    async def story(told: Story) -> None:
        workshop = Workshop(Tally(), Pending("session"), "a")
        before = workshop.steps
        workshop.load(Checkpoint(2, 1, {}, Tally().save()))
        assert workshop.steps != before

    tell(story)
