"""A live group in somebody's hands: what is done to it is what a plan could have done."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ordercast.errors import UsageError
from ordercast.runtime.hands import Hands
from ordercast.runtime.launcher import launch
from ordercast.runtime.looks import Look, MemberLook
from ordercast.runtime.plan import Outcome, Plan
from ordercast.trace import Trace
from tests.runtime.helpers import until
from tests.runtime.processes import Members

Play = Callable[["Person"], Awaitable[None]]


class Person:
    """Looks on, and does what the test says."""

    def __init__(self, play: Play) -> None:
        self._play = play
        self.playing: asyncio.Future[None] | None = None
        self.looks: list[Look] = []

    def begin(self, hands: Hands) -> None:
        self.hands = hands
        self.playing = asyncio.ensure_future(self._play(self))

    def see(self, look: Look) -> None:
        self.looks.append(look)

    def member(self, process: int) -> MemberLook:
        return self.looks[-1].members[process]

    async def sees(self, condition: Callable[[Look], bool]) -> None:
        await until(lambda: bool(self.looks) and condition(self.looks[-1]), within_s=40)

    async def fails(self, act: str, process: int | None = None) -> str:
        with pytest.raises(UsageError) as refusal:
            await self.hands.act(act, process)
        return str(refusal.value)


def run(directory: Path, play: Play, plan: Plan) -> tuple[Outcome, Person]:
    person = Person(play)

    async def both() -> Outcome:
        running = asyncio.create_task(launch(plan, directory=directory, audience=person))
        async with asyncio.timeout(60):
            await until(lambda: person.playing is not None, within_s=40)
            assert person.playing is not None
            await person.playing
            return await running

    return asyncio.run(both()), person


def plan(**choices: object) -> Plan:
    usual = {"dissemination": "majority_acks", "messages": None, "interval_ms": 20, "timeout_s": 30}
    return Plan(run="live", live=True, **usual | choices)  # type: ignore[arg-type]


def load(outcome: Outcome) -> Trace:
    [trace] = Trace.load(outcome.directory)
    return trace


def told(outcome: Outcome) -> list[str]:
    return [happening.what for happening in outcome.happened if "p1 " in happening.what]


def test_who_is_killed_and_started_again_sends_the_rest_of_its_own(tmp_path: Path) -> None:
    async def play(person: Person) -> None:
        await person.sees(lambda look: look.members[1].sent > 5)
        await person.hands.act("kill", 1)
        await person.sees(lambda look: look.members[1].state == "down")
        assert "p1 is down already" in await person.fails("pause", 1)
        await person.hands.act("restart", 1)
        assert "p1 is not down" in await person.fails("restart", 1)

    outcome, person = run(tmp_path, play, plan(messages=60))
    assert outcome.quiesced, outcome.obstacle
    assert outcome.crashed == ()
    assert [member.sent for member in outcome.members] == [60, 60, 60]
    trace = load(outcome)
    sent = [e.number for e in trace.events if e.process == 1 and e.kind == "send"]
    assert sent == list(range(1, 61))
    kinds = [e.kind for e in trace.events if e.process == 1]
    assert kinds.count("crash") == kinds.count("recover") == 1
    assert [what for what in told(outcome) if what.startswith("p1 ")][:2] == [
        "p1 killed",
        "p1 back",
    ]
    [trouble] = person.looks[-1].troubles
    assert trouble.ill == "down"
    assert trouble.until_us is not None


def test_who_is_killed_for_good_is_dead_and_the_others_come_to_rest(tmp_path: Path) -> None:
    async def play(person: Person) -> None:
        await person.sees(lambda look: look.members[1].sent > 5)
        await person.hands.act("kill", 1)
        await person.hands.act("cut", 1)  # is nobody's trouble now
        await person.sees(lambda look: set(look.members[1].suspected_by) == {0, 2})
        await person.hands.act("finish")
        assert "coming to rest" in await person.fails("restart", 1)

    outcome, _ = run(tmp_path, play, plan())
    assert outcome.quiesced, outcome.obstacle
    assert [crash.process for crash in outcome.crashed] == [1]
    assert outcome.killed == {1}
    trace = load(outcome)
    assert [e.kind for e in trace.events if e.process == 1][-1] == "crash"
    assert {"at_us", "what"} == set(trace.manifest.extra["happened"][0])
    assert "agreement" in trace.manifest.extra["promises"]


def test_without_a_majority_it_does_not_come_to_rest(tmp_path: Path) -> None:
    async def play(person: Person) -> None:
        await person.sees(lambda look: look.members[1].sent > 2)
        await person.hands.act("kill", 1)
        await person.hands.act("kill", 2)
        await person.sees(lambda look: set(look.members[1].suspected_by) == {0})
        await person.hands.act("finish")

    outcome, _ = run(tmp_path, play, plan())
    assert not outcome.quiesced
    assert outcome.obstacle is not None
    assert "only 1 is left" in outcome.obstacle


def test_paused_and_cut_off_members_are_in_the_way_until_they_are_healed(tmp_path: Path) -> None:
    async def play(person: Person) -> None:
        act = person.hands.act
        await person.sees(lambda look: look.members[0].sent > 2)
        await act("pause", 0)
        await act("cut", 1)
        await act("cut", 2)
        await act("kill", 2)
        assert await person.fails("finish") == (
            "the group cannot come to rest: p0 is paused, p1 is cut off"
        )
        sent = person.member(1).sent
        await person.sees(lambda look: look.members[1].held > 3 and look.members[1].sent > sent)
        assert "waits for word from p0, p2" in str(person.member(1).holds[0])
        assert person.member(1).stable < person.member(1).bundles
        assert person.member(0).state == "paused"
        await act("heal_and_finish")

    outcome, person = run(tmp_path, play, plan())
    assert outcome.quiesced, outcome.obstacle
    assert outcome.crashed == ()
    last = person.looks[-1]
    assert [(m.state, m.cut, m.held) for m in last.members] == [("running", False, 0)] * 3
    assert all(m.stable == m.bundles == m.sent for m in last.members)
    assert "p2 back" in [happening.what for happening in outcome.happened]


@pytest.mark.parametrize(("act", "undo"), [("kill", "restart"), ("cut", "reconnect")])
def test_when_all_is_said_it_ends_by_itself_but_not_while_somebody_is_in_trouble(
    tmp_path: Path, act: str, undo: str
) -> None:
    waited: list[bool] = []

    async def play(person: Person) -> None:
        await person.sees(lambda look: look.members[0].sent > 1)
        await person.hands.act(act, 1)
        others = (0, 2) if act == "kill" else (0, 1, 2)
        await person.sees(lambda look: all(look.members[p].sent == 10 for p in others))
        await asyncio.sleep(0.5)
        waited.append(not person.looks[-1].finishing)
        await person.hands.act(undo, 1)

    outcome, _ = run(tmp_path, play, plan(messages=10, interval_ms=50))
    assert waited == [True]
    assert outcome.quiesced
    assert [member.sent for member in outcome.members] == [10] * 3


@pytest.mark.parametrize(
    ("act", "process", "sentence"),
    [
        ("resume", 1, "p1 is not paused"),
        ("reconnect", 1, "p1 is not cut off"),
        ("restart", 1, "p1 is not down"),
        ("kill", 7, "there is no process 7"),
        ("kill", None, "there is no process None"),
        ("__init__", 1, "'__init__' is nothing that can be done"),
    ],
)
def test_what_makes_no_sense_gets_a_sentence(
    tmp_path: Path, act: str, process: int | None, sentence: str
) -> None:
    async def play(person: Person) -> None:
        assert sentence in await person.fails(act, process)
        await person.hands.act("finish")

    outcome, _ = run(tmp_path, play, plan(processes=2))
    assert outcome.quiesced


def test_a_member_that_dies_by_itself_is_seen_and_may_come_back(
    tmp_path: Path, members: Members
) -> None:
    async def play(person: Person) -> None:
        await person.sees(lambda look: look.members[1].sent > 2)
        os.kill(members.pid_of(1), signal.SIGKILL)
        await person.sees(lambda look: look.members[1].state == "down")
        await person.hands.act("heal_and_finish")

    outcome, _ = run(tmp_path, play, plan())
    assert outcome.quiesced, outcome.obstacle
    assert "p1 ended: killed by SIGKILL" in told(outcome)
    assert outcome.crashed == ()


def test_a_member_that_comes_back_from_a_kill_and_dies_by_itself_was_not_killed_on_purpose(
    tmp_path: Path, members: Members
) -> None:
    async def play(person: Person) -> None:
        await person.sees(lambda look: look.members[1].sent > 2)
        await person.hands.act("kill", 1)
        await person.hands.act("restart", 1)
        os.kill(members.pid_of(1), signal.SIGKILL)
        await person.sees(lambda look: set(look.members[1].suspected_by) == {0, 2})
        await person.hands.act("finish")

    outcome, _ = run(tmp_path, play, plan())
    assert [crash.process for crash in outcome.crashed] == [1]
    assert outcome.killed == frozenset()


@pytest.mark.parametrize("act", ["pause", "kill", "cut", "restart"])
def test_cancelled_while_somebody_is_in_trouble_nothing_is_left(
    tmp_path: Path, members: Members, act: str
) -> None:
    restarts: list[asyncio.Future[None]] = []

    async def play(person: Person) -> None:
        await person.sees(lambda look: look.members[1].sent > 2)
        if act == "restart":
            await person.hands.act("kill", 1)
            restarts.append(asyncio.ensure_future(person.hands.act("restart", 1)))
            await asyncio.sleep(0)
        else:
            await person.hands.act(act, 1)

    async def cancelled() -> None:
        person = Person(play)
        running = asyncio.create_task(launch(plan(), directory=tmp_path, audience=person))
        await until(lambda: person.playing is not None, within_s=40)
        assert person.playing is not None
        await person.playing
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(cancelled())
    assert members.pids() == []
    assert sorted(file.name for file in tmp_path.iterdir()) == ["events.jsonl", "manifest.jsonl"]


def test_a_live_run_that_nobody_can_end_is_refused() -> None:
    with pytest.raises(UsageError, match="needs a number of messages"):
        Plan(run="r", messages=None).check()


def test_a_person_may_take_their_time_and_the_group_gets_its_own_from_the_finish(
    tmp_path: Path, members: Members
) -> None:
    async def play(person: Person) -> None:
        await person.sees(lambda look: look.time_us - person.looks[0].time_us > 3_500_000)
        await person.hands.act("finish")

    outcome, _ = run(tmp_path / "patient", play, plan(processes=2, timeout_s=3.0))
    assert outcome.quiesced, outcome.obstacle

    async def leave_it_stuck(person: Person) -> None:
        await person.sees(lambda look: look.members[1].sent > 2)
        os.kill(members.pid_of(1), signal.SIGSTOP)
        await person.hands.act("finish")

    outcome, _ = run(tmp_path / "stuck", leave_it_stuck, plan(processes=2, timeout_s=3.0))
    assert outcome.obstacle == "its time of 3 s was up"
