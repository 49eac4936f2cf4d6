"""Parquet as others write it: types that we would not choose, and footers that are damaged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ordercast import pipeline
from ordercast.errors import TraceError
from ordercast.pipeline.huge.groups import read
from ordercast.pipeline.rows import Loaded, load
from ordercast.pipeline.source import inspect
from ordercast.trace.parquet import read_parquet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOUND = {
    "run": pa.array(["r"] * 3),
    "process": pa.array([0, 0, 1]),
    "position": pa.array([0, 1, 0]),
    "kind": pa.array(["send", "deliver", "deliver"]),
    "origin": pa.array([0, 0, 0]),
    "number": pa.array([1, 1, 1]),
    "destinations": pa.array([[0, 1], None, None]),
}


def written(file: Path, **columns: pa.Array) -> Path:
    pq.write_table(pa.table(SOUND | columns), file)
    return file


def loaded(file: Path) -> Loaded:
    return load(group.piece for group in inspect(file).groups)


@pytest.mark.parametrize("name", ["origin", "number"])
def test_a_column_of_nothing_but_nulls_has_no_type(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    file = written(tmp_path / "events.parquet", **{name: pa.nulls(3)})
    sentence = f"{file}, row 1: a 'send' row needs both origin and number"
    for ask in (
        lambda: pipeline.judge(file, spark=spark),
        lambda: pipeline.judge(file, here=True),
        lambda: list(read_parquet(file)),
    ):
        with pytest.raises(TraceError) as caught:
            ask()
        assert str(caught.value).startswith(sentence)


def test_what_has_no_message_may_have_columns_of_no_type(tmp_path: Path) -> None:
    nulls = {name: pa.nulls(3) for name in ("origin", "number", "destinations")}
    kinds = pa.array(["join", "send", "join"])
    file = written(tmp_path / "events.parquet", kind=kinds, **nulls)
    assert loaded(file).flaws["row"].to_pylist() == [2]
    assert loaded(file).events["kind"].to_pylist() == ["join", "join"]
    [group] = inspect(file).groups
    types = [column.type for column in read(group.piece, list(nulls)).columns]
    assert types == [pa.int32(), pa.int64(), pa.list_(pa.int32())]


def test_types_that_few_writers_use(tmp_path: Path) -> None:
    file = written(
        tmp_path / "events.parquet",
        run=SOUND["run"].cast(pa.string_view()),
        kind=SOUND["kind"].cast(pa.string_view()),
        destinations=pa.array([[0, 1], None, None], pa.list_(pa.int32(), 2)),
    )
    events, flaws = loaded(file)
    assert not len(flaws)
    assert events == loaded(written(tmp_path / "usual.parquet")).events
    assert len(list(read_parquet(file))) == 3


def test_values_in_such_types_are_looked_at_too(tmp_path: Path) -> None:
    lists = pa.array([[0, 2**40], [0, None], None], pa.list_(pa.int64(), 2))
    _, flaws = loaded(written(tmp_path / "events.parquet", destinations=lists))
    assert flaws["row"].to_pylist() == [1, 2]
    assert set(flaws["flaw"].to_pylist()) == {
        "not an event: destinations must be from 0 to 2147483647"
    }


DAMAGE = """
import sys
from pathlib import Path
from ordercast.errors import TraceError
from ordercast.pipeline.rows import load
from ordercast.pipeline.source import inspect
from ordercast.trace.parquet import read_parquet

whole, file = Path(sys.argv[1]).read_bytes(), Path(sys.argv[1])
path = whole.rindex(b"\\x19\\x18\\x08position")  # in what the footer says of that column
told = 0
for place in range(path - 10, path + 6):
    for value in (*range(0, 40, 2), 0x99, 0xff):
        print(place - path, value, flush=True)
        damaged = bytearray(whole)
        damaged[place] = value
        file.write_bytes(damaged)
        for ask in (
            lambda: load(group.piece for group in inspect(file).groups),
            lambda: list(read_parquet(file)),
        ):
            try:
                ask()
            except TraceError as error:
                told += "not a readable Parquet file" in str(error)
print(told)
"""


def test_a_damaged_footer_does_not_end_the_process(tmp_path: Path) -> None:
    """As Arrow does if it is asked for statistics of a type that the column is not of."""
    file = written(tmp_path / "events.parquet")
    found = subprocess.run(
        [sys.executable, "-c", DAMAGE, file], capture_output=True, text=True, check=False
    )
    last = found.stdout.splitlines()[-1]
    assert found.returncode == 0, f"damaged by {last}: {found.stderr[-2000:]}"
    assert int(last) > 200
