"""Whole runs of real processes under each kind of fault, judged by the definitions."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

import pytest

from ordercast.errors import UsageError
from ordercast.oracle import judge
from ordercast.runtime.faults import parse_faults
from ordercast.runtime.launcher import launch
from ordercast.runtime.plan import Outcome, Plan, Progress
from ordercast.trace import Trace

from .processes import Members

pytestmark = [pytest.mark.timeout(150), pytest.mark.usefixtures("members")]

MESSAGES = 120
EVERYTHING = "kill:1@300ms+400ms,loss:2%,partition:0,1|2@700ms+1s,pause:0@1s+300ms"


def plan(
    faults: str, ordering: str = "causal_vector", dissemination: str = "majority_acks", **more: int
) -> Plan:
    options = {"messages": MESSAGES, "timeout_s": 90, "seed": 3} | more
    return Plan(
        run="faults",
        ordering=ordering,
        dissemination=dissemination,
        faults=parse_faults(faults),
        **options,  # type: ignore[arg-type]
    )


def run(plan: Plan, directory: Path) -> tuple[Outcome, Trace]:
    """Whatever happened, nothing is left behind but a trace."""
    outcome = asyncio.run(launch(plan, directory=directory))
    assert sorted(path.name for path in directory.iterdir()) == ["events.jsonl", "manifest.jsonl"]
    (trace,) = Trace.load(directory)
    return outcome, trace


def broken_promises(trace: Trace) -> list[str]:
    promises = tuple(trace.manifest.extra["promises"])
    return [
        f"{v.property} {v.verdict} ({v.violations} of {v.checked}): {v.witness}"
        for v in judge(trace, promises)
        if v.verdict != "holds" or not v.checked
    ]


def kinds(trace: Trace, process: int) -> list[str]:
    own = [event for event in trace.events if event.process == process]
    assert [event.position for event in own] == list(range(len(own)))
    return [event.kind for event in own]


def changes(trace: Trace) -> list[tuple[str, int]]:
    """Who went down and came back, by the clock."""
    found = [event for event in trace.events if event.kind in ("crash", "recover")]
    return [(e.kind, e.process) for e in sorted(found, key=lambda event: event.time_us or 0)]


def what(outcome: Outcome) -> list[str]:
    return [happening.what for happening in outcome.happened]


@pytest.mark.parametrize(
    ("faults", "told"),
    [
        ("kill:1@400ms+200ms", ["p1 killed", "p1 back"]),
        ("pause:2@200ms+500ms", ["p2 paused", "p2 goes on"]),
        ("partition:0|1,2@300ms+700ms", ["0 | 1, 2 parted", "0 | 1, 2 healed"]),
        ("slow:1@200ms+500ms", ["p1 reads no more", "p1 reads again"]),
        ("delay:20ms±10ms", []),
        ("delay:0>1=50ms@200ms+500ms", ["delay:0>1=50ms@200ms+500ms begins", "… ends"]),
        ("loss:3%", []),
    ],
)
def test_each_kind_of_fault_and_nothing_is_lost(
    tmp_path: Path, faults: str, told: list[str]
) -> None:
    outcome, trace = run(plan(faults), tmp_path)
    assert (outcome.quiesced, outcome.obstacle, outcome.crashed) == (True, None, ())
    assert [(m.sent, m.delivered) for m in outcome.members] == [(MESSAGES, 3 * MESSAGES)] * 3
    assert broken_promises(trace) == []
    assert "uniform_agreement" in trace.manifest.extra["promises"]
    done = [words for words in what(outcome) if "suspects" not in words and "trusts" not in words]
    assert done == [words.replace("…", faults) for words in told]
    at_us = [happening.at_us for happening in outcome.happened]
    assert at_us == sorted(at_us)
    if told:
        assert at_us[0] >= parse_faults(faults).faults[0].span.start_us, "not before its time"
    assert (outcome.traffic is None) == (not parse_faults(faults).of_the_network)
    if faults.startswith("loss"):
        assert outcome.traffic is not None
        assert outcome.traffic.lost >= 5
        assert outcome.traffic.connections >= 3 + 5


@pytest.mark.parametrize(
    ("ordering", "dissemination"),
    [
        ("causal_vector", "majority_acks"),
        ("causal_history", "majority"),
        ("causal_matrix", "direct"),
        ("causal_vector", "best_effort"),
        ("fifo", "gossip"),
        ("total_coordinator", "direct"),
        ("total_lamport", "direct"),
        ("total_skeen", "direct"),
        ("total_consensus", "direct"),
        ("synchronous", "direct"),
        ("unordered", "relay"),
    ],
)
def test_everything_at_once(tmp_path: Path, ordering: str, dissemination: str) -> None:
    outcome, trace = run(plan(EVERYTHING, ordering, dissemination), tmp_path)
    assert (outcome.quiesced, outcome.obstacle) == (True, None)
    assert broken_promises(trace) == []
    assert [m.sent for m in outcome.members] == [MESSAGES] * 3
    everyone = 1 if ordering == "synchronous" else 3
    assert sum(m.delivered for m in outcome.members) == 3 * MESSAGES * everyone
    assert kinds(trace, 1).count("crash") == kinds(trace, 1).count("recover") == 1
    assert {"agreement", "validity"} <= set(trace.manifest.extra["promises"])


def test_who_comes_back_goes_on_where_it_was(tmp_path: Path) -> None:
    """Long enough for a busy machine to have p1 back before it is killed again."""
    faults = "kill:1@300ms+300ms,kill:1@3s+200ms,kill:0@900ms+500ms"
    outcome, trace = run(plan(faults, messages=160, interval_ms=25), tmp_path)
    assert outcome.quiesced
    assert broken_promises(trace) == []
    assert [m.sent for m in outcome.members] == [160] * 3, "no number twice, none left out"
    for process, times in ((0, 1), (1, 2), (2, 0)):
        own = kinds(trace, process)
        assert own.count("crash") == own.count("recover") == times
        for place in (place for place, kind in enumerate(own) if kind == "crash"):
            assert own[place + 1] == "recover"
            assert "send" in own[:place]
            assert "send" in own[place:]
    assert [words for words in what(outcome) if words.startswith("p1 ")].count("p1 back") == 2


def test_two_who_were_down_at_the_same_time_find_each_other(tmp_path: Path) -> None:
    outcome, trace = run(plan("kill:1@200ms+1500ms,kill:2@300ms+300ms"), tmp_path)
    said = what(outcome)
    assert said.index("p2 back") < said.index("p1 back")
    assert outcome.quiesced
    assert broken_promises(trace) == []


@pytest.mark.parametrize("dissemination", ["majority_acks", "gossip"])
def test_who_is_dead_for_good_is_missed_and_the_others_come_to_rest(
    tmp_path: Path, dissemination: str
) -> None:
    """p1 is down when p2 dies, and has to find out by itself that it is alone with the others."""
    faults = "kill:1@300ms+1s,kill:2@600ms"
    outcome, trace = run(plan(faults, dissemination=dissemination, processes=4), tmp_path)
    assert outcome.quiesced
    assert [crash.process for crash in outcome.crashed] == [2]
    assert kinds(trace, 2)[-1] == "crash"
    assert "recover" not in kinds(trace, 2)
    assert changes(trace) == [("crash", 1), ("crash", 2), ("recover", 1)], "when they happened"
    assert broken_promises(trace) == []
    assert "agreement" in trace.manifest.extra["promises"]
    for me in (0, 1, 3):
        assert f"p{me} suspects p2" in what(outcome)
    assert [outcome.members[me].sent for me in (0, 1, 3)] == [MESSAGES] * 3


@pytest.mark.parametrize(
    ("faults", "dead"),
    [
        ("kill:0@400ms,kill:1@3s", [0, 1]),
        ("kill:0@400ms+3s,partition:0,1|2,3,4@5s+3s", []),
    ],
)
def test_total_order_goes_on_without_its_coordinator(
    tmp_path: Path, faults: str, dead: list[int]
) -> None:
    asked = plan(faults, "total_consensus", "direct", processes=5, messages=60, interval_ms=120)
    outcome, trace = run(asked, tmp_path)
    assert outcome.quiesced
    assert [crash.process for crash in outcome.crashed] == dead
    assert broken_promises(trace) == []
    assert {"causal", "total_gap_free", "uniform_agreement"} <= set(
        trace.manifest.extra["promises"]
    )
    for me in {*range(5)} - {*dead}:
        assert outcome.members[me].sent == 60
    coordinators = {0, 1} if dead else {0}
    for gone in coordinators:
        assert any(f"suspects p{gone}" in words for words in what(outcome))


@pytest.mark.parametrize("faults", ["pause:2@300ms+4s", "partition:0,1|2@300ms+4s"])
def test_a_wrong_suspicion_is_withdrawn_and_does_no_harm(tmp_path: Path, faults: str) -> None:
    outcome, trace = run(plan(faults, messages=200, interval_ms=25), tmp_path)
    said = what(outcome)
    for me in (0, 1):
        assert said.index(f"p{me} suspects p2") < said.index(f"p{me} trusts p2 again")
    assert outcome.quiesced
    assert broken_promises(trace) == []
    assert [m.delivered for m in outcome.members] == [3 * 200] * 3


def test_without_a_majority_there_is_no_rest_and_the_run_says_so(tmp_path: Path) -> None:
    outcome, trace = run(plan("kill:1@300ms,kill:2@500ms"), tmp_path)
    assert not outcome.quiesced
    assert outcome.obstacle == (
        "majority_acks waits for more than half of the 3 members, and only 1 is left"
    )
    assert outcome.duration_s < 60
    assert not trace.manifest.quiesced
    verdicts = {v.property: v.verdict for v in judge(trace, ("causal", "validity"))}
    assert verdicts == {"causal": "holds", "validity": "unknown"}, "nobody is accused"


def test_the_manifest_and_the_progress_tell_what_was_done(tmp_path: Path) -> None:
    steps: list[Progress] = []
    faults = "pause:1@100ms+300ms,kill:0@600ms+100ms,partition:0|1,2@300ms+200ms,loss:1%"
    asked = plan(faults, messages=80)
    outcome = asyncio.run(launch(asked, directory=tmp_path, progress=steps.append))
    (trace,) = Trace.load(tmp_path)
    assert trace.manifest.extra["faults"] == str(asked.faults)
    happened = trace.manifest.extra["happened"]
    assert happened == [{"at_us": h.at_us, "what": h.what} for h in outcome.happened]
    assert happened[0]["what"] == "p1 paused"
    assert re.fullmatch(r"\d\.\d{3} s  p1 paused", str(outcome.happened[0]))
    [parting] = trace.manifest.extra["partitions"]
    assert parting["sides"] == "0|1,2"
    assert 190_000 < parting["end_us"] - parting["start_us"] < 2_000_000
    times = [event.time_us for event in trace.events if event.time_us is not None]
    assert min(times) < parting["start_us"] < max(times), "on the clock of the trace"
    assert trace.manifest.extra["payloads"]["2:1"].startswith("p2 #1...")
    running = [step for step in steps if step.phase == "running"]
    assert not running[0].happened
    assert any(len(step.happened) == 1 for step in running), "as it happens, not at the end"
    assert steps[-1].happened == outcome.happened


@pytest.mark.parametrize("when_s", [0.3, 1.0, 1.6, 2.2])
def test_cancelling_in_the_middle_of_a_fault_leaves_nothing(
    tmp_path: Path, members: Members, when_s: float
) -> None:
    """In a pause, in a partition, while someone is down or just coming back."""

    async def cancelled() -> None:
        asked = plan("pause:2@100ms+20s,partition:0|1,2@0s+20s,kill:1@200ms+300ms", messages=900)
        reached = asyncio.Event()

        def show(step: Progress) -> None:
            if step.phase == "running":
                reached.set()

        task = asyncio.create_task(launch(asked, directory=tmp_path, progress=show))
        await reached.wait()
        await asyncio.sleep(when_s)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert members.pids() == []
    (trace,) = Trace.load(tmp_path)
    assert not trace.manifest.quiesced
    assert not (tmp_path / "members").exists()


def test_a_plan_that_does_not_fit_the_group_starts_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="names process 9"):
        asyncio.run(launch(plan("kill:9@1s"), directory=tmp_path))
    assert list(tmp_path.iterdir()) == []


LINKS_THAT_DO_NOT_RESEND = """
def cut(self):
    self.open = False
    self.acknowledged += len(self._flying)
    self._flying.clear()
Link.cut = cut
"""
LINKS_THAT_REPEAT = """
def resume(self, received, sent, session, known):
    self.cut()
    self.open = True
def receive(self, data):
    return data.packets
Link.resume, Link.receive = resume, receive
"""


@pytest.mark.parametrize("bug", [LINKS_THAT_DO_NOT_RESEND, LINKS_THAT_REPEAT])
def test_a_link_with_a_bug_does_not_survive_losses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bug: str
) -> None:
    """Check the checker. The bug is smuggled in by a sitecustomize that only members run."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "if 'ordercast.runtime.member' in sys.orig_argv:\n"
        "    from ordercast.runtime.link import Link\n"
        f"    exec({bug!r})\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    asked = plan("loss:5%", "unordered", "best_effort", timeout_s=8)
    outcome, trace = run(asked, tmp_path / "trace")
    assert outcome.traffic is not None
    assert outcome.traffic.lost
    # A promise is broken, or the others have noticed it first and ended whoever has the bug.
    assert broken_promises(trace) or outcome.crashed
