"""Other systems' logs read by Spark tasks: row for row what one machine makes of them."""

from __future__ import annotations

import random
import sys
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from ordercast import pipeline
from ordercast.errors import OrdercastError, TraceError, UsageError
from ordercast.pipeline.described import describe
from ordercast.pipeline.reading.shares import Share, shares_of
from ordercast.pipeline.reading.writing import import_log
from ordercast.trace import Trace
from ordercast.trace.importers import Options, import_trace
from ordercast.trace.importers.store import IDS_IN_MANIFEST
from ordercast.trace.parquet import arrow_schema

from .logs import same

# The samples lie beside the tests of the importers that run on one machine.
sys.path.append(str(Path(__file__).parents[1] / "trace" / "importers"))
from import_samples import GOOD, TABLE, VIOLATED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("format", ["broadcast", "otlp", "jepsen"])
def test_samples(spark: SparkSession, format: str, tmp_path: Path) -> None:
    """One run. Tables are in `test_frames_go_to_the_judge`, clocks in `test_read_clocks.py`."""
    sample = VIOLATED[format]
    same(spark, sample.files, format, tmp_path, **sample.options)


@pytest.mark.parametrize("format", ["dslab", "maelstrom", "jepsen"])
def test_a_run_each(spark: SparkSession, format: str, tmp_path: Path) -> None:
    [(name, good)], [bad] = GOOD[format].files.items(), VIOLATED[format].files.values()
    suffix = Path(name).suffix
    files = {f"z{suffix}": good, f"r10{suffix}": bad, f"r9{suffix}": good}
    traces = same(spark, files, format, tmp_path, quiesced=True)
    assert [trace.manifest.run for trace in traces] == ["r10", "r9", "z"]


def test_one_file_is_one_share(tmp_path: Path) -> None:
    """Named as the file is, or as the user says; whichever format it has."""
    for format, sample in GOOD.items():
        if len(sample.files) == 1:
            files = sample.write(tmp_path / format)
            for run in (None, "mine"):
                chosen = replace(sample.chosen(), run=run)
                name = run or files[0].stem
                assert shares_of(format, files, chosen) == [Share(tuple(files), name)], format


def table(rng: random.Random, rows: int) -> list[str]:
    """Sends, deliveries, some of messages that nobody sends, and crashes; times may be equal."""
    hosts, sent, found = [f"h{i}" for i in range(12)], ["m0"], []
    for i in range(rows):
        host, kind, at = rng.choice(hosts), rng.choice(["send", "deliver", "receive"]), i // 3
        message = f"m{i}" if kind == "send" else rng.choice(sent)
        run = f"r{rng.randrange(2)}"
        if kind == "send":
            sent.append(message)
        to = rng.choice(["", "h1 h3", "h5"]) if kind == "send" else ""
        found.append(f"{run},{host},{at},{kind},{message},{to},{i % 7}")
    found.append(f"r0,h3,{rows},crash,,,")
    return found


COLUMNS = "run,process,t,kind,message,destinations,bytes"
ORDER = [(name, "ascending") for name in ("run", "process", "position")]


def parts_of(seed: str) -> dict[str, str]:
    """A table in seven files, none of which has all rows of anyone."""
    rng = random.Random(seed)
    rows = table(rng, 300)
    rng.shuffle(rows)
    return {f"part-{i}.csv": "\n".join([COLUMNS, *rows[i::7]]) + "\n" for i in range(7)}


def test_a_table_in_many_files(spark: SparkSession, tmp_path: Path) -> None:
    chosen = {"map": {"time": "t"}, "to": "receivers", "crashed": ("h2",)}
    traces = same(spark, parts_of("receivers"), "table", tmp_path, **chosen)
    assert len(traces) == 2
    assert not any(trace.manifest.complete for trace in traces)  # some are sent by nobody


BAD = {
    "a.csv": f"{COLUMNS}\nr,a,1,send,m1,,\n",
    "b.csv": f"{COLUMNS}\nr,a,2,send,m1,,\nr,b,x,deliver,m1,,\nr,b,3,what,m1,,\nr,b,4,receive,m1,,",
}


@pytest.fixture(scope="module")
def left_out(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some rows that cannot be used, a table in many files, and one with so many messages that they
    are a thousand and one in all: imported at once, there and here, for tests to look at."""
    place, files = tmp_path_factory.mktemp("left out"), BAD | parts_of("others")
    rows = [line.split(",") for text in files.values() for line in text.splitlines()]
    others = {(row[0], row[4]) for row in rows if row[4] not in ("", "message")}
    rest = range(IDS_IN_MANIFEST + 1 - len(others))
    many = {"many.csv": "\n".join([COLUMNS, *(f"many,a,{i},send,m{i},," for i in rest)])}
    chosen = {"map": {"time": "t"}, "to": "others", "crashed": ("h2",), "skip_bad_rows": True}
    traces = same(spark, files | many, "table", place, **chosen)
    assert [trace.manifest.run for trace in traces] == ["many", "r", "r0", "r1"]
    return place


def test_numbers_of_its_own_and_no_order_but_the_lines(spark: SparkSession, tmp_path: Path) -> None:
    lines = ["process,kind,origin,number"]
    lines += ["b,deliver,a,7", "b,deliver,x,3", "a,send,a,7", "a,send,a,2", "b,send,b,5"]
    half = {"one.csv": "\n".join(lines[:4]), "two.csv": "\n".join([lines[0], *lines[4:]])}
    [trace] = same(spark, half, "table", tmp_path)
    assert "messages" not in trace.manifest.extra
    assert not trace.manifest.complete


def test_more_ids_than_a_manifest_holds(left_out: Path) -> None:
    here = pq.read_table(left_out / "here" / "messages.parquet").to_pylist()
    there = pq.read_table(left_out / "there" / "messages").to_pylist()
    assert sorted(here, key=itemgetter("run")) == there  # here, runs are in the order of the files
    assert {row["run"] for row in there} == {"many", "r", "r0", "r1"}
    assert len(there) == IDS_IN_MANIFEST + 1


def test_broadcast_logs_that_mention_others(spark: SparkSession, tmp_path: Path) -> None:
    files = {"1.out": "b 1\nd 9 1\nd 8 1\n", "2.out": "d 8 1\nd 7 1\nd 9 1\n", "3.out": "d 7 1\n"}
    [trace] = same(spark, files, "broadcast", tmp_path, quiesced=True, crashed=("2",))
    assert trace.manifest.processes == ("1", "2", "3", "9", "8", "7")


def test_frames_go_to_the_judge(spark: SparkSession, tmp_path: Path) -> None:
    """And are what one machine makes of the same log."""
    source, options = tmp_path / "source", VIOLATED["table"].chosen()
    VIOLATED["table"].write(source)
    events, runs = pipeline.read_log(spark, source, format="table", options=options)
    import_trace([source], tmp_path / "here", format="table", options=options)
    here = pq.read_table(tmp_path / "here" / "events").to_pylist()
    told = events.toArrow().select(arrow_schema().names).sort_by(ORDER)
    assert told.to_pylist() == here
    [trace] = Trace.load(tmp_path / "here")
    assert runs.toArrow().to_pylist() == describe([trace.manifest]).to_pylist()
    results = pipeline.verify(spark, events, runs)
    try:
        found = {row["property"]: row["verdict"] for row in results.table("verdicts").collect()}
    finally:
        results.release()
    assert found["causal"] == "violated"
    assert found["fifo"] == "holds"


def test_bad_rows_are_named_or_left_out(
    spark: SparkSession, left_out: Path, tmp_path: Path
) -> None:
    options = Options(map={"time": "t"})
    sources = [left_out / "source" / name for name in BAD]
    with pytest.raises(TraceError, match=r"b\.csv, line 3: time is 'x'"):
        import_trace(sources, tmp_path / "out", format="table", options=options)
    with pytest.raises(TraceError, match=r"b\.csv, line 3: time is 'x'"):
        import_log(sources, tmp_path / "out", format="table", options=options, spark=spark)
    assert not (tmp_path / "out").exists()
    traces = Trace.load(left_out / "there")
    assert {trace.manifest.extra["imported"]["left_out"] for trace in traces} == {3}
    [trace] = (trace for trace in traces if trace.manifest.run == "r")
    assert [(event.kind, event.time_us) for event in trace.events] == [("send", 1), ("receive", 4)]


@pytest.mark.parametrize(
    ("format", "options", "words"),
    [
        ("broadcast", Options(dependencies=Path("x")), "judged on one machine"),
        ("table", Options(crashed=("nobody",), **TABLE), "there is no process of that name"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_had(
    spark: SparkSession, format: str, options: Options, words: str, tmp_path: Path
) -> None:
    GOOD[format].write(tmp_path / "source")
    with pytest.raises(UsageError, match=words) as caught:
        import_log(
            [tmp_path / "source"], tmp_path / "t", format=format, options=options, spark=spark
        )
    assert isinstance(caught.value, OrdercastError)
    assert not (tmp_path / "t").exists()
