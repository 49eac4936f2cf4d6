"""The verdicts depend on what the rows say, and on nothing else about them."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from ordercast import pipeline
from ordercast.pipeline import engine
from ordercast.trace.jsonl import encode_event
from ordercast.trace.parquet import to_table
from ordercast.trace.verdicts import PROPERTIES, Judgement, Verdict

from .builders import run, write
from .cases import CASES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENTS = [row for case in CASES for row in case.run.events]


def test_neither_format_nor_files_nor_the_order_of_rows_matter(
    spark: SparkSession, tmp_path: Path, judgement: Judgement, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_ITEM_ROWS_LEAST", 1)  # as a large trace is cut
    rows = EVENTS.copy()
    Random(7).shuffle(rows)
    # A directory's name may hold what means something to Spark's own file patterns.
    trace = tmp_path / "odd [name], {50%20} *?"
    (trace / "events").mkdir(parents=True)
    manifests = [case.run.manifest.to_json() + b"\n" for case in CASES]
    (trace / "manifest.jsonl").write_bytes(b"".join(manifests))
    (trace / "events.jsonl").write_bytes(b"\n".join(map(encode_event, rows[::4])))
    (trace / "events" / "b.jsonl").write_bytes(b"".join(map(encode_event, rows[1::4])))
    pq.write_table(to_table(rows[2::4]), trace / "events" / "c.parquet", row_group_size=5)
    pq.write_table(foreign(to_table(rows[3::4])), trace / "events" / "d d.parquet")
    assert pipeline.judge(trace, spark=spark) == judgement


def foreign(table: pa.Table) -> pa.Table:
    """The same rows in the types that another system might have written."""
    types = {
        "run": pa.large_string(),
        "process": pa.uint32(),
        "position": pa.uint64(),
        "kind": pa.dictionary(pa.int8(), pa.string()),
        "origin": pa.int64(),
        "number": pa.int16(),
        "destinations": pa.large_list(pa.int64()),
    }
    columns = {name: table.column(name).cast(kind) for name, kind in types.items()}
    return pa.table({"host": pa.nulls(len(table)), **columns, "time_us": pa.nulls(len(table))})


def test_partitioning_does_not_matter(
    spark: SparkSession, tmp_path: Path, judgement: Judgement
) -> None:
    path = write(tmp_path / "trace", [case.run for case in CASES], "parquet")
    events = spark.read.parquet(str(path / "events")).repartition(5, "number", "kind")
    events = events.withColumn("written_at", F.current_timestamp())  # a column of their own
    manifests = [case.run.manifest for case in CASES]
    runs = [(m.run, list(m.processes), len(m.processes), m.quiesced, m.complete) for m in manifests]
    names = "run string, names array<string>, size int, quiesced boolean, complete boolean"
    results = pipeline.verify(spark, events, spark.createDataFrame(runs, names))
    rows = [row.asDict(recursive=True) for row in results.table("verdicts").collect()]
    results.release()
    rows.sort(key=lambda row: (row["run"], PROPERTIES.index(row["property"])))
    assert msgspec.convert(rows, tuple[Verdict, ...]) == judgement.verdicts


def test_a_bare_file_is_judged_by_what_is_seen_in_it(spark: SparkSession, tmp_path: Path) -> None:
    """Process 1 left no trace, so it is no member; and what it sent is an orphan."""
    rows = run("bare", "s1 s2>0,1 d0:1 d0:2 d1:1", "", "d0:1").events
    rows += run("owing", "s1", "join").events
    file = tmp_path / "events.jsonl"
    file.write_bytes(b"".join(map(encode_event, rows)))
    said = {
        rest: {(one.run, one.property): one for one in judged.verdicts}
        for rest in (False, True)
        for judged in [pipeline.judge(file, spark=spark, quiesced=rest)]
    }
    for rest in (False, True):
        assert said[rest]["bare", "agreement"].verdict == "holds"
        assert said[rest]["bare", "agreement"].checked == 3
        orphan = said[rest]["bare", "no_creation"]
        assert (orphan.verdict, orphan.violations) == ("unknown", 0)
        assert orphan.witness is not None
        assert (orphan.witness.process, orphan.witness.messages) == (0, ("1:1",))
    assert said[False]["owing", "validity"].verdict == "unknown"
    assert said[True]["owing", "validity"].verdict == "violated"


def test_an_order_that_is_asked_for_overrides_what_was_promised(
    spark: SparkSession, tmp_path: Path, judgement: Judgement
) -> None:
    (case,) = (case for case in CASES if str(case) == "swapped")
    assert case.run.manifest.order == "unordered"
    assert "fifo" not in judgement.promises["swapped"]
    asked = pipeline.judge(write(tmp_path / "trace", [case.run]), spark=spark, order="fifo")
    assert asked.promises["swapped"][-1] == "fifo"
    assert asked.outcome == "violated"
    assert asked.verdicts == tuple(one for one in judgement.verdicts if one.run == "swapped")
