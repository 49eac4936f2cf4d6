"""A huge run that is split gives the same answers as one that is not.

Row groups of a few rows and windows of a few messages, so that whatever goes wrong lies across a
boundary somewhere.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ordercast import pipeline
from ordercast.errors import TraceError, UsageError
from ordercast.pipeline import alone, arrange, engine
from ordercast.pipeline.huge import columns
from ordercast.pipeline.huge.apart import by_process, set_apart
from ordercast.pipeline.huge.attempt import _neighbours
from ordercast.pipeline.huge.gathering import GATHER
from ordercast.pipeline.huge.groups import read
from ordercast.pipeline.huge.segments import scan_pieces
from ordercast.pipeline.huge.table import Table
from ordercast.pipeline.huge.tally import Tally, Window, windows
from ordercast.pipeline.kernels.entering import EARLY, LATE
from ordercast.pipeline.rows import Piece
from ordercast.pipeline.source import inspect

from ..seeds import often
from .broadcasts import broadcast, manifest_of, split, whole, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_split_or_whole(tmp_path: Path) -> None:
    told: Counter[tuple[str, str]] = Counter()
    for seed in range(often(90, long=180)):
        random = Random(seed)
        events = broadcast(seed)
        if not len(events):
            continue
        manifest = manifest_of(events, quiesced=random.random() < 0.8)
        rows = random.choice([*range(1, 10), 40])
        path = write(tmp_path / str(seed), events, manifest, rows, outlined=seed % 2 == 0)
        expected = whole(path, manifest)
        found = split(path, manifest, random.choice([2, 4, 10, 2000]))
        assert found.verdicts.to_pylist() == expected.verdicts.to_pylist(), f"seed {seed}"
        assert found.seen == expected.seen
        assert sorted(found.violations.to_pylist(), key=str) == sorted(
            expected.violations.to_pylist(), key=str
        )
        told.update((row["property"], row["verdict"]) for row in found.verdicts.to_pylist())
    for name in ("total_pairwise", "total_acyclic", "total_gap_free", "synchronous"):
        assert told[name, "violated"] > 10
        assert told[name, "holds"] > 5
    for name in ("validity", "agreement", "uniform_agreement"):
        assert all(told[name, verdict] > 5 for verdict in ("holds", "violated", "unknown"))


def test_a_window_takes_only_rows_that_have_to_do_with_it(tmp_path: Path) -> None:
    """However large the row groups are in which they lie."""
    events = broadcast(11, steps=4000, size=4, crashes=0)
    path = write(tmp_path / "trace", events, manifest_of(events, quiesced=True), 200)
    pieces = [group.piece for group in inspect(path).groups]
    logs = by_process(scan_pieces(pieces, 4), 4)
    apart, _ = set_apart(logs, [[]] * 4)
    cut = list(windows(Tally.of(logs, apart), 5))
    assert len(cut) > 3
    tables = [Table(one, apart, with_ranks=False) for one in cut]
    parts = [part for one in cut for log in one.stretches for part in log.parts]
    entered = sum(len(done) for table in tables for done in table.done)
    assert entered < 0.8 * sum(part.end - part.begin for part in parts)
    for table in tables:
        for done in table.done:
            first, *_, last = np.where(done < 0, -1 - done, done)
            assert table.turn[first] != EARLY
            assert table.turn[last] != LATE


def test_what_two_windows_share_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By whoever judges one right after the other; and again if the file has changed since."""
    events = broadcast(11, steps=4000, size=4, crashes=0)
    path = write(tmp_path / "trace", events, manifest_of(events, quiesced=True), 200)
    pieces = [group.piece for group in inspect(path).groups]
    logs = by_process(scan_pieces(pieces, 4), 4)
    apart, _ = set_apart(logs, [[]] * 4)
    first, second, *_ = windows(Tally.of(logs, apart), 5)
    seen: list[tuple[int, ...]] = []

    def reading(piece: Piece, names: Sequence[str]) -> pa.Table:
        assert piece.groups is not None
        seen.append(piece.groups)
        return read(piece, names)

    def judged(*those: Window) -> int:
        seen.clear()
        columns._LEFT.clear()
        for one in those:
            Table(one, apart, with_ranks=False)
        return len(seen)

    def parts(*those: Window) -> list[tuple[str, tuple[int, ...] | None]]:
        return [
            (part.piece.file, part.piece.groups)
            for one in those
            for log in one.stretches
            for part in log.parts
        ]

    monkeypatch.setattr(columns, "read", reading)
    both = parts(first, second)
    assert len(set(both)) < len(both)
    assert judged(first) + judged(second) == len(both)
    assert judged(first, second) == len(set(both))
    judged(first)
    for file in {Path(piece.file) for piece in pieces}:
        os.utime(file, (1, 1))
    seen.clear()
    Table(second, apart, with_ranks=False)
    assert len(seen) == len(parts(second))


def test_neighbours_go_to_the_same_worker() -> None:
    assert _neighbours(10, 2) == [0, 5, 1, 6, 2, 7, 3, 8, 4, 9]
    assert _neighbours(5, 2) == [0, 3, 1, 4, 2]
    assert _neighbours(3, 8) == [0, 1, 2]
    assert _neighbours(0, 2) == []


@pytest.fixture(scope="module")
def long_run() -> pa.Table:
    return broadcast(11, steps=4000, size=4, crashes=0)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand rows are huge."""
    monkeypatch.setattr(engine, "HUGE_ROWS", 1000)
    monkeypatch.setattr(alone, "_TASKS_PER_CORE", 20)
    monkeypatch.setattr(arrange, "STRETCH_ROWS", 500)


def swapped(events: pa.Table) -> pa.Table:
    """Two deliveries of one process and origin are the wrong way round, and a message is for some
    only."""
    rows = events.to_pylist()
    mine = [r for r in rows if (r["process"], r["kind"], r["origin"]) == (1, "deliver", 2)]
    mine[7]["number"], mine[8]["number"] = mine[8]["number"], mine[7]["number"]
    next(r for r in rows if (r["kind"], r["number"]) == ("send", 20))["destinations"] = [0, 2]
    return pa.Table.from_pylist(rows, events.schema)


@pytest.mark.parametrize(
    "kind", ["in order", "shuffled", "swapped", "swapped and shuffled", "without a manifest"]
)
def test_spark_splits_a_run_that_is_large(
    spark: SparkSession,
    tmp_path: Path,
    long_run: pa.Table,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    kind: str,
) -> None:
    """Also one that must be sorted first, and one in which something is wrong."""
    events = swapped(long_run) if "swapped" in kind else long_run
    path = write(tmp_path / "trace", events, manifest_of(events, quiesced=True), 300)
    if "shuffled" in kind:
        order = list(range(len(events)))
        Random(3).shuffle(order)
        for file in (path / "events").iterdir():
            file.unlink()
        mixed = events.take(pa.array(order))
        pq.write_table(mixed, path / "events" / "all.parquet", row_group_size=500)
    if kind == "without a manifest":
        (path / "manifest.jsonl").unlink()
    expected = pipeline.judge(path, spark=spark, quiesced=True)
    assert expected.events == len(events)
    request.getfixturevalue("small")
    monkeypatch.setattr(engine, "_judge_items", None)  # nobody gathers the run
    assert pipeline.judge(path, spark=spark, quiesced=True) == expected
    violated = {one.property for one in expected.verdicts if one.verdict == "violated"}
    assert ("fifo" in violated) == ("swapped" in kind)


def test_what_cannot_be_split_is_gathered_if_there_is_room(
    spark: SparkSession,
    tmp_path: Path,
    long_run: pa.Table,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    events = swapped(long_run)
    manifest = manifest_of(events, quiesced=True, complete=False)
    path = write(tmp_path / "trace", events, manifest, 300)
    expected = pipeline.judge(path, spark=spark)
    request.getfixturevalue("small")
    monkeypatch.setattr("ordercast.pipeline.huge.apart.APART_MOST", 0)
    assert pipeline.judge(path, spark=spark) == expected
    monkeypatch.setattr("ordercast.pipeline.huge.gathering.EVENT_BYTES", 2**30)
    spark.conf.set(GATHER, "7.5")
    try:
        with pytest.raises(TraceError) as refused:
            pipeline.judge(path, spark=spark)
        spark.conf.set(GATHER, "plenty")
        with pytest.raises(UsageError, match="must be a number of GiB, not 'plenty'"):
            pipeline.judge(path, spark=spark)
    finally:
        spark.conf.unset(GATHER)
    assert str(refused.value) == (
        "run 'r' has too many messages out of order, missing, repeated or not for everyone, and "
        "holes in its log, so it cannot be split; judging it whole takes about "
        f"{len(events)}.0 GiB in one task, and 7.5 GiB are allowed: judge a part of it, or "
        "allow more with "
        "--conf spark.ordercast.gather=GIB"
    )
