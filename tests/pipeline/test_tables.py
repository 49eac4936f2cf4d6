"""The result tables: what is in them, in Spark and on disk, and that nothing half-done shows."""

from __future__ import annotations

import re
import tracemalloc
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ordercast import pipeline
from ordercast.errors import TraceError, UsageError
from ordercast.pipeline import tables
from ordercast.pipeline.findings import SHOWN, Findings
from ordercast.pipeline.options import Options
from ordercast.pipeline.record import read_record
from ordercast.pipeline.results import TABLES, Results
from ordercast.pipeline.settings import SHORT_JOBS
from ordercast.pipeline.tables import open_directory
from ordercast.trace.verdicts import PROPERTIES, Judgement, Verdict, order_held

from ..conformance.random_traces import random_trace
from ..conftest import set_for_a_while
from .builders import run, write
from .cases import CASES
from .test_growing import add, damage, parts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("compiled")

DOCUMENTED = Path(__file__).parents[2] / "docs" / "results.md"
INTERPRETED = {key: value for key, value in SHORT_JOBS.items() if key.startswith("spark.sql.")}
"""As it is where there is little to read, and in half of the time."""
TRACES = [random_trace(seed, f"run {seed}") for seed in range(12)]


def trace_at(directory: Path, format: str = "parquet") -> Path:
    """Traces with times, bytes and receives."""
    return write(directory, TRACES, format)  # type: ignore[arg-type]


def contents(directory: Path) -> dict[str, list[str]]:
    """All rows of all tables, in an order of their own."""
    there = [name for name in TABLES if (directory / name).exists()]
    return {name: told(pq.read_table(directory / name)) for name in there}


def told(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


@pytest.fixture(scope="module")
def directory(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its name has what means something to Spark's file patterns, or to readers of partitions."""
    place = tmp_path_factory.mktemp("tables")
    output = place / "run=7" / "odd [name], {50%20} *?"
    pipeline.examine(trace_at(place / "trace"), spark=spark, output=output)
    return output


def test_every_table_is_there_and_documented(directory: Path) -> None:
    assert {path.name for path in directory.iterdir()} == {"results.json", *TABLES} - {"flaws"}
    sections = re.split(r"^## ", DOCUMENTED.read_text(), flags=re.MULTILINE)
    for name, schema in TABLES.items():
        [section] = [text for text in sections if text.startswith(f"`{name}`")]
        columns = [
            word
            for cell in re.findall(r"^\| (`.+?) \|", section, re.MULTILINE)
            for word in re.findall(r"`(\w+)`", cell)
        ]
        assert columns == schema.names
        if name != "flaws":
            assert pq.read_schema(directory / name / "part-0001.parquet").equals(schema)


def test_a_notebook_gets_the_same_from_dataframes(spark: SparkSession, directory: Path) -> None:
    events = spark.read.parquet(str(directory.parents[1] / "trace" / "events"))
    manifests = [trace.manifest for trace in TRACES]
    rows = [(m.run, list(m.processes), len(m.processes), m.quiesced, m.complete) for m in manifests]
    names = "run string, names array<string>, size int, quiesced boolean, complete boolean"
    results = pipeline.verify(spark, events.repartition(3), spark.createDataFrame(rows, names))
    stored = pipeline.read_results(spark, directory)
    for name in TABLES:
        ours, theirs = results.table(name), stored.table(name)
        assert ours.columns == theirs.columns == TABLES[name].names
        if name == "runs":  # only files have a manifest
            ours, theirs = ours.drop("manifest"), theirs.drop("manifest")
        assert told(ours.toArrow()) == told(theirs.toArrow()), name
    results.release()


def test_a_trace_that_grew_gives_the_tables_of_one_that_did_not(
    spark: SparkSession, tmp_path: Path, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As lines, as columns or as both. Only new files are read, and all runs are told of."""
    trace, out = tmp_path / "trace", tmp_path / "out"
    at_once = pipeline.examine(directory.parents[1] / "trace", spark=spark, output=directory)
    old, new = TRACES[:7], TRACES[7:]
    files = [add(trace, "a.jsonl", old)]
    with contextmanager(set_for_a_while)(spark, INTERPRETED):
        pipeline.examine(trace, spark=spark, output=out)
    files += [add(trace, "b.parquet", new[:2]), add(trace, "c.jsonl", new[2:])]
    damage(files[0])
    assert pipeline.examine(trace, spark=spark, output=out) == at_once
    assert contents(out) == contents(directory)
    one, two = parts(out)
    assert (one.runs, two.runs) == (len(old), len(new))
    assert two.events == sum(len(trace.events) for trace in new)
    assert sorted(two.files) == [str(file.resolve()) for file in files[1:]]

    for file in files:
        damage(file)
    monkeypatch.setattr(pipeline, "session", None)  # it is not needed for what is known
    assert pipeline.examine(trace, output=out) == at_once
    assert len(parts(out)) == 2


@pytest.fixture(scope="module")
def findings(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Findings:
    """Of all cases, as columns; `judgement` has them as lines."""
    path = write(tmp_path_factory.mktemp("cases") / "t", [case.run for case in CASES], "parquet")
    return pipeline.examine(path, spark=spark)


def test_each_run_says_what_it_held_and_promised(findings: Findings, judgement: Judgement) -> None:
    rows = {row["run"]: row for row in findings.runs.to_pylist()}
    assert list(rows) == list(judgement.promises)
    for name, row in rows.items():
        verdicts = [one for one in judgement.verdicts if one.run == name]
        alone = Judgement(1, 0, tuple(verdicts), judgement.promises)
        assert row["order_held"] == order_held(verdicts)
        assert tuple(row["promised"]) == judgement.promises[name]
        assert row["outcome"] == alone.outcome
    assert {row["order_held"] for row in rows.values()} == {
        "async",
        "fifo",
        "causal",
        "synchronous",
    }
    assert {row["outcome"] for row in rows.values()} == {"holds", "violated", "unknown"}


def test_a_summary_adds_up(findings: Findings, judgement: Judgement) -> None:
    summary = findings.summary()
    assert (summary.runs, summary.events) == (judgement.runs, judgement.events)
    assert (summary.order_held, summary.outcome) == (judgement.order_held, judgement.outcome)
    assert [tally.property for tally in summary.tallies] == list(PROPERTIES)
    for tally in summary.tallies:
        mine = [one for one in judgement.verdicts if one.property == tally.property]
        for word in ("holds", "violated", "unknown"):
            assert getattr(tally, word) == sum(one.verdict == word for one in mine)
        assert tally.checked == sum(one.checked for one in mine)
        assert tally.violations == sum(one.violations for one in mine)
    bad = [
        one
        for one in judgement.verdicts
        if one.property in judgement.promises[one.run] and one.verdict != "holds"
    ]
    bad.sort(key=lambda one: one.verdict == "unknown")
    assert summary.worst == tuple(bad[:SHOWN])
    assert summary.broken == len(bad)


def test_objects_and_rows_say_the_same(findings: Findings, judgement: Judgement) -> None:
    objects = findings.judgement().verdicts
    assert {len(one.witness.messages) for one in objects if one.witness} >= {1, 2, 3}
    assert objects == msgspec.convert(list(findings.rows()), tuple[Verdict, ...])
    assert objects == judgement.verdicts


def test_nothing_is_built_run_by_run() -> None:
    """A hundred thousand runs stay in Arrow, whose memory is none of Python's."""
    size = 100_000
    names = pa.array([f"run {n:06}" for n in range(size)])
    told = {
        "property": "fifo",
        "verdict": "violated",
        "checked": 9,
        "violations": 1,
        "witness": None,
    }
    verdicts = {"run": names, **{key: pa.repeat(pa.scalar(v), size) for key, v in told.items()}}
    verdicts["promised"] = pa.repeat(True, size)
    seen = {"run": names, "events": pa.repeat(9, size), "order_held": pa.repeat("async", size)}
    seen |= {"outcome": pa.repeat("violated", size)}
    findings = Findings.of(
        pa.table(verdicts).cast(TABLES["verdicts"]), pa.table(seen), TABLES["flaws"].empty_table()
    )
    tracemalloc.start()
    summary = findings.summary()
    streamed = sum(1 for _ in findings.rows())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (summary.broken, summary.events, streamed) == (size, 9 * size, size)
    assert peak < 8_000_000, "many of them were objects at once"


def test_what_is_asked_for_binds_every_run(spark: SparkSession, tmp_path: Path) -> None:
    """An order overrides promises, and only what is judged counts."""
    runs = [run("a", "s1 d0:1"), run("b", "s1 d0:1", order="unordered")]
    findings = pipeline.examine(
        write(tmp_path / "t", runs), spark=spark, order="fifo", properties=["causal", "fifo"]
    )
    assert findings.runs["promised"].to_pylist() == [["fifo"], ["fifo"]]
    assert findings.verdicts["property"].to_pylist() == ["fifo", "causal"] * 2
    assert findings.verdicts["promised"].to_pylist() == [True, False] * 2
    with pytest.raises(UsageError, match="there is no property 'fifu'"):
        pipeline.examine(tmp_path / "t", properties=["fifu"])


def test_the_order_held_is_of_what_was_judged(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "trace", [case.run for case in CASES], "parquet")
    findings = pipeline.examine(path, spark=spark, properties=["causal", "synchronous"])
    verdicts: dict[str, list[Verdict]] = {}
    for one in findings.verdicts.select(list(Verdict.__struct_fields__[:5])).to_pylist():
        verdicts.setdefault(one["run"], []).append(Verdict(**one))
    held = {row["run"]: row["order_held"] for row in findings.runs.to_pylist()}
    assert held == {name: order_held(those) for name, those in verdicts.items()}
    assert set(held.values()) == {"async", "causal", "synchronous"}


def interrupted(*_: Any) -> None:
    raise KeyboardInterrupt


@pytest.mark.usefixtures("judged_here")
def test_a_verify_that_is_killed_leaves_the_old_tables(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = {name: TABLES[name] for name in ("verdicts", "runs", "flaws")}  # as costs take long
    monkeypatch.setattr(tables, "TABLES", few)
    path = write(tmp_path / "t", [run("a", "s1 d0:1")], "parquet")
    pipeline.examine(path, spark=spark, output=tmp_path / "out")
    before = contents(tmp_path / "out")
    write(tmp_path / "more", [run("b", "s1 d0:1")], "parquet")
    for doomed in ("write_record", "_write"):  # when all is there but the record; with half a table
        with monkeypatch.context() as patch:
            patch.setattr(tables, doomed, interrupted)
            if doomed == "_write":
                (tmp_path / "out" / "runs" / ".part-0002.parquet").write_bytes(b"PAR1 and no m")
            with pytest.raises(KeyboardInterrupt):
                pipeline.examine(tmp_path / "more", spark=spark, output=tmp_path / "out")
        stored = pipeline.read_results(spark, tmp_path / "out")
        assert {name: told(stored.table(name).toArrow()) for name in before} == before
    pipeline.examine(tmp_path / "more", spark=spark, output=tmp_path / "out")
    files = sorted(str(file.relative_to(tmp_path / "out")) for file in tmp_path.glob("out/*/*"))
    assert files == sorted(f"{name}/part-000{n}.parquet" for name in before for n in (1, 2))
    runs = pipeline.read_results(spark, tmp_path / "out").table("runs")
    assert sorted(row["run"] for row in runs.collect()) == ["a", "b"]


def test_a_refused_trace_leaves_no_directory(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "t", [run("a", "s1 s1")])
    with pytest.raises(TraceError, match="two send rows for 0:1"):
        pipeline.examine(path, spark=spark, output=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("doomed", ["_write", "write_record"])
@pytest.mark.usefixtures("judged_here")
def test_a_first_verify_that_is_interrupted_leaves_no_directory(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, doomed: str
) -> None:
    def half(file: Path, *_: Any) -> None:
        if file.parent.name == "runs":
            raise KeyboardInterrupt
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"PAR1 and no more")

    few = {name: TABLES[name] for name in ("verdicts", "runs", "flaws")}
    monkeypatch.setattr(tables, "TABLES", few)
    monkeypatch.setattr(tables, doomed, half if doomed == "_write" else interrupted)
    path = write(tmp_path / "t", [run("a", "s1 d0:1")], "parquet")
    with pytest.raises(KeyboardInterrupt):
        pipeline.examine(path, spark=spark, output=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("judged_here")
def test_judging_all_again_in_vain_takes_nothing_away(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = {name: TABLES[name] for name in ("verdicts", "runs", "flaws")}
    monkeypatch.setattr(tables, "TABLES", few)
    path = write(tmp_path / "t", [run("a", "s1 d0:1")], "parquet")
    pipeline.examine(path, spark=spark, output=tmp_path / "out")
    before = sorted((tmp_path / "out").rglob("*"))
    monkeypatch.setattr(tables, "write_record", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pipeline.examine(path, spark=spark, output=tmp_path / "out", again=True)
    assert sorted((tmp_path / "out").rglob("*")) == before


def test_who_comes_second_takes_nothing_away(tmp_path: Path) -> None:
    with open_directory(tmp_path / "out", Options(), again=False):
        with (
            pytest.raises(UsageError, match="another verify is writing here"),
            open_directory(tmp_path / "out", Options(), again=False),
        ):
            pass
        assert (tmp_path / "out").exists()


def test_two_cannot_write_at_once(tmp_path: Path) -> None:
    with (
        open_directory(tmp_path / "out", Options(), again=False),
        pytest.raises(UsageError, match="another verify is writing here"),
        open_directory(tmp_path / "out", Options(), again=False),
    ):
        pass


def test_a_directory_that_is_none_of_ours(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="there are no results of verify --output here"):
        pipeline.read_results(spark, tmp_path)
    (tmp_path / "results.json").write_text("{}")
    with pytest.raises(TraceError, match="not what verify --output has written"):
        read_record(tmp_path)


def test_results_can_be_asked_for_in_any_order(spark: SparkSession) -> None:
    """Costs need the events, verdicts do not: a trace that nobody measures is read once."""
    parts = spark.createDataFrame([], "part string, payload binary")

    def never() -> Any:
        raise AssertionError("nobody asked for costs")

    results = Results(spark, parts, never)
    assert results.table("verdicts").count() == 0
    with pytest.raises(AssertionError):
        results.table("costs")
    results.release()


def test_a_manifest_is_kept_as_a_digest(directory: Path) -> None:
    found = pq.read_table(directory / "runs")["manifest"].to_pylist()
    assert len(set(found)) == len(TRACES)
    assert all(re.fullmatch(r"[0-9a-f]{16}", one) for one in found)


EVENTS = "run string, process int, position long, kind string, origin int, number long"
ROW = ("r", 0, 0, "send", 0, 1)


@pytest.mark.parametrize(
    ("rows", "columns", "sentence"),
    [
        ([("r", 0, 0, "sent", 0, 1)], EVENTS, "events of run 'r': .* there is no kind 'sent'"),
        ([ROW[:-1]], EVENTS.rpartition(",")[0], "events: the column 'number' is missing"),
        ([("r", "a", *ROW[2:])], EVENTS.replace("int", "string", 1), "'process' is of type string"),
    ],
)
def test_a_notebook_is_told_what_cannot_be_used(
    spark: SparkSession, rows: list[tuple[Any, ...]], columns: str, sentence: str
) -> None:
    events = spark.createDataFrame(rows, columns)
    with pytest.raises(TraceError, match=sentence):
        pipeline.verify(spark, events, spark.createDataFrame([("r",)], "run string"))


def test_who_skips_what_cannot_be_used_finds_it_among_the_flaws(spark: SparkSession) -> None:
    events = spark.createDataFrame([ROW, ("r", 0, 1, "sent", 0, 2)], EVENTS)
    runs = spark.createDataFrame([("r", ["fifo", "fifofo"])], "run string, promises array<string>")
    results = pipeline.verify(spark, events, runs, skip=True)
    [flaw] = results.table("flaws").collect()
    assert flaw["flaw"].startswith("not an event: there is no kind 'sent', only send, receive, ")
    binding = results.table("verdicts").where("promised").collect()
    assert [row["property"] for row in binding] == ["fifo"]
    with pytest.raises(UsageError, match="no table 'verdict': choose from verdicts, "):
        results.table("verdict")
    results.release()


@pytest.mark.parametrize(
    ("row", "columns", "sentence"),
    [
        (("r", ["fifofo"]), "run string, promises array<string>", "run 'r' promises 'fifofo'"),
        (("r", "fifo"), "run string, promises string", "'promises' is of type string, not a list"),
        ((1,), "size int", "runs: the column 'run' is missing"),
    ],
)
def test_a_notebook_is_told_what_is_wrong_with_its_runs(
    spark: SparkSession, row: tuple[Any, ...], columns: str, sentence: str
) -> None:
    with pytest.raises(TraceError, match=sentence):
        pipeline.verify(
            spark, spark.createDataFrame([ROW], EVENTS), spark.createDataFrame([row], columns)
        )


def test_a_frame_of_another_library_is_none_of_sparks(spark: SparkSession) -> None:
    import pandas as pd

    frame: Any = pd.DataFrame({"run": ["r"]})
    with pytest.raises(UsageError, match="events is a pandas DataFrame, and no DataFrame of Spark"):
        pipeline.verify(spark, frame, frame)


def test_only_what_is_meant_for_others_is_listed() -> None:
    assert dir(pipeline) == sorted(pipeline.__all__)
