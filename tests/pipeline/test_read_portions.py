"""Large tables, cut into portions: the same rows, under the same numbers, as read in one go.

An import costs the same for one file as for many, so there are two: of files that are sound, and of
files with rows that are left out. Each file is a run.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ordercast.errors import TraceError
from ordercast.pipeline import reading
from ordercast.pipeline.reading.shares import Share, cut
from ordercast.pipeline.reading.writing import import_log
from ordercast.trace import Trace
from ordercast.trace.importers import Options, import_trace
from ordercast.trace.importers.base import Job, Portion, Report
from ordercast.trace.importers.columns import rows_of, survey
from ordercast.trace.importers.store import TIED_NOTE

from ..conftest import set_for_a_while
from .logs import same_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {"spark.sql.files.maxPartitionBytes": "1000b"}
ROWS = [
    {"process": f"p{i % 5}", "kind": kind, "message": f"m{i}", "note": f"n{i}" * (i % 9)}
    for i in range(60)
    for kind in ("send", "deliver")
]
SOUND = ("plain.csv", "quoted.csv", "lines.jsonl", "groups.parquet", "late.jsonl")
BAD = {"bad1.csv": "line 101", "bad2.jsonl": "line 199", "bad3.parquet": "row 100"}
OVER = {
    "over1.csv": ('"two\nlines"', False),
    "over2.csv": ('"said ""no"""', True),
    "over3.csv": ('5" wide', True),
    "over4.csv": ('5" and,"open\nhere"', False),
    "over5.csv": ('"""open\n"""', False),
}
"""A value in every third row, and whether the file can be cut all the same."""
TOO_MANY = "over4.csv"
"""Where that is a value too many, which all of these rows are left out for."""
AMONG = len(ROWS[::3])


class Cut(NamedTuple):
    logs: Path
    traces: dict[str, Trace]
    portions: dict[str, list[Portion]]
    """Of each file; none if it is whole."""


def write(path: Path, rows: list[dict[str, str]], *, run: bool = True) -> Path:
    rows = [{"run": path.stem} | row for row in rows] if run else rows
    path.parent.mkdir(exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=7)
    elif path.suffix == ".jsonl":
        path.write_text("\n\n".join(map(json.dumps, rows)) + "\n")
    else:
        quote = '"' if path.stem == "quoted" else ""
        lines = [
            ",".join(rows[0]),
            *(",".join(quote + v + quote for v in r.values()) for r in rows),
        ]
        path.write_text("\r\n".join(lines))
    return path


def imported(spark: SparkSession, directory: Path, *, skip_bad_rows: bool = False) -> Cut:
    """What becomes of all logs in it, and how the import itself has cut them."""
    shares: list[Share] = []

    def watched(*those: object) -> list[Share]:
        shares.extend(cut(*those))  # type: ignore[arg-type]
        return shares

    logs = directory / "logs"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "cut", watched)
        traces = same_of(spark, logs, "table", directory, skip_bad_rows=skip_bad_rows)
    portions: dict[str, list[Portion]] = {file.name: [] for file in logs.iterdir()}
    for share in shares:
        if share.portion is not None:
            portions[share.files[0].name].append(share.portion)
    return Cut(logs, {trace.manifest.run: trace for trace in traces}, portions)


@pytest.fixture(scope="module")
def spark_that_cuts(spark: SparkSession) -> Iterator[SparkSession]:
    yield from set_for_a_while(spark, SETTINGS)


@pytest.fixture(scope="module")
def sound(spark_that_cuts: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Cut:
    place = tmp_path_factory.mktemp("sound")
    for name in SOUND:
        rows = ROWS
        if name == "quoted.csv":  # positions of its own: no two are the same
            rows = [row | {"position": str(at)} for at, row in enumerate(ROWS)]
        if name == "late.jsonl":
            rows = [
                row | ({"time": str(1000 - at)} if at > 50 else {}) for at, row in enumerate(ROWS)
            ]
        write(place / "logs" / name, rows, run=name != "late.jsonl")
    return imported(spark_that_cuts, place)


@pytest.fixture(scope="module")
def skipped(spark_that_cuts: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Cut:
    place = tmp_path_factory.mktemp("skipped")
    for name in BAD:
        rows = [row | {"kind": "what"} if at == 99 else row for at, row in enumerate(ROWS)]
        write(place / "logs" / name, rows)
    for name, (value, _) in OVER.items():
        rows = [row | {"note": "" if at % 3 else value} for at, row in enumerate(ROWS)]
        write(place / "logs" / name, rows)
    return imported(spark_that_cuts, place, skip_bad_rows=True)


@pytest.mark.parametrize("name", SOUND)
def test_portions_give_the_same_rows_under_the_same_numbers(
    sound: Cut, name: str, tmp_path: Path
) -> None:
    file, portions = sound.logs / name, sound.portions[name]
    assert len(portions) > 3
    whole = Job((file,), Options(), Report(), tmp_path)
    jobs = [Job((file,), Options(), Report(), tmp_path, portion=one) for one in portions]
    found = [(at, row) for job in jobs for at, _, row in rows_of(job, file)]
    assert found == [(at, row) for at, _, row in rows_of(whole, file)]
    assert len(found) == len(ROWS)


def test_every_file_is_a_run_and_no_row_is_lost(sound: Cut) -> None:
    """In these, positions do not say the same of two rows."""
    runs = {"logs" if name == "late.jsonl" else Path(name).stem for name in SOUND}
    assert {run: len(one.events) for run, one in sound.traces.items()} == dict.fromkeys(
        runs, len(ROWS)
    )
    notes = sound.traces["quoted"].manifest.extra["imported"]["notes"]
    assert notes == ["each process's order is that of the lines"]
    assert TIED_NOTE not in notes


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


@pytest.mark.parametrize("name", OVER)
def test_values_over_line_ends_keep_a_file_whole(skipped: Cut, name: str) -> None:
    _, alone = OVER[name]
    assert (len(skipped.portions[name]) > 1) is alone
    lost = AMONG if name == TOO_MANY else 0
    assert len(skipped.traces[Path(name).stem].events) == len(ROWS) - lost


@pytest.mark.parametrize("name", BAD)
def test_a_bad_row_far_into_a_file_has_its_number(skipped: Cut, name: str, tmp_path: Path) -> None:
    """What is left out is told in the same words as what is refused, and in the same by tasks as by
    one machine: `same_of` sees to that."""
    assert len(skipped.portions[name]) > 3
    with pytest.raises(TraceError, match=f"{name}, {BAD[name]}: what is 'what'"):
        import_trace([skipped.logs / name], tmp_path / "t", format="table")
    trace = skipped.traces[Path(name).stem]
    assert len(trace.events) == len(ROWS) - 1
    assert trace.manifest.extra["imported"]["left_out"] == len(BAD) + AMONG


def test_a_bad_row_in_a_portion_is_refused(
    spark_that_cuts: SparkSession, skipped: Cut, tmp_path: Path
) -> None:
    file = skipped.logs / "bad2.jsonl"
    with pytest.raises(TraceError, match=r"bad2\.jsonl, line 199: what is 'what'"):
        import_log([file], tmp_path / "t", format="table", spark=spark_that_cuts)
    assert not (tmp_path / "t").exists()


def test_the_first_row_says_what_the_columns_mean(sound: Cut) -> None:
    """A column that only later rows have means nothing, in any portion."""
    assert all(event.time_us is None for event in sound.traces["logs"].events)
