"""What a checkpoint holds, and what a query that cannot go on from it says."""

from __future__ import annotations

import json
import logging
import math
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from ordercast.errors import CheckpointError, OrdercastError, SetupError
from ordercast.pipeline.jvm import deferred
from ordercast.pipeline.streaming.bucket import Bucket, lacking, oldest_of
from ordercast.pipeline.streaming.form import Form
from ordercast.pipeline.streaming.processor import COUNTS, HELD
from ordercast.pipeline.streaming.progress import Oldest, Progress
from ordercast.pipeline.streaming.state import (
    read_counts,
    read_form,
    read_held,
    require_form,
    write_form,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = [
    "await_query",
    "held",
    "in_one_sentence",
    "in_sentences",
    "last_batch",
    "partitions_of",
    "resumed",
]

_LISTEN_S = 0.2
_ADDED = "arrived timestamp, waited_s double, waits_for string"


def held(spark: SparkSession, checkpoint: str | Path, *, operator: int = 0) -> DataFrame:
    """The messages that wait in a checkpoint, as of its last batch.

    out: the columns of the stream; `arrived`, `waited_s` until now, and `waits_for`, the numbers
    that are lacking, such as `b:4..7`. `operator` is for queries with other stateful operators.
    """
    both, form = _state(spark, str(checkpoint), operator)
    if form is None:
        raise CheckpointError(f"{checkpoint} has no state yet: no message has come")
    schema = ", ".join((form.schema.removeprefix("struct<").removesuffix(">"), _ADDED))
    return both.mapInArrow(_waiting(form), schema)


def resumed(spark: SparkSession, checkpoint: str | Path, form: Form | None = None) -> Progress:
    """What a query finds that goes on from a checkpoint, or begins with one. If it is to go on in a
    form that it was not begun in, that is refused."""
    committed = Path(checkpoint, "commits")
    if not committed.is_dir() or not any(file.name.isdecimal() for file in committed.iterdir()):
        return Progress()
    both, begun = _state(spark, str(checkpoint), 0)
    if form is not None:
        _require_timers(spark, str(checkpoint), form)
    if begun is None:
        return Progress()
    if form is not None:
        require_form(write_form(begun), form)
    rows = both.mapInArrow(_summed(begun), "bucket int, held long, oldest_ms long, oldest string")
    return Progress(buckets={row[0]: Oldest(*row[1:]) for row in rows.collect()})


def last_batch(checkpoint: str | Path) -> int | None:
    """The last that a query has begun with; None if it begins with the checkpoint."""
    begun = Path(checkpoint, "offsets").glob("*")
    return max((int(file.name) for file in begun if file.name.isdecimal()), default=None)


def partitions_of(checkpoint: str | Path) -> int | None:
    """How many shuffle partitions a query has that goes on from a checkpoint: as many as when it
    was begun, whatever the session says. None if it begins with it."""
    last = last_batch(checkpoint)
    if last is None:
        return None
    told = Path(checkpoint, "offsets", str(last)).read_text().splitlines()
    try:
        return int(json.loads(told[1])["conf"]["spark.sql.shuffle.partitions"])
    except (IndexError, KeyError, ValueError):
        raise CheckpointError(f"{checkpoint} is no checkpoint that Spark can go on from") from None


def _state(spark: SparkSession, path: str, operator: int) -> tuple[DataFrame, Form | None]:
    """A row for each bucket that a message has come to: its number, COUNTS and HELD. And the form
    that they were made for; none if nothing has come, but empty files."""

    def state(name: str) -> DataFrame:
        reader = spark.read.format("statestore").option("operatorId", operator)
        found = reader.option("stateVarName", name).load(path)
        return found.selectExpr("key.bucket as bucket", f"value.value as {name}")

    try:
        counts = state(COUNTS)
        both = counts.join(state(HELD), "bucket")
        first = counts.head()
    except PySparkException as error:
        raise CheckpointError(
            f"{path} has no state of an order: is it the checkpoint of such a query, and has a "
            f"batch of it ended? ({_first_line(error)})"
        ) from None
    return both, None if first is None else read_form(bytes(first[1]))


def _require_timers(spark: SparkSession, path: str, form: Form) -> None:
    """As Spark will say it itself, but only when there is a batch."""
    operators = spark.read.format("state-metadata").load(path).where("operatorId = 0")
    (properties,) = operators.select("operatorProperties").head() or ("{}",)
    timed = json.loads(properties).get("timeMode", "NoTime") != "NoTime"
    if timed != form.expires:
        raise CheckpointError(f"{_TIMED if timed else _UNTIMED}: {_ELSE}")


def _summed(form: Form) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """in: as `_state` has it; out: the bucket, and `progress.Oldest`"""

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = [oldest_of(_bucket(row, form)) for row in batch.to_pylist()]
            columns = [batch.column("bucket").to_pylist(), *zip(*found, strict=True)]
            kinds = (pa.int32(), pa.int64(), pa.int64(), pa.string())
            arrays = [pa.array(values, kind) for values, kind in zip(columns, kinds, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, ["bucket", *Oldest._fields])

    return rows


def _bucket(row: dict[str, Any], form: Form) -> Bucket:
    return Bucket(form, read_counts(row[COUNTS], form), read_held(row[HELD], form))


def _waiting(form: Form) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """in: as `_state` has it; out: the rows that are held, and `_ADDED`"""

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        now_ms = time.time() * 1000
        for batch in batches:
            for row in batch.to_pylist():
                bucket = _bucket(row, form)
                found = bucket.held
                arrived = [datetime.fromtimestamp(ms / 1000, UTC) for ms in found.arrived_ms]
                table = (
                    found.rows.append_column(
                        "arrived", pa.array(arrived, pa.timestamp("us", "UTC"))
                    )
                    .append_column("waited_s", pa.array((now_ms - found.arrived_ms) / 1000))
                    .append_column("waits_for", pa.array(lacking(bucket), pa.string()))
                )
                yield from table.to_batches()

    return rows


@contextmanager
def in_sentences() -> Iterator[None]:
    """Within it, what Spark throws is an `OrdercastError`: of a query, its own words or Spark's."""
    quiet = logging.getLogger("DataFrameQueryContextLogger")
    before, quiet.disabled = quiet.disabled, True
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise in_one_sentence(error) from None
    finally:
        quiet.disabled = before


def await_query(query: StreamingQuery, timeout_s: float | None = None) -> bool:
    """`query.awaitTermination`, whose errors are sentences. Returns whether it has ended.

    Ctrl-C is heard between two short calls: in the middle of one, the bridge to Spark would
    complain at length.
    """
    end_s = math.inf if timeout_s is None else time.monotonic() + timeout_s
    with in_sentences():
        while True:
            left_s = end_s - time.monotonic()
            with deferred():
                ended = query.awaitTermination(min(max(left_s, 0.001), _LISTEN_S))  # type: ignore[arg-type]
            if ended or left_s <= _LISTEN_S:
                return bool(ended)


_OURS = re.compile(r"ordercast\.errors\.(\w+): ([^\n]+)")
_THEIRS = re.compile(r"\[((?:STATE|STREAMING_STATE|STDS)[A-Z_.]*)\] ([^\n]+)")
_PYTHON = re.compile(r"^(?:: )?(\w[\w.]*(?:Error|Exception): .+)$", re.MULTILINE)
_FULL = "No space left on device"
_ELSE = "go on as the query was begun, or begin with a new checkpoint"
_UNTIMED = "this checkpoint was made without a time to wait, and now there is one"
_TIMED = "this checkpoint was made with a time to wait, and now there is none"
_PLAINLY = {
    "Cannot change timeMode from NoTime": _UNTIMED,
    "Cannot change timeMode": _TIMED,
    "operator name does not match": (
        "this checkpoint is that of another query, or of an older ordercast"
    ),
    "state directory is empty or missing": (
        "this checkpoint is that of another query, or its state was removed"
    ),
}
"""What Spark's words mean here."""


def in_one_sentence(error: Exception) -> OrdercastError:
    """What a failed query means: our own words, if a task of ours said them; else Spark's."""
    words = str(error)
    if ours := _OURS.search(words):
        return CheckpointError(ours[2]) if ours[1] == "CheckpointError" else SetupError(ours[2])
    if theirs := _THEIRS.search(words):
        plainly = next((ours for told, ours in _PLAINLY.items() if told in theirs[2]), None)
        sentence = theirs[2].split(" SQLSTATE")[0].rstrip(". ")
        return CheckpointError(
            f"{plainly or f'Spark does not go on from this checkpoint: {sentence}'}: {_ELSE}"
        )
    if any(_FULL in one for one in (words, *_causes(error))):
        return SetupError(
            "the query has failed, because a disk is full: make room where its checkpoint, its "
            "output and temporary files (TMPDIR) are, and it goes on from its checkpoint"
        )
    last = _PYTHON.findall(words)
    return SetupError(f"the query has failed: {last[-1] if last else _first_line(error)}")


def _causes(error: Any) -> Iterator[str]:
    """What Java says of what was behind it, which Spark leaves out of its own words."""
    cause = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    while cause is not None:
        yield str(cause.toString())
        cause = cause.getCause()


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    first = lines[0] if lines else type(error).__name__
    return first.split(" SQLSTATE")[0].rpartition("terminated with exception: ")[2]
