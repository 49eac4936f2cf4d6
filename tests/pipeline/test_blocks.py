"""A huge run of messages for some members only, judged in blocks, gives the same answers as whole.

Blocks of a few rows, so that whatever goes wrong lies across a border somewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from ordercast import pipeline
from ordercast.pipeline.blocks import judging, sketches
from ordercast.pipeline.huge import Unhealthy

from .broadcasts import manifest_of, whole, write
from .multicasts import (
    LOGS,
    Row,
    in_blocks,
    multicast,
    only_in_blocks,
    place,
    steady,
    table_of,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SEEDS = 60
pytestmark = pytest.mark.timeout(600)  # on busy cores, compiling takes minutes


def test_in_blocks_or_whole(
    tmp_path: Path, blocks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: Counter[tuple[str, str]] = Counter()
    for seed in range(SEEDS):
        random = Random(seed)
        events = multicast(seed)
        manifest = manifest_of(events, quiesced=random.random() < 0.6)
        monkeypatch.setattr(sketches, "EVERY", random.choice([1, 2, 4, 8]))
        monkeypatch.setattr(judging, "BLOCK_ROWS", random.choice([120, 200, 300]))
        path = write(tmp_path / str(seed), events, manifest, random.choice([7, 20, 40, 100]))
        expected = whole(path, manifest)
        try:
            found = in_blocks(path, manifest)
        except Unhealthy:
            told["blocks", "not possible"] += 1
            continue
        told["blocks", "more than three"] += blocks[-1] > 3
        assert found.verdicts.to_pylist() == expected.verdicts.to_pylist(), f"seed {seed}"
        assert found.seen == expected.seen
        assert sorted(found.violations.to_pylist(), key=str) == sorted(
            expected.violations.to_pylist(), key=str
        )
        told.update((row["property"], row["verdict"]) for row in found.verdicts.to_pylist())
    assert told["blocks", "more than three"] > 20
    for name in ("no_duplication", "no_creation", "fifo", "causal"):
        assert all(told[name, verdict] > 6 for verdict in ("holds", "violated")), told
    for name in ("total_pairwise", "total_acyclic", "total_gap_free"):
        assert all(told[name, verdict] > 6 for verdict in ("holds", "violated")), told
    for name in ("validity", "agreement", "uniform_agreement"):
        assert all(told[name, verdict] > 2 for verdict in ("holds", "violated", "unknown")), told


def number_backwards(logs: LOGS, number: int = 60) -> None:
    first, second = (logs[0].index(("send", 0, n, (1, 2))) for n in (number, number + 1))
    logs[0][first], logs[0][second] = logs[0][second], logs[0][first]


def number_backwards_in_a_row_group(logs: LOGS) -> None:
    number_backwards(logs, 55)


def deliver_first(logs: LOGS) -> None:
    """Before it is sent, and its sender has heard of that."""
    logs[1].insert(place(logs, 1, (0, 20)), logs[1].pop(place(logs, 1, (0, 160))))


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (number_backwards, "not numbered in the order"),
        (number_backwards_in_a_row_group, "not numbered in the order"),
        (deliver_first, "too far apart"),
    ],
)
def test_what_no_cut_fits_is_noticed(
    tmp_path: Path,
    blocks: list[int],
    monkeypatch: pytest.MonkeyPatch,
    spoil: Callable[[LOGS], None],
    why: str,
) -> None:
    monkeypatch.setattr(sketches, "EVERY", 4)
    monkeypatch.setattr(judging, "BLOCK_ROWS", 100)
    logs = steady(600)
    manifest = manifest_of(table_of(logs), quiesced=True)
    path = write(tmp_path / "fine", table_of(logs), manifest, 20)
    assert in_blocks(path, manifest).verdicts == whole(path, manifest).verdicts
    assert blocks == [17]
    spoil(logs)
    with pytest.raises(Unhealthy, match=why):
        in_blocks(write(tmp_path / "spoilt", table_of(logs), manifest, 20), manifest)


def straggler(at: int) -> LOGS:
    """At some moment, the first process delivers a message of its own long after the second one
    has, which delivered that before another one."""
    logs: LOGS = [[] for _ in range(3)]
    sent = [0, 0, 0]

    def send(p: int, *readers: int) -> tuple[int, int]:
        sent[p] += 1
        logs[p].append(("send", p, sent[p], readers))
        return p, sent[p]

    def deliver(p: int, message: tuple[int, int]) -> None:
        logs[p].append(("deliver", *message, None))

    for i in range(200):
        if i == at:
            other = send(2, 0, 1)
            deliver(0, other)
            late = send(0, 0, 1)
            deliver(1, late)
            deliver(1, other)
        if i == at + 12:
            deliver(0, late)
        message = send(i % 3, (i + 1) % 3, (i + 2) % 3)
        deliver((i + 1) % 3, message)
        deliver((i + 2) % 3, message)
    return logs


def test_a_witness_may_have_to_do_with_a_message_of_the_next_block(
    tmp_path: Path, blocks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sketches, "EVERY", 4)
    monkeypatch.setattr(judging, "BLOCK_ROWS", 100)
    monkeypatch.setattr(judging, "MARGINS", (4,))
    right = 0
    for at in range(40, 80):
        events = table_of(straggler(at))
        manifest = manifest_of(events, quiesced=True)
        path = write(tmp_path / str(at), events, manifest, 100)
        try:
            found = in_blocks(path, manifest)
        except Unhealthy:
            continue
        right += 1
        assert found.verdicts.to_pylist() == whole(path, manifest).verdicts.to_pylist(), at
    assert right > 20


def tracks(many: int, every: int) -> LOGS:
    """Two processes get some messages in quite another order, two others swap a few; and now and
    then a message is for all four. So between two of these, all are in one knot, though in a block
    without one the swaps seem to be knots of their own."""
    logs: LOGS = [[] for _ in range(4)]
    sent = {0: 0, 2: 0}

    def send(p: int, *readers: int) -> Row:
        sent[p] += 1
        logs[p].append(("send", p, sent[p], readers))
        return "deliver", p, sent[p], None

    tangled, swapped = [], []
    for i in range(1, many):
        tangled.append(send(0, 0, 1))
        swapped.append(send(2, 2, 3))
        logs[0].append(tangled[-1])
        logs[2].append(swapped[-1])
        if i % 2 == 0:
            logs[1] += [tangled[-1], *tangled[-4:-3]]
        if i % 4 != 1:
            logs[3] += swapped[-1:] if i % 4 != 2 else [swapped[-1], swapped[-2]]
        if i % every == 0:
            message = send(0, 0, 1, 2, 3)
            for log in logs:
                log.append(message)
        elif i % 4 == 0:  # so that the others know how far these are
            message = send(0, 2, 3)
            logs[2].append(message)
            logs[3].append(message)
    return logs


@pytest.mark.parametrize("every", [9, 40, 110])
def test_knots_of_several_blocks_take_in_others(
    tmp_path: Path, blocks: list[int], monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    monkeypatch.setattr(sketches, "EVERY", 4)
    monkeypatch.setattr(judging, "BLOCK_ROWS", 150)
    events = table_of(tracks(300, every))
    manifest = manifest_of(events, quiesced=False)
    path = write(tmp_path / "trace", events, manifest, 100)
    assert (
        in_blocks(path, manifest).verdicts.to_pylist() == whole(path, manifest).verdicts.to_pylist()
    )
    assert blocks[-1] > 4


def test_someone_who_starts_late_or_ends_early_does_not_make_a_block_large(
    tmp_path: Path, blocks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sketches, "EVERY", 4)
    monkeypatch.setattr(judging, "BLOCK_ROWS", 100)
    everything = steady(600)
    for name, ends in {"early": 300, "late": 0}.items():
        logs = [log.copy() for log in everything]
        if name == "early":
            # The third one crashes half-way: what it would have sent after that, nobody gets.
            logs[2] = [*logs[2][:ends], ("crash", None, None, None)]
            sent = {row[2] for row in logs[2] if row[0] == "send"}
            for p in (0, 1):
                logs[p] = [r for r in logs[p] if (r[0], r[1]) != ("deliver", 2) or r[2] in sent]
        else:
            first = next(i for i, row in enumerate(logs[2]) if row[0] == "send" and row[2] == 100)
            kept = {(r[1], r[2]) for r in logs[2][first:]}
            logs[2] = logs[2][first:]
            for p in (0, 1):
                logs[p] = [
                    _narrowed(row, kept) for row in logs[p] if row[1] != 2 or row[1:3] in kept
                ]
        manifest = manifest_of(table_of(logs), quiesced=True)
        path = write(tmp_path / name, table_of(logs), manifest, 20)
        blocks.clear()
        assert in_blocks(path, manifest).verdicts == whole(path, manifest).verdicts
        assert blocks[-1] > 8, name


def test_logs_of_a_few_rows_have_but_one_look(
    tmp_path: Path, blocks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two more join at the very end, and get the last message of each of the others."""
    monkeypatch.setattr(sketches, "EVERY", 4)
    monkeypatch.setattr(judging, "BLOCK_ROWS", 100)
    logs = steady(600)
    for log in logs:
        at = log.index(next(row for row in log if row[0] == "send" and row[2] == 200))
        kind, origin, number, readers = log[at]
        log[at] = kind, origin, number, (*(readers or ()), 3, 4)
    last: list[Row] = [("deliver", p, 200, None) for p in range(3)]
    logs += [last, last[::-1]]
    manifest = manifest_of(table_of(logs), quiesced=True)
    path = write(tmp_path / "trace", table_of(logs), manifest, 20)
    assert in_blocks(path, manifest).verdicts == whole(path, manifest).verdicts
    assert blocks[-1] > 8


def _narrowed(row: Row, kept: set[tuple[int | None, int | None]]) -> Row:
    """Not for the third one, if that was not there."""
    kind, origin, number, readers = row
    if kind == "send" and readers and (origin, number) not in kept:
        return kind, origin, number, tuple(q for q in readers if q != 2)
    return row


@pytest.mark.parametrize("described", [True, False])
def test_spark_judges_a_large_run_in_blocks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, described: bool
) -> None:
    events = multicast(5, steps=4000, size=4)
    path = write(tmp_path / "trace", events, manifest_of(events, quiesced=True), 300)
    if not described:
        (path / "manifest.jsonl").unlink()
    expected = pipeline.judge(path, spark=spark)
    only_in_blocks(monkeypatch)
    assert pipeline.judge(path, spark=spark) == expected


@pytest.mark.parametrize("flaw", ["null", "stranger"])
def test_destinations_that_cannot_be_used(tmp_path: Path, blocks: list[int], flaw: str) -> None:
    rows = table_of(steady(300)).to_pylist()
    next(r for r in rows if r["number"] == 40)["destinations"] = [None if flaw == "null" else 7]
    events = pa.Table.from_pylist(rows, table_of([]).schema)
    manifest = manifest_of(events, quiesced=True)
    why = "cannot be used" if flaw == "null" else "its manifest does not name"
    with pytest.raises(Unhealthy, match=why):
        in_blocks(write(tmp_path / "t", events, manifest, 20), manifest)
