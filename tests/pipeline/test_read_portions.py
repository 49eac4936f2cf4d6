"""Large tables, cut into portions: the same rows, under the same numbers, as read in one go."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ordercast.errors import TraceError
from ordercast.pipeline.reading.shares import Share, cut, shares_of
from ordercast.pipeline.reading.writing import import_log
from ordercast.pipeline.shipping import in_tasks
from ordercast.trace.importers import Options
from ordercast.trace.importers.base import Job, Report
from ordercast.trace.importers.columns import rows_of, survey

from .logs import same_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTING = "spark.sql.files.maxPartitionBytes"
ROWS = [
    {"process": f"p{i % 5}", "kind": kind, "message": f"m{i}", "note": f"n{i}" * (i % 9)}
    for i in range(60)
    for kind in ("send", "deliver")
]


@pytest.fixture
def spark_that_cuts(spark: SparkSession) -> Iterator[SparkSession]:
    before = spark.conf.get(SETTING)
    assert before is not None
    spark.conf.set(SETTING, "1000b")
    yield spark
    spark.conf.set(SETTING, before)


def write(path: Path, rows: list[dict[str, str]], *, quote: str = "") -> Path:
    path.parent.mkdir(exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=7)
    elif path.suffix == ".jsonl":
        path.write_text("\n\n".join(map(json.dumps, rows)) + "\n")
    else:
        lines = [
            ",".join(rows[0]),
            *(",".join(quote + v + quote for v in r.values()) for r in rows),
        ]
        path.write_text("\r\n".join(lines))
    return path


def portions(spark: SparkSession, file: Path) -> list[Share]:
    shares = shares_of("table", [file], Options())
    return cut(spark, shares, in_tasks(spark, [file]))


@pytest.mark.parametrize(
    ("name", "quote"), [("a.csv", ""), ("b.csv", '"'), ("c.jsonl", ""), ("d.parquet", "")]
)
def test_portions_give_the_same_rows_under_the_same_numbers(
    spark_that_cuts: SparkSession, name: str, quote: str, tmp_path: Path
) -> None:
    file = write(tmp_path / "logs" / name, ROWS, quote=quote)
    shares = portions(spark_that_cuts, file)
    assert len(shares) > 3
    whole = Job((file,), Options(), Report(), tmp_path)
    jobs = [Job((file,), Options(), Report(), tmp_path, portion=one.portion) for one in shares]
    found = [(at, row) for job in jobs for at, _, row in rows_of(job, file)]
    assert found == [(at, row) for at, _, row in rows_of(whole, file)]
    same_of(spark_that_cuts, tmp_path / "logs", "table", tmp_path)


def test_every_line_is_counted_where_it_begins(tmp_path: Path) -> None:
    rng = random.Random(8)
    lines = [b"x" * rng.choice([0, 0, 1, 5, 30]) + b"\n" for _ in range(40)]
    file = tmp_path / "a.csv"
    for text in (b"".join(lines), b"".join(lines) + b"no end"):
        file.write_bytes(text)
        begun = [0, *(at + 1 for at, one in enumerate(text[:-1]) if one == ord("\n"))]
        for size in range(1, 50):
            for start in range(0, len(text), size):
                stop = min(start + size, len(text))
                count, _ = survey(file, start, stop)
                assert count == sum(start <= at < stop for at in begun)


@pytest.mark.parametrize(
    ("value", "alone"),
    [
        ('"two\nlines"', False),
        ('"said ""no"""', True),
        ('5" wide', True),
        ('5" and,"open\nhere"', False),
        ('"""open\n"""', False),
    ],
)
def test_values_over_line_ends_keep_a_file_whole(
    spark_that_cuts: SparkSession, value: str, alone: bool, tmp_path: Path
) -> None:
    some = [row | {"note": "" if at % 3 else value} for at, row in enumerate(ROWS)]
    file = write(tmp_path / "logs" / "a.csv", some)
    assert (len(portions(spark_that_cuts, file)) > 1) is alone
    same_of(spark_that_cuts, tmp_path / "logs", "table", tmp_path, skip_bad_rows=True)


@pytest.mark.parametrize("name", ["a.csv", "c.jsonl", "d.parquet"])
def test_a_bad_row_far_into_a_file_has_its_number(
    spark_that_cuts: SparkSession, name: str, tmp_path: Path
) -> None:
    rows = [row | {"kind": "what"} if at == 99 else row for at, row in enumerate(ROWS)]
    file = write(tmp_path / "logs" / name, rows)
    place = {".csv": "line 101", ".jsonl": "line 199", ".parquet": "row 100"}[file.suffix]
    with pytest.raises(TraceError, match=f"{name}, {place}: what is 'what'"):
        import_log([file], tmp_path / "t", format="table", spark=spark_that_cuts)
    [trace] = same_of(spark_that_cuts, tmp_path / "logs", "table", tmp_path, skip_bad_rows=True)
    assert trace.manifest.extra["imported"]["left_out"] == 1


def test_the_first_row_says_what_the_columns_mean(
    spark_that_cuts: SparkSession, tmp_path: Path
) -> None:
    """A column that only later rows have means nothing, in any portion."""
    rows = [row | ({"time": str(1000 - at)} if at > 50 else {}) for at, row in enumerate(ROWS)]
    write(tmp_path / "logs" / "a.jsonl", rows)
    [trace] = same_of(spark_that_cuts, tmp_path / "logs", "table", tmp_path)
    assert all(event.time_us is None for event in trace.events)
