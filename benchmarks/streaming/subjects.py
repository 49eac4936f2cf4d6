"""What a stream goes through: nothing, Spark's own operators with state, and ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from ordercast.pipeline import streaming

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["EMPTY", "NOTHING", "OURS", "SUBJECTS"]

NOTHING, OURS, EMPTY = "no operator", "causal_order", "empty transformWithState"


class _Empty(StatefulProcessor):
    """Lets everything through, and keeps nothing."""

    def init(self, handle: Any) -> None:
        pass

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        return rows

    def close(self) -> None:
        pass


def _empty_rows(stream: DataFrame) -> DataFrame:
    return stream.groupBy("room").transformWithState(
        _Empty(), outputStructType=stream.schema, outputMode="Append", timeMode="None"
    )


def _empty_pandas(stream: DataFrame) -> DataFrame:
    return stream.groupBy("room").transformWithStateInPandas(
        _Empty(), outputStructType=stream.schema, outputMode="Append", timeMode="None"
    )


def _distinct(stream: DataFrame) -> DataFrame:
    marked = stream.withWatermark("time", "10 seconds")
    return marked.dropDuplicatesWithinWatermark(["room", "origin", "number"])


SUBJECTS: dict[str, Callable[[DataFrame], DataFrame]] = {
    NOTHING: lambda stream: stream,
    OURS: lambda stream: streaming.causal_order(stream, group="room"),
    EMPTY: _empty_rows,
    f"{EMPTY}InPandas": _empty_pandas,
    "dropDuplicatesWithinWatermark": _distinct,
}
