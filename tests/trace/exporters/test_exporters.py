"""What is written for other tools: exact on a small sample, and true on random traces."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from tests.conformance.random_traces import knotted_trace, random_trace
from tests.pipeline.builders import Run, run, write

from ordercast.errors import UsageError
from ordercast.oracle import judge
from ordercast.trace import Event, Trace
from ordercast.trace.exporters import FORMATS, Cut, causality_of, export_trace
from ordercast.trace.exporters.shiviz import stamps
from ordercast.trace.importers import Options, import_trace
from ordercast.trace.runs import OneRun

SAMPLE = run("r", "s1 d0:1", "d0:1 s1", "r1:1 r0:1 d0:1 d1:1 crash", names=["a", "b b", "c"])
SAFETY = ("no_duplication", "no_creation", "fifo", "causal", "total_pairwise", "synchronous")


def exported(tmp_path: Path, one: Run | Trace, format: str, cut: Cut | None = None) -> Path:
    trace = tmp_path / "trace"
    if not trace.exists():
        write(trace, [Run(one.manifest, one.events)])
    file = tmp_path / f"out.{format}"
    export_trace(OneRun(trace), file, format=format, cut=cut or Cut())
    return file


def timed(one: Run) -> Run:
    events = (msgspec.structs.replace(e, time_us=1_000 * e.position) for e in one.events)
    return Run(one.manifest, tuple(events))


def test_shiviz(tmp_path: Path) -> None:
    assert exported(tmp_path, SAMPLE, "shiviz").read_text().splitlines() == [
        *("sends 0:1", 'a {"a": 1}'),
        *("delivers 0:1", 'b_b {"a": 1, "b_b": 1}'),
        *("delivers 0:1", 'a {"a": 2}'),
        *("sends 1:1", 'b_b {"a": 1, "b_b": 2}'),
        *("receives 1:1", 'c {"c": 1}'),
        *("receives 0:1", 'c {"c": 2}'),
        *("delivers 0:1", 'c {"a": 1, "c": 3}'),
        *("delivers 1:1", 'c {"a": 1, "b_b": 2, "c": 4}'),
        *("crashes", 'c {"a": 1, "b_b": 2, "c": 5}'),
    ]


def test_shiviz_knows_what_came_through_a_part_that_was_cut_away(tmp_path: Path) -> None:
    file = exported(tmp_path, SAMPLE, "shiviz", Cut(processes=frozenset({0, 2})))
    assert file.read_text().splitlines()[-4:-2] == ["delivers 1:1", 'c {"a": 1, "c": 4}']


def pasts(events: tuple[Event, ...]) -> dict[tuple[int, int], set[tuple[int, int]]]:
    """For each event, all that happened before it, by walking every path."""
    sends = {e.message: (e.process, e.position) for e in events if e.kind == "send"}
    causes: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for event in events:
        at = (event.process, event.position)
        causes[at] = [p for p in causes if p[0] == at[0]]
        if event.kind == "deliver" and event.message in sends:
            causes[at].append(sends[event.message])
    found = {}
    for start in causes:
        seen: set[tuple[int, int]] = set()
        frontier = list(causes[start])
        while frontier:
            point = frontier.pop()
            if point not in seen:
                seen.add(point)
                frontier += causes[point]
        found[start] = seen
    return found


@pytest.mark.parametrize("make", [random_trace, knotted_trace])
@pytest.mark.parametrize("seed", range(30))
def test_clocks_are_a_certificate_of_what_happened_before(
    seed: int, make: Any, tmp_path: Path
) -> None:
    trace, random = make(seed, "r"), Random(seed)
    past = pasts(trace.events)
    if any(point in before for point, before in past.items()) or not trace.events:
        return  # It contradicts itself, and no clock can show that.
    run = OneRun(write(tmp_path / "t", [Run(trace.manifest, trace.events)]))
    some = [e for e in trace.events if random.random() < random.choice([0.3, 1])]
    clocks = stamps(causality_of(run), some)
    columns = sorted({event.process for event in some})
    for point, clock in clocks.items():
        known = past[point] | {point}
        assert clock == tuple(
            sum((e.process, e.position) in known for e in some if e.process == process)
            for process in columns
        )


def test_a_log_that_contradicts_itself_is_exported_all_the_same(tmp_path: Path) -> None:
    circular = run("r", "d1:1 s1 d0:2 s2", "d0:1 s1")
    for format in FORMATS:
        assert exported(tmp_path, circular, format).exists()


NAMED = {"send": r"sends (?<message>\S+)", "receive": r"delivers (?<message>\S+)"}


@pytest.mark.parametrize(("format", "words"), [("shiviz", NAMED), ("otlp", {})])
@pytest.mark.parametrize("seed", range(20))
def test_out_and_in_again_gives_the_same_verdicts(
    format: str, words: dict[str, str], seed: int, tmp_path: Path
) -> None:
    trace = knotted_trace(seed, "r")
    file = exported(tmp_path, trace, format)
    options = Options(run="r", quiesced=True, **words)
    imported = import_trace([file], tmp_path / "in", format=format, options=options)
    assert not [note for note in imported.report.notes if "wrong" in note]
    [again] = Trace.load(tmp_path / "in")
    got: dict[tuple[int, int], set[int]] = {}
    for event in trace.events:
        if event.kind == "deliver":
            got.setdefault(event.message, set()).add(event.process)
    meant = [
        msgspec.structs.replace(e, destinations=tuple(got.get(e.message, ())))
        if e.kind == "send"
        else e
        for e in trace.events
    ]
    before = judge(Trace.of(trace.manifest, meant), SAFETY)
    assert [(v.property, v.verdict) for v in judge(again, SAFETY)] == [
        (v.property, v.verdict) for v in before
    ]


def test_otlp(tmp_path: Path) -> None:
    file = exported(tmp_path, timed(SAMPLE), "otlp")
    exports = [json.loads(line)["resourceSpans"][0] for line in file.read_text().splitlines()]
    assert [e["resource"]["attributes"][1]["value"]["stringValue"] for e in exports] == [
        *("a", "b b", "c")
    ]
    spans = [span for export in exports for span in export["scopeSpans"][0]["spans"]]
    assert len({span["spanId"] for span in spans}) == 9
    sent = {(s["traceId"], s["spanId"]): s["name"] for s in spans if s["kind"] == 4}
    assert list(sent.values()) == ["sends 0:1", "sends 1:1"]
    for span in spans:
        for link in span["links"]:
            name = sent[link["traceId"], link["spanId"]]
            assert name.split()[1] == span["name"].split()[1]
    assert [(s["name"], s["kind"], len(s["links"])) for s in spans[4:]] == [
        ("receives 1:1", 5, 1),
        ("receives 0:1", 5, 1),
        ("delivers 0:1", 5, 1),
        ("delivers 1:1", 5, 1),
        ("crashes", 1, 0),
    ]
    assert spans[-1]["startTimeUnixNano"] == "4000000"


@pytest.mark.parametrize("format", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize("seed", range(4))
def test_rows_come_in_again_as_they_went_out(format: str, seed: int, tmp_path: Path) -> None:
    trace = random_trace(seed, "r")
    file = exported(tmp_path, trace, format)
    if format == "csv":
        import_trace([file], tmp_path / "in", format="table", options=Options(to="everyone"))
        [again] = Trace.load(tmp_path / "in")
        keys = ("process", "kind", "origin", "number", "destinations", "time_us")
        sent = [e for e in again.events if e.kind == "send"]
        meant = [e for e in trace.events if e.kind == "send"]
        assert [[getattr(e, k) for k in keys] for e in sent] == [
            [getattr(e, k) for k in keys] for e in meant
        ]
    else:
        [again] = Trace.load(file)
        assert again.events == trace.events


def perfetto(file: Path) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = json.loads(file.read_text())["traceEvents"]
    return records


def check_structure(records: list[dict[str, Any]], events: int, arrows: int) -> None:
    slices = [r for r in records if r["ph"] == "X"]
    assert len(slices) == events
    for track in {r["pid"] for r in slices}:
        own = [r for r in slices if r["pid"] == track]
        for one, two in pairwise(own):
            assert one["ts"] + one["dur"] <= two["ts"] + 1e-6
    starts = {r["id"]: r for r in records if r["ph"] == "s"}
    ends = {r["id"]: r for r in records if r["ph"] == "f"}
    assert starts.keys() == ends.keys()
    assert len(starts) == arrows == sum(r["ph"] == "s" for r in records)
    for id, start in starts.items():
        for end, word in ((start, "sends"), (ends[id], "delivers")):
            [inside] = [s for s in slices if (s["pid"], s["ts"]) == (end["pid"], end["ts"])]
            assert inside["name"] == f"{word} {start['name']}"
    for phase in "be":
        assert len({r["id"] for r in records if r["ph"] == phase}) == len(
            [r for r in records if r["ph"] == phase]
        )
    assert {r["id"] for r in records if r["ph"] == "b"} == {
        r["id"] for r in records if r["ph"] == "e"
    }


@pytest.mark.parametrize("one", [SAMPLE, timed(SAMPLE)], ids=["bare", "timed"])
def test_perfetto(one: Run, tmp_path: Path) -> None:
    records = perfetto(exported(tmp_path, one, "perfetto"))
    check_structure(records, events=9, arrows=4)
    assert [r["args"]["name"] for r in records if r["name"] == "process_name"] == ["a", "b b", "c"]
    held = [r for r in records if r["ph"] == "b"]
    assert [r["name"] for r in held] == ["1:1 held"]


def test_perfetto_has_the_times_of_the_log(tmp_path: Path) -> None:
    records = perfetto(exported(tmp_path, timed(SAMPLE), "perfetto"))
    assert [r["ts"] for r in records if r["ph"] == "X" and r["pid"] == 3] == [
        *(0, 1_000, 2_000, 3_000, 4_000)
    ]


@pytest.mark.parametrize("seed", range(15))
def test_every_arrow_has_both_ends(seed: int, tmp_path: Path) -> None:
    trace = random_trace(seed, "r")
    sent = {e.message for e in trace.events if e.kind == "send"}
    pairs = {(e.process, e.message) for e in trace.events if e.kind == "deliver"}
    records = perfetto(exported(tmp_path, trace, "perfetto"))
    check_structure(records, len(trace.events), sum(message in sent for _, message in pairs))


SMALL = run("r", "s1", "d0:1 crash", names=['a"', "b;"])


def test_dot(tmp_path: Path) -> None:
    assert exported(tmp_path, SMALL, "dot").read_text().splitlines() == [
        "digraph ordercast {",
        "  rankdir=LR; node [shape=box, style=rounded];",
        "  subgraph cluster_0 {",
        r'    label="a\"";',
        '    e0_0 [label="sends 0:1 @0"];',
        "    e0_0;",
        "  }",
        "  subgraph cluster_1 {",
        '    label="b;";',
        '    e1_0 [label="delivers 0:1 @0"];',
        '    e1_1 [label="crashes @1"];',
        "    e1_0 -> e1_1 [arrowhead=none];",
        "  }",
        '  e0_0 -> e1_0 [label="0:1", color=blue];',
        "}",
    ]


def test_mermaid(tmp_path: Path) -> None:
    assert exported(tmp_path, SMALL, "mermaid").read_text().splitlines() == [
        "sequenceDiagram",
        '  participant p0 as a"',
        "  participant p1 as b ",
        "  Note over p0: sends 0:1",
        "  p0-)p1: 0:1",
        "  Note over p1: crashes",
    ]


def test_csv(tmp_path: Path) -> None:
    assert exported(tmp_path, run("r", "s1>0,1", "d0:1"), "csv").read_text().splitlines() == [
        "run,process,position,kind,origin,number,destinations,time_us,bytes,control_bytes",
        'r,0,0,send,0,1,"[0,1]",,,',
        "r,1,0,deliver,0,1,,,,",
    ]


@pytest.mark.parametrize(
    ("cut", "kept"),
    [
        (Cut(processes=frozenset({1})), "1@0 1@1"),
        (Cut(messages=frozenset({(1, 1)})), "1@1 2@0 2@3"),
        (Cut(start_us=1_000, end_us=2_000), "0@1 1@1 2@1 2@2"),
        (Cut(start_us=4_000), "2@4"),
        (Cut(end_us=0), "0@0 1@0 2@0"),
        (Cut(around=frozenset({(1, 1)})), "1@1 2@0 2@3"),
        (Cut(around=frozenset({(1, 1)}), events=1), "1@0 1@1 2@0 2@1 2@2 2@3 2@4"),
        (Cut(processes=frozenset({2}), messages=frozenset({(0, 1)})), "2@1 2@2"),
    ],
)
def test_cuts(cut: Cut, kept: str, tmp_path: Path) -> None:
    [left] = Trace.load(exported(tmp_path, timed(SAMPLE), "jsonl", cut))
    assert " ".join(f"{e.process}@{e.position}" for e in left.events) == kept


@pytest.mark.parametrize("format", ["dot", "mermaid"])
def test_drawings_refuse_what_nobody_could_read(format: str, tmp_path: Path) -> None:
    many = run("r", " ".join(f"s{n}" for n in range(1, 302)))
    with pytest.raises(UsageError, match=r"more than 300 events, too many for .* --around"):
        exported(tmp_path, many, format)
    assert not list(tmp_path.glob("out*"))
