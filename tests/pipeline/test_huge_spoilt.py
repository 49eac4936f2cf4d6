"""A huge run in which something is wrong is split all the same, and nothing is lost by it.

As in `test_huge`, row groups are of a few rows and windows of a few messages.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from ordercast import oracle
from ordercast.pipeline.huge import Unhealthy
from ordercast.pipeline.huge.apart import by_process, set_apart
from ordercast.pipeline.huge.segments import scan_pieces
from ordercast.pipeline.huge.spans import both, in_order, size, union, without
from ordercast.pipeline.huge.table import Table
from ordercast.pipeline.huge.tally import Tally, windows
from ordercast.pipeline.source import inspect
from ordercast.trace.directory import Trace
from ordercast.trace.event import Event, Kind
from ordercast.trace.manifest import Manifest
from ordercast.trace.parquet import to_table
from ordercast.trace.verdicts import PROPERTIES

from ..conformance.random_traces import knotted_trace, random_trace
from ..seeds import often
from .broadcasts import broadcast, manifest_of, split, whole, write
from .spoiling import spoilt


def test_a_few_faults(tmp_path: Path) -> None:
    told: Counter[tuple[str, str]] = Counter()
    for seed in range(often(100, long=250)):
        random = Random(seed)
        events = spoilt(broadcast(seed), random)
        if not len(events):
            continue
        manifest = manifest_of(
            events, quiesced=random.random() < 0.8, complete=random.random() < 0.7
        )
        rows = random.choice([*range(1, 10), 40])
        path = write(tmp_path / str(seed), events, manifest, rows, outlined=seed % 2 == 0)
        expected = whole(path, manifest)
        if len(expected.flaws):
            continue
        found = split(path, manifest, random.choice([2, 4, 10, 2000]))
        assert found.verdicts.to_pylist() == expected.verdicts.to_pylist(), f"seed {seed}"
        assert found.seen == expected.seen
        assert sorted(found.violations.to_pylist(), key=str) == sorted(
            expected.violations.to_pylist(), key=str
        ), f"seed {seed}"
        told.update((row["property"], row["verdict"]) for row in found.verdicts.to_pylist())
    for name in PROPERTIES:
        assert told[name, "holds"] > 3
        assert told[name, "violated"] > 8
    assert told["causal", "unknown"] > 2
    assert told["total_gap_free", "unknown"] > 2


def test_wild_runs_against_the_oracle(tmp_path: Path) -> None:
    """Messages for some only, crashes, recoveries, forgeries, and cycles that no pair shows: all of
    it set apart, if need be."""
    told: Counter[tuple[str, str]] = Counter()
    for seed in range(120):
        trace = (knotted_trace if seed % 3 == 0 else random_trace)(seed, "r")
        events, manifest = to_table(trace.events), trace.manifest
        if not len(events):
            continue
        path = write(tmp_path / str(seed), events, manifest, seed % 4 + 1)
        if any(
            event.origin is not None and event.origin not in trace.members for event in trace.events
        ):
            with pytest.raises(Unhealthy, match="rows that cannot be used"):
                split(path, manifest, 2)
            continue
        found = split(path, manifest, [2, 10, 2000][seed % 3]).verdicts.to_pylist()
        for one, expected in zip(found, oracle.judge(trace), strict=True):
            witness = one["witness"] and (one["witness"]["process"], one["witness"]["messages"])
            wanted = expected.witness and (expected.witness.process, [*expected.witness.messages])
            mine = (one["verdict"], one["checked"], one["violations"], witness)
            theirs = (expected.verdict, expected.checked, expected.violations, wanted)
            assert mine == theirs, f"seed {seed}: {expected}"
            told[expected.property, expected.verdict] += 1
    assert all(told[name, "violated"] > 3 for name in PROPERTIES)
    assert told["total_acyclic", "violated"] > told["total_pairwise", "violated"]


def run_of(*logs: str) -> Trace:
    """Rows such as s1 (a send), s1>0,2 (to some), d0:1 (a delivery)."""
    events = []
    for p, log in enumerate(logs):
        for position, word in enumerate(log.split()):
            name, _, to = word[1:].partition(">")
            origin, _, number = name.rpartition(":")
            some = tuple(map(int, to.split(","))) if to else None
            kind: Kind = "send" if word[0] == "s" else "deliver"
            events.append(Event("r", p, position, kind, int(origin or p), int(number), some))
    return Trace.of(Manifest("r", tuple(f"p{p}" for p in range(len(logs))), quiesced=True), events)


@pytest.mark.parametrize("rows", [1, 3, 100])
def test_a_cycle_through_messages_that_are_as_they_should_be(tmp_path: Path, rows: int) -> None:
    """1:1 is before 3:1 at p0, that before 2:1 at p3, and that before 1:1 at p2. No two of these
    messages are in the logs of two processes in opposite orders, and nothing is wrong with 3:1."""
    many = " ".join(f"d3:{number}" for number in range(2, 9))
    sends = " ".join(f"s{number} d3:{number}" for number in range(2, 9))
    trace = run_of(
        f"d1:1 d3:1 {many}",
        f"s1>0,2 d3:1 {many}",
        "s1>2,3 d2:1 d1:1",
        f"s1 d3:1 d2:1 {sends}",
    )
    path = write(tmp_path / "trace", to_table(trace.events), trace.manifest, rows)
    found = {row["property"]: row for row in split(path, trace.manifest, 2000).verdicts.to_pylist()}
    for expected in oracle.judge(trace):
        one = found[expected.property]
        assert (one["verdict"], one["checked"], one["violations"]) == (
            expected.verdict,
            expected.checked,
            expected.violations,
        )
    assert found["total_pairwise"]["verdict"] == "holds"
    assert found["total_acyclic"]["witness"]["messages"] == ["1:1", "3:1", "2:1"]
    assert found["total_acyclic"]["witness"]["sentence"] == (
        "no one order fits: p0 delivered 1:1 before 3:1, p3 delivered 3:1 before 2:1, "
        "p2 delivered 2:1 before 1:1"
    )


def test_what_a_crashed_process_never_delivered_is_in_no_window(tmp_path: Path) -> None:
    """However long ago it crashed."""
    events = broadcast(11, steps=6000, size=4, crashes=0)
    kept = [
        row
        for row in events.to_pylist()
        if row["process"] != 2 or row["position"] < 40 or row["kind"] == "send"
    ]
    events = events.from_pylist(kept, events.schema)
    path = write(tmp_path / "trace", events, manifest_of(events, quiesced=True), 50)
    logs = by_process(scan_pieces([group.piece for group in inspect(path).groups], 4), 4)
    apart, names = set_apart(logs, [[]] * 4)
    assert not names
    cut = list(windows(Tally.of(logs, apart), 20))
    own = [sum(one.high) - sum(one.low) for one in cut]
    around = [len(Table(one, apart, with_ranks=False).turn) for one in cut]
    assert len(cut) > 10
    assert max(around) < sum(own) / 3


def test_a_process_far_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it delivers last was sent at the very beginning."""
    sends = " ".join(f"s{number} d0:{number}" for number in range(1, 101))
    late = " ".join(f"d0:{number}" for number in range(1, 101))
    mine = " ".join(f"s{number} d1:{number}" for number in range(1, 101))
    theirs = " ".join(f"d1:{number}" for number in range(1, 101))
    trace = run_of(f"{sends} {theirs}", f"{mine} {late}")
    path = write(tmp_path / "trace", to_table(trace.events), trace.manifest, 10)
    expected = whole(path, trace.manifest).verdicts
    assert split(path, trace.manifest, 20).verdicts == expected
    monkeypatch.setattr("ordercast.pipeline.huge.table.CELLS", 20)
    with pytest.raises(Unhealthy, match="too far behind the others"):
        split(path, trace.manifest, 20)


def test_too_much_to_set_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ordercast.pipeline.huge.apart.APART_MOST", 3)
    trace = run_of("s1 s2 s3 s4 s5 d0:1 d0:2 d0:3 d0:4 d0:5", "d0:5 d0:4 d0:3 d0:2 d0:1")
    path = write(tmp_path / "trace", to_table(trace.events), trace.manifest, 2)
    with pytest.raises(Unhealthy, match="too many messages out of order"):
        split(path, trace.manifest, 4)


def test_sets_of_numbers() -> None:
    assert union([(5, 7), (1, 2), (3, 3), (9, 8)]) == [(1, 3), (5, 7)]
    assert without([(1, 9)], [(0, 1), (3, 4), (9, 12)]) == [(2, 2), (5, 8)]
    assert both([(1, 4), (8, 9)], [(3, 8)]) == [(3, 4), (8, 8)]
    assert size([(1, 3), (5, 5)]) == 4


def test_what_is_late_is_left_out_rather_than_what_is_early() -> None:
    assert in_order([(1, 3), (5, 5), (4, 4), (6, 9)]) == [(1, 3), (5, 5), (6, 9)]
    assert in_order([(1, 3), (10, 10), (4, 8)]) == [(1, 3), (4, 8)]
    assert in_order([(4, 6), (1, 2)]) == [(4, 6)]
    assert in_order([]) == []
