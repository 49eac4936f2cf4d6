"""Groups of real processes: they come together, exchange, come to rest, and leave one trace."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ordercast.errors import OrdercastError, TraceError, UsageError
from ordercast.oracle import judge
from ordercast.runtime import launcher as launcher_module
from ordercast.runtime.launcher import launch
from ordercast.runtime.plan import Outcome, Plan, Progress
from ordercast.runtime.weather import SWAP_FLUSH_S, Weather
from ordercast.trace import Event, Trace

from .processes import Members

pytestmark = [pytest.mark.timeout(60), pytest.mark.usefixtures("members")]


def run(plan: Plan, directory: Path, **options: Callable[[Progress], None]) -> Outcome:
    outcome = asyncio.run(launch(plan, directory=directory, **options))
    assert sorted(path.name for path in directory.iterdir()) == ["events.jsonl", "manifest.jsonl"]
    return outcome


def load(directory: Path) -> Trace:
    (trace,) = Trace.load(directory)
    return trace


def broken_promises(trace: Trace) -> list[str]:
    promises = tuple(trace.manifest.extra["promises"])
    return [v.property for v in judge(trace, promises) if v.verdict != "holds" or not v.checked]


def rows(trace: Trace, process: int) -> list[Event]:
    own = [event for event in trace.events if event.process == process]
    assert [event.position for event in own] == list(range(len(own)))
    return own


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("file", r"file.* is a file: name a directory"),
        ("file/deep", r"to .*file/deep: .*/file is a file: name a directory"),
        ("/proc/ordercast", r"to /proc/ordercast: No such file or directory: name another"),
    ],
)
def test_a_place_where_no_trace_can_be_is_told_as_such(
    tmp_path: Path, place: str, sentence: str
) -> None:
    (tmp_path / "file").write_text("precious")
    with pytest.raises(OrdercastError, match=sentence):
        asyncio.run(launch(Plan(run="nowhere"), directory=tmp_path / place))


def test_three_processes_exchange_eight_messages_each(tmp_path: Path) -> None:
    steps: list[Progress] = []
    plan = Plan(run="eight", payload_bytes=100, command="ordercast run --seed 0")
    outcome = run(plan, tmp_path / "new" / "trace", progress=steps.append)
    assert outcome.quiesced
    assert outcome.crashed == ()
    assert [(m.sent, m.delivered) for m in outcome.members] == [(8, 24)] * 3
    assert 0 < outcome.duration_s < 30

    trace = load(outcome.directory)
    assert broken_promises(trace) == []
    manifest = trace.manifest
    assert (manifest.run, manifest.processes) == ("eight", ("p0", "p1", "p2"))
    assert (manifest.quiesced, manifest.complete) == (True, True)
    assert (manifest.order, manifest.dissemination) == ("causal_vector", "best_effort")
    assert manifest.extra["seed"] == 0
    assert manifest.extra["command"] == "ordercast run --seed 0"
    assert manifest.extra["weather"] == "no delays"
    assert {event.bytes for event in trace.events} == {100}

    assert (steps[0].phase, steps[0].present, steps[0].processes) == ("gathering", 0, 3)
    assert next(step.phase for step in steps if step.present == 3) == "gathering"
    assert steps[-1].phase == "stopping"
    assert (steps[-1].delivered, steps[-1].to_deliver) == (72, 72)


def test_sends_and_deliveries_interleave(tmp_path: Path) -> None:
    trace = load(run(Plan(run="interleave"), tmp_path).directory)
    for process in range(3):
        kinds = [event.kind for event in rows(trace, process)]
        first_remote = kinds.index("receive")
        assert "send" in kinds[first_remote:], "a message that depends on another process's"


def test_the_example_of_source_text_003(tmp_path: Path) -> None:
    """Of each two messages the second arrives first, is held, and is delivered after the first;
    nobody stops before everyone has delivered all 24."""
    plan = Plan(run="source-003", weather=Weather(swap_pairs=True))
    outcome = run(plan, tmp_path)
    assert outcome.quiesced
    assert [(m.sent, m.delivered) for m in outcome.members] == [(8, 24)] * 3
    assert all(m.held_max >= 1 for m in outcome.members)

    trace = load(outcome.directory)
    assert broken_promises(trace) == []
    for process in range(3):
        at = {(e.kind, *e.message): e.position for e in rows(trace, process)}
        for origin in {0, 1, 2} - {process}:
            for first in (1, 3, 5, 7):
                second = first + 1
                assert at["receive", origin, second] < at["receive", origin, first]
                assert at["receive", origin, first] < at["deliver", origin, first]
                assert at["deliver", origin, first] < at["deliver", origin, second]


def test_an_odd_last_message_is_not_kept_for_a_second_that_never_comes(tmp_path: Path) -> None:
    plan = Plan(run="odd", messages=3, weather=Weather(swap_pairs=True))
    outcome = run(plan, tmp_path)
    assert outcome.quiesced
    assert [m.delivered for m in outcome.members] == [9, 9, 9]
    at_us = {(e.process, e.kind, *e.message): e.time_us or 0 for e in load(tmp_path).events}
    assert at_us[1, "receive", 0, 3] - at_us[0, "send", 0, 3] < SWAP_FLUSH_S * 1e6 / 2


def test_delays_reorder_and_the_ordering_repairs_it(tmp_path: Path) -> None:
    weather = Weather(delay_ms=(0, 40))
    repaired = run(
        Plan(run="repaired", weather=weather, messages=20, interval_ms=4), tmp_path / "fifo"
    )
    assert broken_promises(load(repaired.directory)) == []
    assert max(m.held_max for m in repaired.members) > 1

    plan = Plan(run="raw", ordering="unordered", weather=weather, messages=20, interval_ms=4)
    raw = load(run(plan, tmp_path / "unordered").directory)
    assert broken_promises(raw) == []
    (fifo,) = judge(raw, ("fifo",))
    assert fifo.verdict == "violated"


def test_one_process_alone_and_no_messages_at_all(tmp_path: Path) -> None:
    alone = run(Plan(run="alone", processes=1, messages=3, interval_ms=0), tmp_path / "alone")
    assert (alone.quiesced, alone.members[0].delivered) == (True, 3)
    silent = run(Plan(run="silent", messages=0), tmp_path / "silent")
    assert (silent.quiesced, silent.members[0].sent) == (True, 0)
    assert load(silent.directory).events == ()


def test_the_timeout_ends_a_run_that_is_not_at_rest(tmp_path: Path) -> None:
    plan = Plan(run="late", messages=1000, interval_ms=50, timeout_s=2.5)
    outcome = run(plan, tmp_path)
    assert not outcome.quiesced
    assert outcome.crashed == ()
    trace = load(outcome.directory)
    assert not trace.manifest.quiesced
    assert trace.events


@pytest.mark.parametrize("dissemination", ["best_effort", "relay", "majority_acks", "gossip"])
def test_a_killed_member_has_a_crash_row_and_the_others_come_to_rest(
    tmp_path: Path, members: Members, dissemination: str
) -> None:
    killed: list[int] = []

    def kill_p1(step: Progress) -> None:
        if step.phase == "running" and step.sent > 5 and not killed:
            killed.append(members.pid_of(1))
            os.kill(killed[0], signal.SIGKILL)

    plan = Plan(run="killed", dissemination=dissemination, messages=30, timeout_s=20)
    outcome = run(plan, tmp_path, progress=kill_p1)
    assert killed
    assert outcome.quiesced
    assert outcome.duration_s < 15
    (crash,) = outcome.crashed
    assert (crash.process, crash.cause) == (1, "killed by SIGKILL")

    trace = load(outcome.directory)
    assert [event.kind for event in trace.events].count("crash") == 1
    assert rows(trace, 1)[-1].kind == "crash"
    assert broken_promises(trace) == []
    promised = trace.manifest.extra["promises"]
    assert ("agreement" in promised) == (dissemination != "best_effort")
    assert [outcome.members[me].sent for me in (0, 2)] == [30, 30]


def test_a_member_that_dies_of_a_bug_says_of_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bug is smuggled in by a sitecustomize that only the member programs run."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "if 'ordercast.runtime.member' in sys.orig_argv:\n"
        "    from ordercast.protocols.orderings.causal_vector import CausalVector\n"
        "    def receive(self, source, item):\n"
        "        if self.me == 2 and item.message.id.number == 4 and item.message.id.origin == 0:\n"
        "            raise ZeroDivisionError('the bug')\n"
        "        return sound(self, source, item)\n"
        "    sound, CausalVector.receive = CausalVector.receive, receive\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    outcome = run(Plan(run="bug", timeout_s=20), tmp_path / "trace")
    (crash,) = outcome.crashed
    assert crash.process == 2
    assert crash.cause == "exit code 1: ZeroDivisionError: the bug"
    assert outcome.quiesced
    own = rows(load(outcome.directory), 2)
    assert own[-1].kind == "crash"
    # What the bug interrupted has not happened, nor what came in the same turn: nobody can have
    # seen anything of it.
    assert max((event.number or 0 for event in own if event.origin == 0), default=0) < 4


def test_members_leave_nothing_open_of_which_python_would_warn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It would be their last word, in place of why one died."""
    monkeypatch.setenv("PYTHONWARNINGS", "always")
    with caplog.at_level(logging.INFO, logger="ordercast.runtime.child"):
        outcome = run(Plan(run="tidy", messages=2), tmp_path / "trace")
    assert outcome.quiesced
    assert caplog.messages == []


def test_members_that_cannot_even_start_end_the_run_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "if 'ordercast.runtime.member' in sys.orig_argv: sys.exit('no room on this machine')\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    outcome = run(Plan(run="stillborn", timeout_s=20), tmp_path / "trace")
    assert not outcome.quiesced
    assert outcome.duration_s < 10
    assert outcome.crashed[0].cause.endswith("no room on this machine")


def test_a_member_that_does_not_answer_is_ended_within_three_seconds(
    tmp_path: Path, members: Members
) -> None:
    """A stopped process answers neither a stop nor a SIGTERM."""
    stopped: list[float] = []

    def freeze_p0(step: Progress) -> None:
        if step.phase == "running" and step.sent and not stopped:
            os.kill(members.pid_of(0), signal.SIGSTOP)
            stopped.append(time.monotonic())

    plan = Plan(run="frozen", messages=500, timeout_s=2.5)
    outcome = run(plan, tmp_path, progress=freeze_p0)
    assert stopped
    assert outcome.duration_s < 2.5 + 3.5
    assert not outcome.quiesced
    assert outcome.crashed == (), "we ended it, it did not crash"


@pytest.mark.parametrize("when_s", [0.0, 0.02, 0.1, 0.2, 0.3, 0.5])
def test_cancelling_at_any_moment_leaves_a_trace_and_nothing_else(
    tmp_path: Path, members: Members, when_s: float
) -> None:
    async def cancelled() -> None:
        plan = Plan(run=f"cancel-{when_s}", messages=1000)
        task = asyncio.create_task(launch(plan, directory=tmp_path))
        await asyncio.sleep(when_s)
        task.cancel()
        start = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - start < 3.5

    asyncio.run(cancelled())
    assert members.pids() == []
    if any(tmp_path.iterdir()):  # cancelled before its first step, a task has done nothing
        trace = load(tmp_path)
        assert not trace.manifest.quiesced
        assert not (tmp_path / "members").exists()
    else:
        assert when_s == 0


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (Plan(run="r", ordering="psychic"), "psychic"),
        (Plan(run="r", dissemination="pigeon"), "pigeon"),
        (Plan(run="r", processes=0), "0 processes"),
        (Plan(run="r", messages=-1), "-1 messages"),
        (Plan(run="r", payload_bytes=2**30), "payload"),
        (Plan(run="r", interval_ms=-5), "between messages"),
        (Plan(run="r", timeout_s=0), "timeout"),
        (Plan(run=""), "name"),
    ],
)
def test_an_impossible_plan_is_refused_before_anything_starts(
    plan: Plan, words: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=words):
        asyncio.run(launch(plan, directory=tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_directory_with_a_trace_is_refused(tmp_path: Path) -> None:
    run(Plan(run="first", processes=1, messages=1), tmp_path)
    with pytest.raises(TraceError, match="already"):
        asyncio.run(launch(Plan(run="second"), directory=tmp_path))
    assert load(tmp_path).manifest.run == "first"


def test_a_start_that_fails_leaves_nothing_running(
    tmp_path: Path, members: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = launcher_module.Child.start

    async def start(self: launcher_module.Child) -> None:
        if self.index == 1:
            raise OSError("no more processes")
        await real(self)

    monkeypatch.setattr(launcher_module.Child, "start", start)
    with pytest.raises(OSError, match="no more processes"):
        asyncio.run(launch(Plan(run="nofork"), directory=tmp_path))
    assert members.pids() == []
