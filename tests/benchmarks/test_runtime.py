"""The harness of the runtime's benchmark counts every message once, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from benchmarks.runtime import conduct as conducting
from benchmarks.runtime.conduct import LOW_RATE, Case, Durations, Figures, conduct
from benchmarks.runtime.goals import BATCHES, MANY, RATIOS, TOTAL, UNIFORM, goals
from benchmarks.runtime.sink import STAMP, Histogram, Sink
from benchmarks.runtime.subject import (
    BURSTS,
    FRAMES,
    ONE,
    Alone,
    Form,
    Member,
    Setting,
    all_subjects,
)

ROOT = Path(__file__).parents[2]
QUICK = Durations(warm_s=0.1, window_s=0.4, limit_s=60)
SIZE = 64


def processes_with(word: str) -> list[str]:
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it ended while we looked
            continue
        if word in command:
            found.append(command)
    return found


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the cases of this test live, so that their processes can be told from others."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("form", [FRAMES, ONE], ids=lambda form: form.name)
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "TLS"])
def test_two_processes_count_every_message_once(place: Path, form: Form, tls: bool) -> None:
    figures = asyncio.run(conduct(Case("raw", form, 2, SIZE, tls), QUICK))
    assert figures.words == ""
    for phase in (figures.full, figures.low, figures.half):
        assert phase is not None
        assert phase.sent > 0
        assert phase.delivered == phase.sent
        assert (phase.lost, phase.disorder) == (0, 0)
        assert phase.cpu_us > 0
    assert figures.full is not None
    assert figures.low is not None
    assert figures.half is not None
    # All are stamped at the low rate; the first of a burst otherwise.
    assert figures.low.latencies.total() == figures.low.delivered
    assert 0 < figures.half.latencies.total() <= figures.half.delivered
    assert figures.low.deliveries_per_s <= 2 * LOW_RATE < figures.full.deliveries_per_s * 2
    low = figures.low.latencies
    assert 1 < (low.quantile_us(0.5) or 0) <= (low.quantile_us(0.99) or 0) < 10_000_000
    assert processes_with(str(place)) == []
    assert list(place.iterdir()) == []


def test_the_command_prints_and_writes_what_it_measured(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    options = ["--n=2", "--bytes=64", "--tls=no", "--only=raw", "--form=frames", "--window=0.3"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.runtime", *options, f"--json={file}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "n = 2, 64 bytes, plain" in done.stdout
    assert "1 of 1: raw, frames of 64" in done.stderr
    (case,) = json.loads(file.read_text())["cases"]
    assert case["full"]["delivered"] == case["full"]["sent"]


def test_subjects_take_turns() -> None:
    options = ["--n=2", "--turns=2", "--window=0.2", "--json", "raw", "ordercast fifo"]
    command = [sys.executable, "-m", "benchmarks.runtime.turns"]
    done = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "turn 2 of 2: ordercast fifo" in done.stderr
    raw, fifo = json.loads(done.stdout)
    assert (raw["R of the first"], raw["R turn by turn"]) == ("1.00", "1.00–1.00")
    assert (fifo["subject"], fifo["lost"]) == ("ordercast fifo", 0)
    command += ["--rates=500,2000"]
    done = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [row["messages a second"] for row in rows] == ["500", "500", "2,000", "2,000"]
    for raw, fifo in (rows[:2], rows[2:]):
        assert (raw["p50 of the first"], raw["p99 of the first"]) == ("1.00", "1.00")
        assert 0 < int(fifo["p50 in µs"]) <= int(fifo["p99"].replace(",", ""))
        assert fifo["lost"] == 0
    done = subprocess.run([*command, "rawest"], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr[:21]) == (2, "'rawest' is none of: ")
    done = subprocess.run([*command, "--rates=2k", "raw"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "'2k': give messages a second, such as 2000,10000" in done.stderr


def test_a_leader_that_is_killed_is_followed_by_another() -> None:
    command = [sys.executable, "-m", "benchmarks.runtime.failover", "--turns=1", "--json"]
    options = ["--how=killed", "--window=2", "ordercast consensus/journal"]
    done = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert 0 < float(row["median"].removesuffix(" s")) < 1, "silence alone takes two seconds"
    done = subprocess.run([*command, "consent"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert "a turn came to nothing: there is no subject 'consent'" in done.stderr


class _Broken(Alone):
    name = "broken"
    order = "none"
    forms = (BURSTS,)

    def __init__(self, program: str) -> None:
        self.program = program

    def command(self, setting: Setting) -> list[str] | None:
        return [sys.executable, "-c", self.program, setting.place]

    async def join(self, setting: Setting, sink: Sink) -> Member:
        raise AssertionError


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("raise SystemExit('no such thing')", "a process ended: no such thing"),
        ("print('ready'); raise SystemExit('gone')", "a process ended: gone"),
        ("print('ready'); import time; time.sleep(60)", "not done within 2 s"),
    ],
)
def test_a_subject_that_fails_is_a_sentence(
    place: Path, monkeypatch: pytest.MonkeyPatch, program: str, words: str
) -> None:
    monkeypatch.setattr(conducting, "subject_named", lambda _: _Broken(program))
    case = Case("broken", BURSTS, 2, SIZE, False)
    figures = asyncio.run(conduct(case, Durations(0.1, 0.1, limit_s=2)))
    assert figures.words == words
    assert processes_with(str(place)) == []


def test_a_sink_notices_what_is_lost_repeated_or_swapped() -> None:
    def stamped(number: int) -> bytes:
        return STAMP.pack(1, 2, number).ljust(SIZE, b"\0")

    sink = Sink(0, 2, SIZE, None)
    sink.begin("check")
    sink.take(stamped(7) + stamped(8))
    sink.take(memoryview(stamped(9)))
    sink.take_all([stamped(10)])
    assert (sink.delivered, sink.disorder) == (4, 0)
    assert sink.latencies.total() == 4
    for wrong in (10, 12, 11):
        sink.take(stamped(wrong))
    assert (sink.delivered, sink.disorder) == (7, 3)


def test_a_sink_looks_only_into_what_is_stamped(monkeypatch: pytest.MonkeyPatch) -> None:
    stamped, filler = STAMP.pack(1, 2, 7).ljust(SIZE, b"\0"), bytes(SIZE)
    looks: list[bytes] = []
    look = Sink.look
    monkeypatch.setattr(Sink, "look", lambda sink, blob: (looks.append(blob), look(sink, blob)))
    sink = Sink(0, 2, SIZE, None)
    sink.begin("sample")
    sink.take_all([stamped, filler, filler])
    for blob in (stamped, filler):
        sink.take(memoryview(blob))
    assert (sink.delivered, sink.latencies.total(), len(looks)) == (5, 2, 2)


def test_a_sender_waits_for_the_slowest() -> None:
    async def work() -> None:
        sender, receiver = Sink(0, 2, SIZE, 100), Sink(1, 2, SIZE, 100)
        sender.sent = 100
        await sender.room()
        receiver.take(sender.stamp().ljust(SIZE, b"\0"))
        sender.sent = 101
        waiting = asyncio.create_task(sender.room())
        await asyncio.sleep(0)
        assert not waiting.done()
        assert receiver.owes_credit.is_set()
        sender.take(receiver.credit())
        await waiting
        assert not receiver.owes_credit.is_set()

    asyncio.run(work())


def test_quantiles_are_right_within_the_resolution() -> None:
    histogram = Histogram()
    for us in range(1, 1001):
        histogram.note(us * 1000)
    histogram = Histogram.decode(histogram.encode())
    assert histogram.quantile_us(0.5) == pytest.approx(500, rel=0.03)
    assert histogram.quantile_us(0.99) == pytest.approx(990, rel=0.03)
    assert Histogram.decode(Histogram().encode()).quantile_us(0.5) is None


def test_goals_take_the_worst_case() -> None:
    def figures(subject: str, form: Form, size: int, rate: float, *, tls: bool) -> Figures:
        phase = conducting.Phase(rate, 1.0, Histogram(), 1, 2, 0, 0, 0.0)
        return Figures(Case(subject, form, 3, size, tls), "", full=phase)

    measured = [
        figures("raw", FRAMES, 64, 1000, tls=True),
        figures("raw", FRAMES, 1024, 1000, tls=True),
        figures(UNIFORM + MANY, BURSTS, 64, 500, tls=True),
        figures(UNIFORM + MANY, BURSTS, 1024, 400, tls=True),
        figures(UNIFORM, BURSTS, 64, 500, tls=True),
        figures("redis, bare", BURSTS, 64, 200, tls=False),
        figures("nats, bare", BURSTS, 64, 240, tls=False),
    ]
    found = {goal.what: goal for goal in goals(measured)}
    assert len(found) == len(goals(measured))
    limit = found["≥ 45 % of raw TLS frames, uniform causal with a journal"]
    assert (limit.figure, limit.met) == ("0.40×", False)
    beside = found["beside it: of raw TLS frames, uniform causal with a journal"]
    assert (beside.figure, beside.met, beside.row()["met"]) == ("0.50×", None, "")
    best = found["≥ 2× NATS and Redis with the best client"]
    assert (best.figure, best.met) == ("2.08×", True)
    assert "nats, bare" in best.measured_on
    assert found["every message once and in order"].met


def test_a_goal_next_to_a_peer_is_held_against_both_forms_of_ours() -> None:
    def figures(subject: str, rate: float, *, tls: bool) -> Figures:
        phase = conducting.Phase(rate, 1.0, Histogram(), 1, 2, 0, 0, 0.0)
        return Figures(Case(subject, BURSTS, 3, 64, tls), "", full=phase)

    measured = [
        figures(TOTAL, 300, tls=True),
        figures(TOTAL + BATCHES, 800, tls=True),
        figures("corosync", 100, tls=False),
    ]
    next_to = [goal for goal in goals(measured) if "Corosync" in goal.what]
    assert [(goal.ours.split(":")[0], goal.figure, goal.met) for goal in next_to] == [
        ("one by one", "3.00×", False),
        ("in batches", "8.00×", True),
    ]


def test_the_goals_name_subjects_that_exist() -> None:
    names = {subject.name for subject in all_subjects()}
    for ratio in RATIOS:
        assert {ratio.ours, *ratio.theirs} <= names
