"""A huge run that is split gives the same answers as one that is not.

Row groups of a few rows and windows of a few messages, so that whatever goes wrong lies across a
boundary somewhere.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from ordercast import pipeline
from ordercast.pipeline import arrange, engine
from ordercast.pipeline.conclude import conclude
from ordercast.pipeline.huge import Tally, Unhealthy, judge_window, scan_pieces, windows
from ordercast.pipeline.huge.window import _Table
from ordercast.pipeline.judging import RUNS, Judged, judge_rows
from ordercast.pipeline.kernels.window import EARLY, LATE
from ordercast.pipeline.rows import load
from ordercast.pipeline.source import inspect
from ordercast.trace.event import Event
from ordercast.trace.manifest import Manifest
from ordercast.trace.parquet import to_table
from ordercast.trace.verdicts import PROPERTIES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class Broadcast:
    """A group in which everyone delivers each origin's messages one after the other."""

    random: Random
    size: int
    causal: bool
    total: bool
    logs: list[list[tuple[str, int | None, int | None]]] = field(init=False)

    def __post_init__(self) -> None:
        self.logs = [[] for _ in range(self.size)]
        self.delivered = [[0] * self.size for _ in range(self.size)]
        self.needs: list[list[list[int]]] = [[] for _ in range(self.size)]
        self.order: list[int] = []

    def send(self, p: int) -> None:
        self.needs[p].append(self.delivered[p].copy())
        self.order.append(p)
        self.logs[p].append(("send", p, len(self.needs[p])))

    def deliver(self, p: int) -> bool:
        """Some message that p may deliver now, if there is one."""
        mine = self.delivered[p]
        ready = [o for o in range(self.size) if mine[o] < len(self.needs[o]) and self._may(p, o)]
        if self.total:
            ready = self.order[sum(mine) :][:1]
        if ready:
            origin = self.random.choice(ready)
            mine[origin] += 1
            self.logs[p].append(("deliver", origin, mine[origin]))
        return bool(ready)

    def _may(self, p: int, origin: int) -> bool:
        needs = self.needs[origin][self.delivered[p][origin]]
        return not self.causal or all(
            have >= need for have, need in zip(self.delivered[p], needs, strict=True)
        )


def broadcast(
    seed: int, *, steps: int | None = None, size: int | None = None, crashes: float = 0.003
) -> pa.Table:
    random = Random(seed)
    group = Broadcast(
        random,
        size=size or random.randint(1, 5),
        causal=random.random() < 0.9,
        total=random.random() < 0.2,
    )
    down: set[int] = set()
    slow = [random.random() for _ in range(group.size)]
    for _ in range(steps or random.choice([40, 80, 150, 500])):
        p = random.randrange(group.size)
        if p in down:
            continue
        if random.random() < crashes and group.size > 1:
            down.add(p)
            group.logs[p].append(("crash", None, None))
        elif random.random() < 0.15:
            group.send(p)
        elif random.random() < 0.4 + slow[p]:
            group.deliver(p)
        elif random.random() < 0.02:
            group.logs[p].append(("join", None, None))
    someone = random.randrange(group.size)  # who mostly ends up with everything
    while someone not in down and group.deliver(someone):
        pass
    return to_table(
        Event("r", p, position, *row)  # type: ignore[arg-type]
        for p, log in enumerate(group.logs)
        for position, row in enumerate(log)
    )


def write(directory: Path, events: pa.Table, manifest: Manifest, rows: int) -> Path:
    """One file per process, with row groups of a few rows."""
    (directory / "events").mkdir(parents=True)
    (directory / "manifest.jsonl").write_bytes(manifest.to_json())
    for p in pc.unique(events.column("process")).to_pylist():
        mine = events.filter(pc.equal(events.column("process"), p))
        pq.write_table(mine, directory / "events" / f"{p}.parquet", row_group_size=rows)
    return directory


def manifest_of(events: pa.Table, *, quiesced: bool) -> Manifest:
    size = pc.max(events.column("process")).as_py() + 1
    return Manifest("r", tuple(f"p{p}" for p in range(size)), quiesced=quiesced)


def whole(path: Path, manifest: Manifest) -> Judged:
    events, _ = load(group.piece for group in inspect(path).groups)
    runs = pa.Table.from_pylist(
        [
            {
                "run": "r",
                "names": manifest.processes,
                "size": len(manifest.processes),
                "quiesced": manifest.quiesced,
                "complete": True,
            }
        ],
        RUNS,
    )
    return judge_rows(events, runs)


def split(path: Path, manifest: Manifest, least: int) -> Judged:
    source, size = inspect(path), len(manifest.processes)
    tally = Tally.of(list(scan_pieces([group.piece for group in source.groups], size)), size)
    found = [judge_window(window, PROPERTIES) for window in windows(tally, least)]
    if not all(one.causal for one in found):
        raise Unhealthy
    return conclude(manifest, tally, found, PROPERTIES, source.rows)


def test_split_or_whole(tmp_path: Path) -> None:
    told: Counter[tuple[str, str]] = Counter()
    unhealthy = 0
    for seed in range(300):
        random = Random(seed)
        events = broadcast(seed)
        if not len(events):
            continue
        manifest = manifest_of(events, quiesced=random.random() < 0.8)
        path = write(tmp_path / str(seed), events, manifest, random.choice([*range(1, 10), 40]))
        expected = whole(path, manifest)
        try:
            found = split(path, manifest, random.choice([1, 2, 5, 1000]))
        except Unhealthy:
            unhealthy += 1
            continue
        assert found.verdicts.to_pylist() == expected.verdicts.to_pylist(), f"seed {seed}"
        assert found.seen == expected.seen
        assert sorted(found.violations.to_pylist(), key=str) == sorted(
            expected.violations.to_pylist(), key=str
        )
        told.update((row["property"], row["verdict"]) for row in found.verdicts.to_pylist())
    assert 0 < unhealthy < 100
    for name in ("total_pairwise", "total_acyclic", "total_gap_free", "synchronous"):
        assert told[name, "violated"] > 20
        assert told[name, "holds"] > 10
    for name in ("validity", "agreement", "uniform_agreement"):
        assert all(told[name, verdict] > 5 for verdict in ("holds", "violated", "unknown"))


def test_a_window_takes_only_rows_that_have_to_do_with_it(tmp_path: Path) -> None:
    """However large the row groups are in which they lie."""
    events = broadcast(11, steps=4000, size=4, crashes=0)
    path = write(tmp_path / "trace", events, manifest_of(events, quiesced=True), 200)
    pieces = [group.piece for group in inspect(path).groups]
    cut = list(windows(Tally.of(list(scan_pieces(pieces, 4)), 4), 5))
    assert len(cut) > 3
    tables = [_Table(one, with_ranks=False) for one in cut]
    segments = [part for one in cut for log in one.stretches for part in log.segments]
    entered = sum(len(done) for table in tables for done in table.done)
    assert entered < 0.8 * sum(part.end - part.begin for part in segments)
    for table in tables:
        for done in table.done:
            first, *_, last = np.where(done < 0, -1 - done, done)
            assert table.turn[first] != EARLY
            assert table.turn[last] != LATE


@pytest.fixture(scope="module")
def long_run() -> pa.Table:
    return broadcast(11, steps=4000, size=4, crashes=0)


@pytest.mark.parametrize("kind", ["in order", "rows shuffled", "swapped", "without a manifest"])
def test_spark_splits_a_run_that_is_large(
    spark: SparkSession,
    tmp_path: Path,
    long_run: pa.Table,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    """Also one that must be sorted first, and one that turns out not to be healthy."""
    events = long_run
    if kind == "swapped":  # two deliveries of one process and origin
        rows = events.to_pylist()
        mine = [r for r in rows if (r["process"], r["kind"], r["origin"]) == (1, "deliver", 2)]
        mine[7]["number"], mine[8]["number"] = mine[8]["number"], mine[7]["number"]
        events = pa.Table.from_pylist(rows, events.schema)
    path = write(tmp_path / "trace", events, manifest_of(events, quiesced=True), 300)
    if kind == "rows shuffled":
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
    monkeypatch.setattr(engine, "HUGE_ROWS", 1000)
    monkeypatch.setattr(engine, "_TASKS_PER_CORE", 20)
    monkeypatch.setattr(arrange, "STRETCH_BITS", 9)
    reasons: list[type[BaseException] | None] = []
    alone = engine._judge_alone

    def watched(*args: object) -> Judged:
        try:
            judged = alone(*args)  # type: ignore[arg-type]
        except BaseException as error:
            reasons.append(type(error))
            raise
        reasons.append(None)
        return judged

    monkeypatch.setattr(engine, "_judge_alone", watched)
    assert pipeline.judge(path, spark=spark, quiesced=True) == expected
    assert reasons == [Unhealthy if kind == "swapped" else None]
    violated = {one.property for one in expected.verdicts if one.verdict == "violated"}
    assert ("fifo" in violated) == (kind == "swapped")
