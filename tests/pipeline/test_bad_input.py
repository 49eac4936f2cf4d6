"""A trace that cannot be used is refused, in a sentence that says where and why."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ordercast import pipeline
from ordercast.errors import TraceError, UsageError
from ordercast.pipeline.rows import Piece, load
from ordercast.pipeline.source import inspect
from ordercast.trace.event import Event
from ordercast.trace.jsonl import encode_event
from ordercast.trace.manifest import Manifest
from ordercast.trace.parquet import arrow_schema, read_parquet

from .builders import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOUND = {"run": "r", "process": 0, "position": 0, "kind": "join", "origin": None, "number": None}
SEND = {**SOUND, "kind": "send", "origin": 0, "number": 1}
# As wide as Parquet can hold, so that every row below can be written at all.
WIDE = pa.schema(
    {
        "run": pa.string(),
        "process": pa.int64(),
        "position": pa.int64(),
        "kind": pa.string(),
        "origin": pa.int64(),
        "number": pa.int64(),
        "destinations": pa.list_(pa.int64()),
    }
)


def parquet(file: Path, rows: list[dict[str, Any]], schema: pa.Schema = WIDE) -> Path:
    pq.write_table(pa.Table.from_pylist(rows, schema), file)
    return file


def refusal(path: Path, spark: SparkSession | None = None) -> str:
    with pytest.raises(TraceError) as caught:
        pipeline.judge(path, spark=spark)
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence


# What can be seen without Spark is told without it: no session is handed in.


@pytest.mark.parametrize("name", ["run", "process", "position", "kind", "origin", "number"])
def test_a_required_column_is_missing(tmp_path: Path, name: str) -> None:
    file = parquet(tmp_path / "events.parquet", [SOUND], WIDE.remove(WIDE.get_field_index(name)))
    assert refusal(file) == f"{file}: the column {name!r} is missing"


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("run", pa.int64(), "the column 'run' is of type int64, not a string"),
        ("kind", pa.null(), "the column 'kind' is of type null, not a string"),
        ("position", pa.string(), "the column 'position' is of type string, not an integer"),
        (
            "origin",
            pa.float64(),
            "the column 'origin' is of type double, not an integer; pandas has Int64 for them",
        ),
        (
            "destinations",
            pa.list_(pa.string()),
            "the column 'destinations' is of type list<element: string>, not a list of integers",
        ),
        (
            "destinations",
            pa.int32(),
            "the column 'destinations' is of type int32, not a list of integers",
        ),
    ],
)
def test_a_column_of_the_wrong_type(
    tmp_path: Path, name: str, kind: pa.DataType, words: str
) -> None:
    schema = WIDE.set(WIDE.get_field_index(name), pa.field(name, kind))
    file = parquet(tmp_path / "events.parquet", [], schema)
    assert refusal(file) == f"{file}: {words}"


def test_a_file_that_is_not_parquet(tmp_path: Path) -> None:
    file = tmp_path / "events.parquet"
    file.write_bytes(b"neither this nor that")
    assert refusal(file).startswith(f"{file}: not a readable Parquet file: ")


def test_no_such_trace(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none") == f"{tmp_path / 'none'}: there is no such file or directory"


def test_a_broken_manifest(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_bytes(encode_event(Event("r", 0, 0, "join")))
    (tmp_path / "manifest.jsonl").write_text("{}\n")
    assert refusal(tmp_path).startswith(f"{tmp_path / 'manifest.jsonl'}, line 1: not a manifest")


def test_no_such_order(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_bytes(encode_event(Event("r", 0, 0, "join")))
    with pytest.raises(UsageError, match="there is no order 'fifu'"):
        pipeline.judge(tmp_path, order="fifu")


# Rows, one by one.

NO_KIND = (
    "not an event: there is no kind 'sent', only send, receive, deliver, crash, recover, join, "
    "leave"
)
FLAWS = [
    ({**SOUND, "run": None}, "not an event: run is null"),
    ({**SOUND, "process": None}, "not an event: process is null"),
    ({**SOUND, "position": None}, "not an event: position is null"),
    ({**SOUND, "kind": None}, "not an event: kind is null"),
    ({**SOUND, "process": -1}, "not an event: process must be from 0 to 2147483647"),
    ({**SOUND, "process": 2**31}, "not an event: process must be from 0 to 2147483647"),
    ({**SOUND, "position": -1}, "not an event: position must be from 0 to 9223372036854775807"),
    ({**SEND, "origin": 2**40}, "not an event: origin must be from 0 to 2147483647"),
    ({**SEND, "number": 0}, "not an event: number must be from 1 to 9223372036854775807"),
    ({**SEND, "number": -(2**63)}, "not an event: number must be from 1 to 9223372036854775807"),
    ({**SEND, "destinations": [0, -1]}, "not an event: destinations must be from 0 to 2147483647"),
    ({**SEND, "destinations": [None]}, "not an event: destinations must be from 0 to 2147483647"),
    ({**SOUND, "kind": "sent"}, NO_KIND),
    ({**SEND, "number": None}, "a 'send' row needs both origin and number"),
    ({**SEND, "kind": "deliver", "origin": None}, "a 'deliver' row needs both origin and number"),
    ({**SEND, "origin": 4}, "process 0 cannot send a message whose origin is 4"),
    (
        {**SEND, "kind": "crash"},
        "a 'crash' row has no message, so origin and number must be null",
    ),
]


def test_every_rule_for_a_row(tmp_path: Path) -> None:
    rows = [SOUND, SEND, *(row for row, _ in FLAWS), {**SEND, "destinations": [3, 0, 3]}]
    file = parquet(tmp_path / "events.parquet", rows)
    events, found = load(group.piece for group in inspect(file).groups)
    assert [(row["row"], row["flaw"]) for row in found.to_pylist()] == [
        (place, words) for place, (_, words) in enumerate(FLAWS, start=3)
    ]
    assert len(events) == 3


def test_the_plain_reader_refuses_the_same_rows(tmp_path: Path) -> None:
    for index, (row, words) in enumerate(FLAWS):
        file = parquet(tmp_path / f"{index}.parquet", [row])
        with pytest.raises(TraceError) as caught:
            list(read_parquet(file))
        if words == NO_KIND or not words.startswith("not an event"):
            assert str(caught.value) == f"{file}, row 1: {words}"


@pytest.mark.parametrize("name", ["process", "position", "origin", "number"])
def test_numbers_without_a_sign_may_be_too_large_for_those_with_one(
    tmp_path: Path, name: str
) -> None:
    place = WIDE.get_field_index(name)
    wide = WIDE.set(place, pa.field(name, pa.uint64()))
    file = parquet(tmp_path / "events.parquet", [SEND, {**SEND, name: 2**64 - 1}], wide)
    events, flaws = load(group.piece for group in inspect(file).groups)
    assert len(events) == 1
    assert f"not an event: {name} must be from" in flaws["flaw"][0].as_py()


@pytest.mark.parametrize("name", ["time_us", "bytes"])
def test_a_measure_that_is_too_large_is_none(tmp_path: Path, name: str) -> None:
    wide = WIDE.append(pa.field(name, pa.uint64()))
    rows = [SEND, {**SEND, "position": 1, "number": 2, name: 2**64 - 1}, {**SEND, name: 5}]
    file = parquet(tmp_path / "events.parquet", rows, wide)
    events, flaws = load((group.piece for group in inspect(file).groups), measured=True)
    assert events[name].to_pylist() == [None, None, 5]
    assert not len(flaws)


def test_the_first_broken_row_is_named(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    rows = [{**SOUND, "position": position} for position in range(6)]
    rows[3]["kind"] = "sent"
    rows[4]["run"] = rows[5]["process"] = None
    parquet(tmp_path / "events" / "a a.parquet", [{**SOUND, "process": 1}])
    file = parquet(tmp_path / "events" / "b b.parquet", rows)
    assert refusal(tmp_path, spark) == f"{file}, row 4: {NO_KIND}"


def test_the_first_broken_line_is_named(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "a.jsonl").write_bytes(encode_event(Event("r", 1, 0, "join")))
    file = tmp_path / "events" / "b.jsonl"
    lines = [encode_event(Event("r", 0, position, "join")) for position in range(4)]
    file.write_bytes(b"\n".join([*lines, b'{"run": "r", "process": 0, "posit', b"[]\n"]))
    # Lines end twice here, so every other one is empty: the broken one is the ninth.
    assert refusal(tmp_path, spark).startswith(f"{file}, line 9: not an event: ")


# Rows that are sound each for itself, and cannot be true together.


def contradiction(tmp_path: Path, spark: SparkSession, rows: list[Event], *names: str) -> str:
    (tmp_path / "events.jsonl").write_bytes(b"".join(map(encode_event, rows)))
    if names:
        (tmp_path / "manifest.jsonl").write_bytes(Manifest("r", names).to_json())
    sentence = refusal(tmp_path, spark)
    assert sentence.startswith(f"{tmp_path}: run 'r' has ")
    return sentence.removeprefix(f"{tmp_path}: run 'r' has ")


def test_two_events_at_one_position(spark: SparkSession, tmp_path: Path) -> None:
    rows = [*run("r", "join s1 d0:1", "join").events, Event("r", 0, 2, "leave")]
    assert contradiction(tmp_path, spark, rows) == "two events of process 0 at position 2"


def test_one_message_sent_twice(spark: SparkSession, tmp_path: Path) -> None:
    rows = [*run("r", "", "s7 s3 d1:7 s7").events]
    assert contradiction(tmp_path, spark, rows) == "two send rows for 1:7"


def test_a_process_that_the_manifest_does_not_know(spark: SparkSession, tmp_path: Path) -> None:
    rows = [*run("r", "join", "join").events]
    assert contradiction(tmp_path, spark, rows, "a") == (
        "events of process 1, but its manifest names 1 process"
    )


def test_a_destination_that_the_manifest_does_not_know(spark: SparkSession, tmp_path: Path) -> None:
    rows = [*run("r", "s1>1", "s1>0,2").events]
    assert contradiction(tmp_path, spark, rows, "a", "b") == (
        "a message of process 1 for process 2, but its manifest names 2 processes"
    )


def test_no_event_at_all(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text("\n\n")
    (tmp_path / "manifest.jsonl").write_bytes(Manifest("r", ("a",)).to_json())
    assert refusal(tmp_path, spark) == f"{tmp_path}: there is no event in it"
    file = parquet(tmp_path / "empty.parquet", [], arrow_schema())
    assert refusal(file, spark) == f"{file}: there is no event in it"


def test_a_parquet_file_that_is_damaged_inside(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "events.parquet"
    rows = [{**SOUND, "position": position} for position in range(1000)]
    pq.write_table(pa.Table.from_pylist(rows, WIDE), file, compression="snappy")
    damaged = bytearray(file.read_bytes())
    damaged[10:400] = bytes(390)
    file.write_bytes(damaged)
    assert refusal(file, spark) == f"{file}: not a readable Parquet file"
    with pytest.raises(TraceError, match="not a readable Parquet file: ") as caught:
        list(read_parquet(file))
    assert "\n" not in str(caught.value)


def test_a_directory_with_the_name_of_a_file(spark: SparkSession, tmp_path: Path) -> None:
    """Refused or skipped alike, on Spark and here, as lines and as columns."""
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "a.jsonl").write_bytes(encode_event(Event("r", 0, 0, "join")))
    for form in ("jsonl", "parquet"):
        file = tmp_path / "events" / f"dir.{form}"
        file.mkdir()
        words = f"{file}: it is a directory, and not a file of events: move what is in it to "
        assert refusal(tmp_path, spark).startswith(words)
        with pytest.raises(TraceError) as caught:
            pipeline.judge(tmp_path, here=True)
        assert str(caught.value).startswith(words)
        [(name, why)] = inspect(tmp_path, skip=True).unreadable
        assert f"{name}: {why}".startswith(words)
        file.rmdir()


def test_lines_that_a_worker_cannot_read(tmp_path: Path) -> None:
    """What it says is said of the file, and not of the worker."""
    events, flaws = load([Piece(str(tmp_path), str(tmp_path))], measured=True)
    assert not len(events)
    assert flaws.to_pylist() == [
        {"file": str(tmp_path), "row": None, "flaw": "cannot be read: Is a directory", "run": None}
    ]


def test_what_is_compressed_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "a.jsonl").write_bytes(encode_event(Event("r", 0, 0, "join")))
    (tmp_path / "events" / "b.jsonl.gz").touch()
    for here in (True, False):
        with pytest.raises(TraceError, match=r"b\.jsonl\.gz: it is compressed"):
            pipeline.judge(tmp_path, here=here)
