"""Arrow's columns on their way through Spark's pandas."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.conversion import PandasToArrowConversion
from pyspark.sql.types import ArrayType, LongType, MapType, StringType, StructField, StructType

from ordercast.pipeline.streaming import columns
from ordercast.pipeline.streaming.columns import frames

ROWS = pa.table(
    {
        "list": pa.array([[1, 2], None, []], pa.list_(pa.int64())),
        "map": pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        "word": ["x", None, "z"],
    }
)
SCHEMA = StructType(
    [
        StructField("list", ArrayType(LongType())),
        StructField("map", MapType(StringType(), LongType())),
        StructField("word", StringType()),
    ]
)


def as_spark_sends(frame: Any) -> pa.RecordBatch:
    [struct] = PandasToArrowConversion.convert(
        [frame], StructType([StructField("_0", SCHEMA)]), timezone="UTC", arrow_cast=True,
        assign_cols_by_name=True,
    ).columns  # fmt: skip
    return pa.RecordBatch.from_struct_array(struct)


def test_spark_sends_the_very_memory() -> None:
    [frame] = frames(ROWS)
    sent = as_spark_sends(frame)
    assert sent.to_pylist() == ROWS.to_pylist()
    for column, was in zip(sent.columns, ROWS.columns, strict=True):
        [chunk] = was.chunks
        places = [None if one is None else one.address for one in chunk.buffers()]
        assert [None if one is None else one.address for one in column.buffers()] == places


def test_many_rows_go_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_FRAME_BYTES", ROWS.nbytes // 2)
    pieces = [as_spark_sends(frame) for frame in frames(pa.concat_tables([ROWS, ROWS]))]
    assert len(pieces) > 2
    assert pa.Table.from_batches(pieces).to_pylist() == 2 * ROWS.to_pylist()
    assert list(frames(ROWS.slice(0, 0))) == []
