"""Those who go: who leaves, who is left behind, whose place was taken.

In stories, so that a cut can come in the very moment that matters.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from pathlib import Path

import pytest

import ordercast

from .test_replicate import Story, Tally, tell

pytestmark = pytest.mark.timeout(60)

LITTLE = ordercast.Settings(window_bytes=2000)
"""So that whoever is away is soon waited for, and left behind."""


def test_whoever_leaves_stays_until_the_others_know() -> None:
    """It may be the first to know, and then nobody gets any further without its word."""

    async def story(told: Story) -> None:
        processes = told.begin("ab")
        await told.there("a", "b")
        leaving = processes["b"].context.run(asyncio.ensure_future, told.replicas["b"].leave())
        while told.replicas["b"].members != ("a",):  # noqa: ASYNC110  # of virtual time
            await asyncio.sleep(0.0001)  # nothing gets from one to the other in that
        assert told.replicas["a"].members == ("a", "b")
        told.world.cut("a", "b")
        await asyncio.sleep(5)  # for longer than one stays who has just gone on
        told.world.heal()
        await leaving
        await told.until(lambda: told.replicas["a"].members == ("a",))
        assert await told.replicas["a"].do(b"x") == 1

    for seed in range(3):
        tell(story, seed=seed)


def test_one_left_behind_that_hears_of_it_is_not_taken_for_removed() -> None:
    """It was there for one of the others all the time, so it delivers what sends it out."""

    async def story(told: Story) -> None:
        told.begin("abc")
        await told.there("a", "b", "c")
        told.world.cut("a", "c")
        while told.replicas["a"].generation == 1:
            await told.replicas["a"].do(b"x" * 100)
        assert told.replicas["a"].members == ("a", "b")
        told.world.heal()  # soon enough: the others stay for a moment
        await told.until(lambda: bool(told.removed) or told.replicas["a"].generation == 3)
        assert told.removed == {}
        await told.replicas["c"].sync()
        assert told.replicas["c"].members == ("a", "b", "c")
        assert told.counts("c") == told.counts("a")

    for seed in range(3):
        tell(story, seed=seed, settings=LITTLE)


def test_what_one_left_behind_had_given_is_done_once() -> None:
    """The others remember what they did for it, for when it comes back and would give it again."""
    outcomes: list[object] = []

    async def story(told: Story) -> None:
        processes = told.begin("abc")
        await told.there("a", "b", "c")
        giving = processes["c"].context.run(asyncio.ensure_future, told.replicas["c"].do(b"c"))
        while not any(told.counts("a", "b")):  # noqa: ASYNC110  # of virtual time
            await asyncio.sleep(0.0001)
        told.world.cut("ab", "c")
        for transport in list(processes["c"].transports):
            transport.abort()  # what they have just told it is lost
        while told.replicas["a"].generation == 1:
            await told.replicas["a"].do(b"x" * 100)
        assert told.replicas["a"].members == ("a", "b")
        await asyncio.sleep(5)  # by then nobody is in the first generation any more
        told.world.heal()
        outcomes.extend(await asyncio.gather(giving, return_exceptions=True))
        await told.replicas["c"].sync()
        assert told.counts("c") == told.counts("a")
        assert told.machines["c"].counts["c"] == 1

    for seed in range(4):
        tell(story, seed=seed, settings=LITTLE)
    assert any(isinstance(each, ordercast.OutcomeUnknownError) for each in outcomes)


@pytest.mark.parametrize("how", ["stop", "remove"])
def test_what_may_have_been_carried_out_is_not_said_to_be_impossible(how: str) -> None:
    """Whoever is told that it is not carried out gives it again, elsewhere."""
    told_so = {"sure": 0, "done all the same": 0}

    async def story(told: Story, pause_s: float) -> None:
        processes = told.begin("abc")
        await told.there("a", "b", "c")
        giving = processes["c"].context.run(
            asyncio.gather,
            *(told.replicas["c"].do(b"c") for _ in range(20)),
            return_exceptions=True,
        )
        await asyncio.sleep(pause_s)
        more = processes["c"].context.run(
            asyncio.gather,
            *(told.replicas["c"].do(b"c") for _ in range(20)),
            return_exceptions=True,
        )
        if how == "stop":
            with contextlib.suppress(asyncio.CancelledError):
                await processes["c"].stop()
        else:
            await told.replicas["a"].remove("c")
        outcomes = [*await giving, *await more]
        await told.replicas["a"].sync()
        known = sum(isinstance(each, int) for each in outcomes)
        unknown = sum(isinstance(each, ordercast.OutcomeUnknownError) for each in outcomes)
        done = told.machines["a"].counts.get("c", 0)
        assert known <= done <= known + unknown
        told_so["sure"] += len(outcomes) - known - unknown
        told_so["done all the same"] += done - known

    for seed in range(8):
        tell(functools.partial(story, pause_s=0.0003 * seed), seed=seed)
    assert told_so["done all the same" if how == "stop" else "sure"]


def test_without_a_majority_proposals_do_not_pile_up() -> None:
    """Nothing comes of them for as long as it lasts, and all are kept until it ends."""

    async def knock(told: Story) -> None:
        while True:  # each time it is another one, which remembers nothing
            with contextlib.suppress(ordercast.DiscoveryError):
                await told._replica("d", Tally(), {"via": told.places["a"], "timeout_s": 3})

    async def story(told: Story) -> None:
        processes = told.begin("abc")
        await told.there("a", "b", "c")
        told.world.cut("a", "bc")
        for _ in range(10):  # they fill the window, so that a wants to go on without the others
            processes["a"].context.run(told.replicas["a"].do, b"x" * 500)
        await asyncio.sleep(10)
        group = told.replicas["a"]._life.group
        assert group is not None
        sent = group.status().sent
        await asyncio.sleep(600)
        assert group.status().sent == sent
        newcomer = told.world.start("d", knock, told)
        told.world.cut("ad", "bc")
        await asyncio.sleep(1000)
        assert 64 < group.status().sent < sent + 70
        told.world.heal()
        await told.until(lambda: told.replicas["b"].members == ("a", "b", "c", "d"))
        await told.until(lambda: list(told.machines["b"].counts.values()) == [10])
        newcomer.kill()

    tell(story, settings=LITTLE)


def test_nobody_is_left_behind_before_the_group_has_begun() -> None:
    """Until all have told whom they have met, nobody has a seat that could be taken from him."""

    async def story(told: Story) -> None:
        told.begin("abc")
        await asyncio.sleep(0.2)  # all have met, and not all have said so
        told.world.cut("ab", "c")
        await asyncio.sleep(20)
        assert not told.replicas
        assert not told.changes["a"][1:]
        told.world.heal()
        await told.there("a", "b", "c")

    tell(story, settings=ordercast.Settings(window_bytes=1))


@pytest.mark.parametrize("others", ["a", "ab"])
def test_one_whose_place_was_taken_is_told(others: str) -> None:
    """Whether it delivers that itself or has to ask: it would knock in vain for ever."""

    async def story(told: Story) -> None:
        told.begin("abc")
        await told.there("a", "b", "c")
        told.world.cut(others, "c")
        await told.until(lambda: "c" in told.replicas["a"].view.suspected)
        told.replicas.pop("c")
        told.places["c"] = "127.0.0.1:7099"
        told.world.start("second", told._replica, "c", Tally(), {"via": told.places["a"]})
        await told.until(lambda: told.replicas["a"].generation == 2)
        told.world.heal()
        await told.until(lambda: bool(told.removed))
        assert told.removed == {"c": "another process has taken the place of c"}
        await told.there("c")
        assert await told.replicas["c"].do(b"x") == 1

    tell(story)


def test_two_changes_in_a_row_leave_everyone_time_for_both(tmp_path: Path) -> None:
    """Whoever lags in the second generation is waited for, though the first one is over."""

    def kept(generation: int) -> bool:
        return (tmp_path / "a" / f"generation-{generation:010}" / "journal").exists()

    async def story(told: Story) -> None:
        told.begin("abcde")
        await told.there(*"abcde")
        await told.replicas["a"].remove("e")
        await asyncio.sleep(0.5)
        await told.replicas["a"].remove("d")
        await told.until(lambda: not kept(1))
        assert kept(2)
        await told.until(lambda: not kept(2))
        assert kept(3)

    tell(story, tmp_path)


def test_whenever_too_few_are_here_it_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """Not of those who are back at once, and of each time anew."""

    async def story(told: Story) -> None:
        told.begin("abc")
        await told.there("a", "b", "c")
        for cut_s, said in ((2, 0), (10, 1), (2, 1), (10, 2)):
            told.world.cut("a", "b", "c")
            await asyncio.sleep(cut_s)
            told.world.heal()
            assert await told.replicas["a"].do(b"x") > 0
            words = "a: nothing is carried out while so few of 'tally' are here; missing: b, c"
            assert caplog.messages.count(words) == said
            await asyncio.sleep(10)

    tell(story)
