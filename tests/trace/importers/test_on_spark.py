"""What is easily lost on the way to many machines: fine clocks, repeats, ties, marks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from import_samples import OTLP_GOOD, TABLE, TABLE_GOOD, span
from tests.pipeline.logs import same

from ordercast.errors import TraceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("compiled")

COLUMNS = "process,kind,message"


def test_clocks_below_the_microsecond(spark: SparkSession, tmp_path: Path) -> None:
    rows = ["a,send,m2,1700000000000000002", "a,send,m1,1700000000000000001"]
    log = "\n".join([f"{COLUMNS},time", *rows])
    [trace] = same(spark, {"r.csv": log}, "table", tmp_path, time_unit="ns")
    assert trace.manifest.extra["messages"] == {"0:1": "m1", "0:2": "m2"}


def test_spans_exported_again(spark: SparkSession, tmp_path: Path) -> None:
    both = span("c", "6", 5, 70, "1", "3")
    files = {"a.jsonl": OTLP_GOOD + both, "b.jsonl": both + OTLP_GOOD + span("c", "7", 5, 80, "3")}
    [trace] = same(spark, files, "otlp", tmp_path)
    assert len(trace.events) == OTLP_GOOD.count("\n") + 3
    [*_, note] = trace.manifest.extra["imported"]["notes"]
    assert note == "spans that are exported again, unchanged: 6; each is taken once"


def test_spans_exported_again_otherwise(spark: SparkSession, tmp_path: Path) -> None:
    other = span("b", "2", 5, 21, "1", "3") + span("a", "1", 4, 11)
    files = {"a.jsonl": OTLP_GOOD, "b.jsonl": other}
    with pytest.raises(
        TraceError, match=r"b\.jsonl, line 1: the span 0+2/0+2 is exported a second"
    ):
        same(spark, files, "otlp", tmp_path / "refused")
    [trace] = same(spark, files, "otlp", tmp_path / "skipped", skip_bad_rows=True)
    assert trace.manifest.extra["imported"]["left_out"] == 2


def test_rows_at_the_same_position(spark: SparkSession, tmp_path: Path) -> None:
    log = f"{COLUMNS},position\na,send,m1,1\na,send,m2,2\nb,deliver,m1,2\n"
    [apart] = same(spark, {"r.csv": log}, "table", tmp_path / "apart")
    assert "notes" not in apart.manifest.extra["imported"]
    [tied] = same(spark, {"r.csv": f"{log}b,deliver,m2,2\n"}, "table", tmp_path / "tied")
    [note] = tied.manifest.extra["imported"]["notes"]
    assert note.startswith("rows of one process have the same position")


def test_a_mark_at_the_start_of_a_file(spark: SparkSession, tmp_path: Path) -> None:
    [trace] = same(spark, {"r.csv": f"\ufeff{TABLE_GOOD}"}, "table", tmp_path, **TABLE)
    assert trace.manifest.processes == ("a", "b", "c")
