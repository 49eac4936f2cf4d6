"""Whole sweeps, without Spark: what the table says, and what happens to a sweep that is stopped."""

from __future__ import annotations

import errno
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from ordercast.cli import main
from ordercast.errors import OrdercastError, TraceError, UsageError
from ordercast.oracle import judge
from ordercast.sweep import simulated
from ordercast.sweep.block import Block, Results
from ordercast.sweep.conduct import conduct
from ordercast.sweep.configuration import Configuration
from ordercast.sweep.store import Store
from ordercast.sweep.tally import Row, outcome
from ordercast.trace.directory import Trace
from ordercast.trace.event import Event
from ordercast.trace.verdicts import ORDERS, PROPERTIES, Verdict, order_held

GOOD = Configuration("causal_vector", "best_effort", 3, 3)
# A threshold of one is no majority: what only the dead have delivered is lost.
WEAK = Configuration("unordered", "majority", 4, 2, faults="crash:0#1, loss:50%", threshold=1)
MIXED = Configuration("fifo", "direct", 3, 1)  # with some seeds stronger than it must be
CONFIGURATIONS = [GOOD, WEAK, MIXED]
SEEDS = range(5, 15)
TOTAL = len(CONFIGURATIONS) * len(SEEDS)
SMALL = 3 * GOOD.work
"""A few runs a block."""


class Hands:
    """Does the work right here, and counts the runs."""

    def __init__(self) -> None:
        self.runs = 0

    def __call__(
        self, work: Callable[[Block], Results], blocks: Sequence[Block]
    ) -> Iterator[Results]:
        for one in blocks:
            self.runs += one.runs
            yield work(one)


def sweep(
    output: Path | None = None, seeds: range = SEEDS, *, work_max: int = SMALL, **options: Any
) -> tuple[list[Row], int]:
    hands = Hands()
    configurations = options.pop("configurations", CONFIGURATIONS)
    rows = conduct(
        configurations, seeds, perform=hands, output=output, work_max=work_max, **options
    )
    return rows, hands.runs


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return sweep()[0]


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trace]:
    output = tmp_path_factory.mktemp("traces")
    sweep(output, traces=True)
    return {trace.manifest.run: trace for trace in Trace.load(output / "traces")}


def test_the_table_does_not_depend_on_how_the_work_was_cut(rows: list[Row]) -> None:
    assert sweep(work_max=1)[0] == sweep(work_max=10**9)[0] == rows


def test_a_row_says_what_the_oracle_says(rows: list[Row], traces: dict[str, Trace]) -> None:
    for one, row in zip(CONFIGURATIONS, rows, strict=True):
        judged = {seed: judge(traces[one.run(seed)]) for seed in SEEDS}
        for index, name in enumerate(PROPERTIES):
            found = [verdicts[index].verdict for verdicts in judged.values()]
            counts = row.verdicts[name]
            assert counts.holds == found.count("holds")
            assert counts.violated == found.count("violated")
        assert row.order_held == min(map(order_held, judged.values()), key=ORDERS.index)
        failing = {seed: broken(one, judged[seed]) for seed in SEEDS if broken(one, judged[seed])}
        assert row.failed == len(failing)
        if row.failure is not None:
            assert row.failure.seed == min(failing)
            first = failing[row.failure.seed][0]
            assert row.failure.property == first.property
            assert first.witness is not None
            for message in first.witness.messages:  # each judge has its own words for it
                assert message in row.failure.sentence


def broken(one: Configuration, verdicts: list[Verdict]) -> list[Verdict]:
    return [v for v in verdicts if v.verdict == "violated" and v.property in one.promises]


def test_without_a_majority_nothing_is_owed_and_so_nothing_is_violated() -> None:
    lost = Configuration("fifo", "majority_acks", 3, 4, faults="crash:1@5ms, crash:2@8ms")
    [row], _ = sweep(configurations=[lost])
    assert (row.failed, row.quiesced, outcome([row])) == (0, 0, "unknown")
    assert row.verdicts["validity"].violated == 0


def test_a_broken_promise_is_found_and_one_that_is_kept_is_not(rows: list[Row]) -> None:
    good, weak, mixed = rows
    assert (good.outcome, good.failed, good.failure) == ("holds", 0, None)
    assert weak.outcome == "violated"
    assert 0 < weak.failed < len(SEEDS)
    assert outcome([good, mixed]) == "holds"
    assert outcome(rows) == "violated"


def test_the_replay_shows_the_same_run(
    rows: list[Row], traces: dict[str, Trace], tmp_path: Path
) -> None:
    failure = rows[1].failure
    assert failure is not None
    program, *arguments = shlex.split(failure.replay)
    assert program == "ordercast"
    assert main([*arguments, "--trace", str(tmp_path / "again")]) == 0
    [again] = Trace.load(tmp_path / "again")
    swept = traces[WEAK.run(failure.seed)]
    name = again.manifest.run
    assert replace(swept.manifest, run=name) == again.manifest
    assert tuple(renamed(event, name) for event in swept.events) == again.events


def renamed(event: Event, run: str) -> Event:
    return msgspec.structs.replace(event, run=run)


def test_a_run_that_did_not_come_to_rest_leaves_its_promise_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = Configuration.plan
    monkeypatch.setattr(
        Configuration, "plan", lambda one, seed: replace(plan(one, seed), until_us=15_000)
    )
    [row], _ = sweep(configurations=[GOOD])
    assert row.quiesced < row.runs
    assert row.verdicts["validity"].unknown + row.verdicts["agreement"].unknown > 0
    assert row.outcome == outcome([row]) == "unknown"


def test_runs_without_messages_have_no_figures() -> None:
    [row], _ = sweep(configurations=[replace(GOOD, messages=0)])
    assert row.outcome == "holds"
    assert row.empty == row.runs
    assert row.copies_per_broadcast is None
    assert row.latency_us.p50 is row.hold_us.max is None


def test_what_is_done_is_not_done_again(tmp_path: Path, rows: list[Row]) -> None:
    assert sweep(tmp_path, range(5, 9), configurations=[GOOD])[1] == 4
    assert sweep(tmp_path, range(5, 12), configurations=[GOOD])[1] == 3
    assert sweep(tmp_path) == (rows, TOTAL - 7)
    assert sweep(tmp_path) == (rows, 0)
    assert sweep(tmp_path, range(7, 10)) == (sweep(seeds=range(7, 10))[0], 0)
    assert pq.read_table(tmp_path / "sweep" / "configurations.parquet")["runs"].to_pylist() == [
        *(3, 3, 3)
    ]


def test_traces_that_were_not_asked_for_before_are_made(tmp_path: Path, rows: list[Row]) -> None:
    sweep(tmp_path, range(5, 11))
    assert sweep(tmp_path, traces=True) == (rows, TOTAL)
    assert sweep(tmp_path, traces=True) == (rows, 0)
    assert sweep(tmp_path) == (rows, 0)  # some runs are there twice now, and count once
    assert len(Trace.load(tmp_path / "traces")) == TOTAL


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.sweep.test_conduct import sweep
replace, left = os.replace, int(sys.argv[2])
def replace_or_die(*names):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    replace(*names)
os.replace = replace_or_die
sweep(Path(sys.argv[1]), traces=True)
"""


@pytest.mark.parametrize("renames", [0, 1, 2, 5])
def test_a_sweep_that_was_killed_ends_like_one_that_was_not(
    renames: int, tmp_path: Path, rows: list[Row], traces: dict[str, Trace]
) -> None:
    """Killed just before a file gets its name: a trace's (first) or a block's (second)."""
    root = Path(__file__).parent.parent.parent
    command = [sys.executable, "-c", KILLED, str(tmp_path), str(renames)]
    assert subprocess.run(command, cwd=root).returncode == -signal.SIGKILL
    finished = list((tmp_path / "sweep" / "runs").glob("*.parquet"))
    assert len(finished) == renames // 2
    # Other blocks than before, so that an unfinished one cannot just be written over.
    again, runs = sweep(tmp_path, work_max=2 * SMALL, traces=True)
    assert again == rows
    assert runs == TOTAL - sum(pq.read_metadata(file).num_rows for file in finished)
    found = {trace.manifest.run: trace for trace in Trace.load(tmp_path / "traces")}
    assert found == traces


def test_two_sweeps_do_not_write_to_one_place(tmp_path: Path) -> None:
    with (
        Store(tmp_path, traces=False),
        pytest.raises(UsageError, match="another sweep is writing here"),
    ):
        sweep(tmp_path)
    sweep(tmp_path, range(1))


def test_a_full_disk_is_told_with_what_was_to_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        sweep(tmp_path, range(1))
    assert Path(caught.value.filename).parent == tmp_path / "sweep" / "runs"
    assert not list((tmp_path / "sweep" / "runs").iterdir())


def test_a_file_that_is_no_block_is_named(tmp_path: Path) -> None:
    sweep(tmp_path, range(1))
    (tmp_path / "sweep" / "runs" / "notes.parquet").write_text("buy milk")
    with pytest.raises(TraceError, match=r"notes\.parquet: not a finished block, remove it"):
        sweep(tmp_path)


def test_a_run_that_breaks_off_says_how_to_see_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise AssertionError("a bug")

    monkeypatch.setattr(simulated, "simulate_named", broken)
    with pytest.raises(OrdercastError, match="AssertionError: a bug; see it again: ordercast sim"):
        sweep()


def test_progress_is_told_run_by_run(tmp_path: Path) -> None:
    sweep(tmp_path, range(5, 8))
    heard: list[tuple[int, int]] = []
    sweep(tmp_path, progress=lambda done, total: heard.append((done, total)))
    assert heard[0] == (9, 30)
    assert heard[-1] == (30, 30)
    assert heard == sorted(set(heard))
