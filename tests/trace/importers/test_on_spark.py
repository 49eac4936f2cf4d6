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


def test_clocks_below_the_microsecond_and_a_mark(spark: SparkSession, tmp_path: Path) -> None:
    """The mark is at the start of the first file, which is the one that is looked at first."""
    fine = ["a,1700000000000000002,produce,m2,fine", "a,1700000000000000001,produce,m1,fine"]
    files = {
        "a.csv": f"\ufeff{TABLE_GOOD}",
        "b.csv": "\n".join(["host,ts,type,id,run", *fine]),
    }
    clocks, marked = same(spark, files, "table", tmp_path, time_unit="ns", **TABLE)
    assert clocks.manifest.extra["messages"] == {"0:1": "m1", "0:2": "m2"}
    assert clocks.manifest.run == "fine"
    assert marked.manifest.processes == ("a", "b", "c")
    assert len(marked.events) == len(TABLE_GOOD.splitlines()) - 1


def test_spans_exported_again(spark: SparkSession, tmp_path: Path) -> None:
    """Those that are unchanged are taken once; those that are not are refused, or left out."""
    both = span("c", "6", 5, 70, "1", "3")
    other = span("b", "2", 5, 21, "1", "3") + span("a", "1", 4, 11)
    files = {"a.jsonl": OTLP_GOOD + both, "b.jsonl": both + OTLP_GOOD + span("c", "7", 5, 80, "3")}
    files |= {"c.jsonl": other}
    with pytest.raises(
        TraceError, match=r"c\.jsonl, line 1: the span 0+2/0+2 is exported a second"
    ):
        same(spark, files, "otlp", tmp_path / "refused")
    [trace] = same(spark, files, "otlp", tmp_path / "skipped", skip_bad_rows=True)
    assert len(trace.events) == OTLP_GOOD.count("\n") + 3
    [*_, note] = trace.manifest.extra["imported"]["notes"]
    assert note == "spans that are exported again, unchanged: 6; each is taken once"
    assert trace.manifest.extra["imported"]["left_out"] == 2


def test_rows_at_the_same_position(spark: SparkSession, tmp_path: Path) -> None:
    """That nothing is said where no two are is in `tests/pipeline/test_read_portions.py`."""
    log = f"{COLUMNS},position\na,send,m1,1\na,send,m2,2\nb,deliver,m1,2\nb,deliver,m2,2\n"
    [tied] = same(spark, {"r.csv": log}, "table", tmp_path)
    [note] = tied.manifest.extra["imported"]["notes"]
    assert note.startswith("rows of one process have the same position")


def test_columns_as_services_write_them(spark: SparkSession, tmp_path: Path) -> None:
    """Separated by semicolons, and inside others; the first object lacks what the next one has."""
    rows = [
        '{"run":"nested","process":"a","event":{"kind":"start"}}',
        '{"run":"nested","process":"a","event":{"kind":"send","id":"x"}}',
        '{"run":"nested","process":"b","event":{"kind":"deliver","id":"x"}}',
    ]
    columns = {"kind": "event.kind", "message": "event.id"}
    [nested] = same(
        spark,
        {"app.log": "\n".join(rows)},
        "table",
        tmp_path / "n",
        map=columns,
        kinds={"start": ""},
    )
    assert nested.manifest.extra["messages"] == {"0:1": "x"}
    log = f"{COLUMNS}\na,send,m1\nb,deliver,m1\n".replace(",", ";")
    [semicolons] = same(spark, {"s.csv": log}, "table", tmp_path / "s")
    assert len(semicolons.events) == len(nested.events) == 2
