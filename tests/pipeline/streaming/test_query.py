"""The operator in real queries of several batches, and what is told of them."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path
from random import Random
from threading import Timer
from typing import TYPE_CHECKING, Any, cast

import pyarrow.dataset as ds
import pytest
from pyspark.sql import functions as F

from ordercast.errors import CheckpointError, SetupError, UsageError
from ordercast.pipeline import streaming
from ordercast.pipeline.streaming import checkpoint

from .builders import sent, shuffled
from .conftest import COLUMNS, Writer, run, stream
from .oracle import Message, Oracle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Seen:
    """A sink that keeps what it sees, and a batch that comes again once."""

    def __init__(self) -> None:
        self.batches: dict[int, list[Any]] = {}

    def __call__(self, batch: DataFrame, number: int) -> None:
        self.batches[number] = batch.collect()

    @property
    def rows(self) -> list[Any]:
        return [row for _, rows in sorted(self.batches.items()) for row in rows]

    def labels(self, group: str) -> list[int]:
        return [row.label for row in self.rows if row.room == group]


def test_several_batches_give_what_the_oracle_gives(
    stateful: SparkSession, files: Writer, tmp_path: Path
) -> None:
    random = Random(5)
    messages = sent(random, groups=4, origins=3, messages=120)
    lost = next(m for m in messages if m.group == "g0" and m.number == 12)
    messages = shuffled(random, messages + messages[:10], reach=40)
    kept = [m for m in messages if m is not lost]
    directory = files([kept[at : at + 50] for at in range(0, len(kept), 50)], width=3)
    ordered = streaming.causal_order(stream(stateful, directory), group="room")
    seen, oracle = Seen(), Oracle()
    query = run(ordered, tmp_path / "state", seen)
    for message in kept:
        oracle.arrive(message, 0)
    for group in ("g0", "g1", "g2", "g3"):
        mine = [m.label for m, _ in oracle.out if m.group == group]
        assert seen.labels(group) == mine
        assert [row.position for row in seen.rows if row.room == group] == list(range(len(mine)))
    assert len(seen.batches) == 3

    told = streaming.progress_table(stateful, query).orderBy("batch").collect()
    assert sum(row.rows for row in told) == len(kept)
    assert sum(row.released for row in told) == len(oracle.out)
    assert sum(row.duplicates for row in told) == len(kept) - len(oracle.out) - len(oracle.held)
    assert told[-1].held == len(oracle.held) > 0
    oldest = oracle.held[0][0]
    assert told[-1].oldest.startswith(f"{oldest.origin}:{oldest.number} of g0 waits for ")

    waiting = streaming.held(stateful, tmp_path / "state").collect()
    assert sorted(row.label for row in waiting) == sorted(m.label for m, _ in oracle.held)
    assert all(row.waited_s > 0 and row.arrived is not None for row in waiting)
    first = min(waiting, key=lambda row: row.label)
    assert f"{lost.origin}:{lost.number}" in first.waits_for
    assert streaming.resumed(stateful, tmp_path / "state").held == len(oracle.held)

    # It goes on from its checkpoint, and only as it was begun.
    files([[lost]], width=3)
    again = streaming.causal_order(stream(stateful, directory), group="room")
    run(again, tmp_path / "state", seen)
    assert len(seen.rows) == len(oracle.out) + len(oracle.held) + 1
    files([[lost]], width=3)
    foreign = stream(stateful, directory).dropDuplicates(["label"])
    with pytest.raises(CheckpointError, match="another query, or of an older ordercast: go "):
        run(foreign, tmp_path / "state", seen)
    shutil.rmtree(tmp_path / "state" / "state")
    with pytest.raises(CheckpointError, match="that of another query, or its state was removed: "):
        run(again, tmp_path / "state", seen)


def test_what_waits_too_long_goes_without_new_input(
    stateful: SparkSession, files: Writer, tmp_path: Path
) -> None:
    stateful.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "true")
    directory = files([[Message("g", 0, 2, (), 2), Message("g", 0, 3, (), 3)]], width=1)
    source = stream(stateful, directory)
    ordered = streaming.causal_order(source, group="room", wait="100ms", policy="release")
    sink = streaming.DirectorySink(tmp_path / "ordered", tmp_path / "aside")
    watcher = streaming.start(ordered, sink, tmp_path / "state", trigger_ms=100)
    try:
        for _ in range(400):
            assert not streaming.await_query(watcher.query, 0.5)
            list(watcher.news())
            if watcher.progress.counts["gaps"]:
                break
    finally:
        watcher.query.stop()
    rows = ds.dataset(tmp_path / "ordered", partitioning="hive").to_table().to_pylist()
    assert [(row["label"], row["outcome"], row["why"]) for row in rows] == [
        (2, "gap", "released without 0:1"), (3, "released", None),
    ]  # fmt: skip
    assert watcher.progress.held == 0

    # Batches are equal if they run again, unless the policy was changed before that.
    [before] = (tmp_path / "ordered").glob("batch=*")
    columns = "label long, position long, outcome string"
    other = stateful.createDataFrame([(2, None, "expired")], columns)
    sink(other, int(before.name.removeprefix("batch=")))
    assert (tmp_path / "aside" / before.name).is_dir()
    assert not before.exists()


class Thrown(Exception):  # noqa: N818
    """As the bridge to Spark has it: what was behind it is only Java's to tell."""

    def __init__(self, *words: str) -> None:
        super().__init__(words[0])
        self._words = words
        self._origin = self

    def toString(self) -> str:  # noqa: N802
        return self._words[0]

    def getCause(self) -> Thrown | None:  # noqa: N802
        return Thrown(*self._words[1:]) if self._words[1:] else None


def test_a_full_disk_is_told_as_such() -> None:
    error = Thrown("[CANNOT_WRITE_STATE_STORE] Error", "FSError", "No space left on device")
    assert "because a disk is full: make room" in str(checkpoint.in_one_sentence(error))
    assert "disk" not in str(checkpoint.in_one_sentence(Thrown("a", "b")))


def test_empty_files_bind_a_checkpoint_to_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their batches end without a state."""
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "0").touch()
    monkeypatch.setattr(checkpoint, "_state", lambda *_: (None, None))
    assert streaming.resumed(cast("SparkSession", None), tmp_path) == streaming.Progress()
    with pytest.raises(CheckpointError, match=f"{tmp_path} has no state yet: no message has come"):
        streaming.held(cast("SparkSession", None), tmp_path)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("NoTime to ProcessingTime", "without a time to wait, and now there is one: go on as"),
        ("ProcessingTime to NoTime", "with a time to wait, and now there is none: go on as the"),
    ],
)
def test_what_spark_says_of_timers_is_said_plainly(change: str, sentence: str) -> None:
    words = f"[STATE_STORE_INVALID_CONFIG_AFTER_RESTART] Cannot change timeMode from {change} betw"
    told = checkpoint.in_one_sentence(Exception(f"Query [id = 1] terminated: {words}"))
    assert isinstance(told, CheckpointError)
    assert f"this checkpoint was made {sentence}" in str(told)


def test_ctrl_c_is_heard_while_a_query_is_awaited_and_nothing_else_is(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    """In the middle of a call, the bridge to Spark would log a traceback and lose the answer."""
    query = spark.readStream.format("rate").load().writeStream.format("noop").start()
    theirs = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            streaming.await_query(query, 200)
        assert not streaming.await_query(query, 0)
    finally:
        signal.signal(signal.SIGINT, theirs)
        query.stop()
    assert streaming.await_query(query)
    assert caplog.records == []


def test_any_stream_will_do_such_as_kafka_s(
    stateful: SparkSession, files: Writer, tmp_path: Path
) -> None:
    """Kafka's connector gives a binary `value`; here it comes from files."""
    directory = files([[Message("g", 0, 2, (), 2), Message("g", 0, 1, (), 1)]], width=1)
    text = stateful.readStream.text(str(directory))
    records = text.select(F.col("value").cast("binary"))
    schema = "room string, origin int, number long, stamp array<long>, label long"
    parsed = F.from_json(F.col("value").cast("string"), schema)
    messages = records.select(parsed.alias("m")).select("m.*")
    seen = Seen()
    run(streaming.causal_order(messages, group="room"), tmp_path / "state", seen)
    assert seen.labels("g") == [1, 2]


EVERY_KIND = {
    "map": "map('a', label, 'b', null)",
    "structs": "array(named_struct('x', label, 'y', array(string(label))), null)",
    "times": "named_struct('t', timestamp_seconds(label), 'more', array(timestamp_seconds(1)))",
    "time": "timestamp_seconds(label)",
    "wall_time": "timestamp_ntz'2026-03-29 02:30:00'",
    "day": "date_from_unix_date(label)",
    "lapse": "make_dt_interval(label, 1, 2, 3.5)",
    "exact": "cast(label as decimal(30, 5))",
    "octets": "cast('word' as binary)",
    "flag": "label = 1",
    "real": "label / 3",
    "sometimes": "if(label = 1, null, label)",
    "variant": "parse_json('{\"a\": [1]}')",
    "constant": "'never null'",
}


def test_columns_of_every_kind_come_out_as_they_went_in(
    stateful: SparkSession, files: Writer, tmp_path: Path
) -> None:
    """Also those that are never null, of a batch from which nothing comes out."""
    batches = [[Message("g", 0, number, (), number)] for number in (3, 2, 1)]
    columns = [f"{made} as {name}" for name, made in EVERY_KIND.items()]
    directory = files(batches, width=1)
    messages = stream(stateful, directory).selectExpr("*", *columns)
    ordered, seen = streaming.causal_order(messages, group="room"), Seen()
    # A row that tells of a step has none of them: Spark may not take their presence for granted.
    assert not messages.schema["constant"].nullable
    assert ordered.schema["constant"].nullable
    run(ordered, tmp_path / "state", seen)
    [*_, last] = seen.batches.values()
    assert [row.label for row in last] == [1, 2, 3]
    still = stateful.read.schema(COLUMNS).json(str(directory)).selectExpr("*", *columns)
    went_in = sorted(still.collect(), key=lambda row: row.label)
    # As words: two variants are never equal.
    assert [str(row[: len(still.columns)]) for row in last] == [str(tuple(row)) for row in went_in]


def test_a_watermark_goes_through_and_windows_can_be_counted_behind_it(
    stateful: SparkSession, files: Writer, tmp_path: Path
) -> None:
    """What was held until its window was closed is released, and it is Spark that leaves it out."""
    held, lacking = Message("g", 0, 3, (), 20), Message("g", 0, 2, (), 310)
    others = [[Message("h", 0, number, (), 300)] for number in (1, 2)]
    batches = [[Message("g", 0, 1, (), 0), held], *others, [lacking]]
    messages = stream(stateful, files(batches, width=1))
    marked = messages.withColumn("time", F.timestamp_seconds("label"))
    marked = marked.withWatermark("time", "10 seconds")
    ordered = streaming.causal_order(marked, group="room")
    assert ordered.schema["time"] == marked.schema["time"]
    seen = Seen()
    query = run(ordered.groupBy(F.window("time", "30 seconds")).count(), tmp_path / "state", seen)
    [row] = seen.rows
    assert (row.window.start.timestamp(), row["count"]) == (0, 1)
    told = query.recentProgress
    assert sum(row["released"] for row in streaming.Watcher(query).news()) == 5
    dropped = [operator.numRowsDroppedByWatermark for operator in told[-1].stateOperators]
    assert sum(dropped) == 1


def test_what_a_session_lacks_is_one_sentence(
    stateful: SparkSession, files: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = files([[Message("g", 0, 1)]], width=1)
    with pytest.raises(UsageError, match="this DataFrame is no stream: read it with"):
        streaming.fifo_order(stateful.read.json(str(directory)), group="room")
    key = "spark.sql.streaming.stateStore.providerClass"
    kept = stateful.conf.get(key)
    stateful.conf.unset(key)
    with pytest.raises(SetupError, match=f'kept in RocksDB: spark.conf.set\\("{key}", "org.apache'):
        streaming.fifo_order(stream(stateful, directory), group="room")
    stateful.conf.set(key, str(kept))
    monkeypatch.setitem(sys.modules, "google.protobuf.descriptor", None)
    with pytest.raises(SetupError, match="only with protobuf, which is not installed here: pip"):
        streaming.fifo_order(stream(stateful, directory), group="room")
    with pytest.raises(CheckpointError, match="has no state of an order: is it the checkpoint"):
        streaming.held(stateful, directory)
