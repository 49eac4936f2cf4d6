"""Other systems' logs read by Spark tasks: row for row what one machine makes of them."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ordercast import pipeline
from ordercast.errors import OrdercastError, TraceError, UsageError
from ordercast.pipeline.reading.writing import import_log
from ordercast.trace.importers import FORMATS, Options

from .logs import same

# The samples lie beside the tests of the importers that run on one machine.
sys.path.append(str(Path(__file__).parents[1] / "trace" / "importers"))
from import_samples import GOOD, TABLE, VIOLATED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("format", FORMATS)
def test_samples(spark: SparkSession, format: str, tmp_path: Path) -> None:
    sample = VIOLATED[format]
    same(spark, sample.files, format, tmp_path, **sample.options)


@pytest.mark.parametrize("format", ["dslab", "maelstrom", "jepsen"])
def test_a_run_each(spark: SparkSession, format: str, tmp_path: Path) -> None:
    [(name, good)], [bad] = GOOD[format].files.items(), VIOLATED[format].files.values()
    suffix = Path(name).suffix
    files = {f"z{suffix}": good, f"r10{suffix}": bad, f"r9{suffix}": good}
    traces = same(spark, files, format, tmp_path, quiesced=True)
    assert [trace.manifest.run for trace in traces] == ["r10", "r9", "z"]


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


@pytest.mark.parametrize("to", ["receivers", "others"])
def test_a_table_in_many_files(spark: SparkSession, to: str, tmp_path: Path) -> None:
    rng = random.Random(to)
    rows = table(rng, 300)
    rng.shuffle(rows)
    parts = {f"part-{i}.csv": "\n".join([COLUMNS, *rows[i::7]]) + "\n" for i in range(7)}
    chosen = {"map": {"time": "t"}, "to": to, "crashed": ("h2",)}
    traces = same(spark, parts, "table", tmp_path, **chosen)
    assert len(traces) == 2
    assert not any(trace.manifest.complete for trace in traces)  # some are sent by nobody


def test_numbers_of_its_own_and_no_order_but_the_lines(spark: SparkSession, tmp_path: Path) -> None:
    lines = ["process,kind,origin,number"]
    lines += ["b,deliver,a,7", "b,deliver,x,3", "a,send,a,7", "a,send,a,2", "b,send,b,5"]
    half = {"one.csv": "\n".join(lines[:4]), "two.csv": "\n".join([lines[0], *lines[4:]])}
    [trace] = same(spark, half, "table", tmp_path)
    assert "messages" not in trace.manifest.extra
    assert not trace.manifest.complete


def test_more_ids_than_a_manifest_holds(spark: SparkSession, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    rows = [f"r,a,{i},send,m{i},," for i in range(1001)]
    text = "\n".join([COLUMNS, *rows])
    same(spark, {"a.csv": text}, "table", tmp_path, map={"time": "t"})
    here = pq.read_table(tmp_path / "here" / "messages.parquet").to_pylist()
    there = pq.read_table(tmp_path / "there" / "messages").to_pylist()
    assert here == there


def test_broadcast_logs_that_mention_others(spark: SparkSession, tmp_path: Path) -> None:
    files = {"1.out": "b 1\nd 9 1\nd 8 1\n", "2.out": "d 8 1\nd 7 1\nd 9 1\n", "3.out": "d 7 1\n"}
    [trace] = same(spark, files, "broadcast", tmp_path, quiesced=True, crashed=("2",))
    assert trace.manifest.processes == ("1", "2", "3", "9", "8", "7")


def test_frames_go_to_the_judge(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "source"
    VIOLATED["table"].write(source)
    events, runs = pipeline.read_log(spark, source, format="table", options=Options(**TABLE))  # type: ignore[arg-type]
    results = pipeline.verify(spark, events, runs)
    try:
        found = {row["property"]: row["verdict"] for row in results.table("verdicts").collect()}
    finally:
        results.release()
    assert found["causal"] == "violated"
    assert found["fifo"] == "holds"


BAD = {
    "a.csv": f"{COLUMNS}\nr,a,1,send,m1,,\n",
    "b.csv": f"{COLUMNS}\nr,a,2,send,m1,,\nr,b,x,deliver,m1,,\nr,b,3,what,m1,,\nr,b,4,receive,m1,,",
}


def test_bad_rows_are_named_or_left_out(spark: SparkSession, tmp_path: Path) -> None:
    chosen: dict[str, Any] = {"map": {"time": "t"}}
    with pytest.raises(TraceError, match=r"b\.csv, line 3: time is 'x'"):
        same(spark, BAD, "table", tmp_path / "refused", **chosen)
    source = tmp_path / "refused" / "source"
    with pytest.raises(TraceError, match=r"b\.csv, line 3: time is 'x'"):
        import_log(
            [source], tmp_path / "out", format="table", options=Options(**chosen), spark=spark
        )
    assert not (tmp_path / "out").exists()
    [trace] = same(spark, BAD, "table", tmp_path / "skipped", skip_bad_rows=True, **chosen)
    assert trace.manifest.extra["imported"]["left_out"] == 3


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
