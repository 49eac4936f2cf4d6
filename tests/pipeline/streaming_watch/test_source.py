"""Following files that others write: nothing is lost, nothing is read twice, whatever happens."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes

from ordercast.errors import TraceError, UsageError
from ordercast.pipeline import judge
from ordercast.pipeline.streaming.source import OrdercastSource, TraceStream, register
from ordercast.trace.event import Event
from ordercast.trace.jsonl import encode_event
from ordercast.trace.manifest import Manifest
from ordercast.trace.parquet import to_table, write_parquet
from ordercast.trace.span_log import SpanLog
from ordercast.trace.spans import Span, rows_of

from ..builders import run, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MANIFEST = Manifest("r", ("a", "b"), order="causal_vector")
EVENTS = run("r", "s1 d0:1 s2>0 d0:2", "d0:1 join").events


class Reader:
    """A query that reads on, and may be killed between any two batches."""

    def __init__(self, path: Path, **options: Any) -> None:
        self.path = path
        self.options = {"manifests": "true", **options}
        self.offset = "{}"
        self.rows: list[Event] = []
        self.manifests: list[Manifest] = []
        self.restart()

    def restart(self) -> None:
        """What a new query has is the offset, as JSON."""
        source = OrdercastSource({"path": str(self.path), **self.options})
        self.stream: TraceStream = source.streamReader(None)
        if self.offset == "{}":
            self.offset = json.dumps(self.stream.initialOffset())

    def read(self, *, everything: bool = False) -> int:
        limit = ReadAllAvailable() if everything else ReadMaxBytes(1)
        start = json.loads(self.offset)
        end = json.loads(json.dumps(self.stream.latestOffset(start, limit)))
        before = len(self.rows)
        for part in self.stream.partitions(start, end):
            for batch in self.stream.read(part):
                self._take(batch)
        self.offset = json.dumps(end)
        return len(self.rows) - before

    def read_all(self) -> None:
        while self.read():
            pass

    def _take(self, batch: pa.RecordBatch) -> None:
        for row in batch.to_pylist():
            line = row.pop("manifest", None)
            if line is not None:
                self.manifests.append(Manifest.from_json(line, where=""))
            else:
                to = row.pop("destinations")
                self.rows.append(Event(**row, destinations=None if to is None else tuple(to)))


def spans(random: Random, count: int) -> list[Span]:
    made, number = [], 1
    for _ in range(count):
        size = random.randint(1, 5)
        made.append(Span("send", 1000, 0, number, size, 8, size, None))
        number += size
    return made


def expected(written: list[Span]) -> list[Event]:
    rows: list[Event] = []
    for span in written:
        rows += rows_of(span, run="r", process=0, position=len(rows))
    return rows


@pytest.mark.parametrize("seed", range(5))
def test_a_growing_log_is_read_once_through_rotations_torn_writes_and_restarts(
    tmp_path: Path, seed: int
) -> None:
    random = Random(seed)
    written = spans(random, 60)
    log = SpanLog(tmp_path, "a", run="r", process=0, manifest=MANIFEST, rotate_bytes=200)
    reader = Reader(tmp_path, max_bytes_per_batch=random.choice([1, 40, 10_000]))
    left = list(written)
    while left:
        size = random.randint(1, 6)
        log.write(left[:size])
        del left[:size]
        if random.random() < 0.3:
            newest = sorted(tmp_path.glob("*.spans"))[-1]
            with newest.open("ab") as torn:  # a writer that was killed half-way, and comes back
                torn.write(b"\x00\x00\x00\x50half a rec")
            reader.read()
            log.close()
            log = SpanLog(tmp_path, "a", run="r", process=0, manifest=MANIFEST, rotate_bytes=200)
        if random.random() < 0.5:
            reader.read()
        if random.random() < 0.3:
            reader.restart()
    log.close()
    assert len(list(tmp_path.glob("*.spans"))) > 1
    reader.read_all()
    assert sorted(reader.rows, key=lambda row: row.position) == expected(written)
    assert reader.manifests == [MANIFEST], "told once"


def test_an_unfinished_record_or_line_or_file_is_not_there_yet(tmp_path: Path) -> None:
    lines = [encode_event(event) for event in EVENTS]
    (tmp_path / "events").mkdir()
    growing = tmp_path / "events" / "a.jsonl"
    growing.write_bytes(lines[0] + lines[1][:-5])
    whole = tmp_path / "whole.parquet"
    write_parquet(EVENTS[3:], whole)
    data = whole.read_bytes()
    (tmp_path / "events" / "b.parquet").write_bytes(data[:-9])
    reader = Reader(tmp_path)
    assert reader.read(everything=True) == 1
    growing.write_bytes(lines[0] + lines[1] + lines[2])
    (tmp_path / "events" / "b.parquet").write_bytes(data)
    assert reader.read(everything=True) == 5
    assert reader.rows == [*EVENTS[:3], *EVENTS[3:]]
    assert reader.read() == 0


def test_files_that_appear_later_are_followed(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    assert reader.read() == 0
    (tmp_path / "events.jsonl").write_bytes(encode_event(EVENTS[0]))
    assert reader.read(everything=True) == 1
    (tmp_path / "events").mkdir()
    write_parquet(EVENTS[1:], tmp_path / "events" / "late.parquet")
    assert reader.read(everything=True) == 5


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_the_end_of_a_run_is_told_when_everything_was_read(tmp_path: Path, format: str) -> None:
    done = run("r", "s1 d0:1", "d0:1")
    trace = write(tmp_path / "trace", [done], format)
    for file in trace.glob("events/*.parquet"):
        pq.write_table(to_table(done.events), file, row_group_size=1)
    reader = Reader(tmp_path / "trace", max_bytes_per_batch=60)
    told = []
    for _ in range(9):
        reader.read()
        told.append((len(reader.rows), reader.manifests[-1].quiesced))
    assert told[0] == (1, False)
    assert all(count == 3 for count, quiesced in told if quiesced)
    assert reader.manifests == [replace(done.manifest, quiesced=False), done.manifest]


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_half_a_line_or_file_is_waited_for_before_a_run_is_over(tmp_path: Path, name: str) -> None:
    """Though nothing of it can be read yet, and all else was."""
    done = run("r", "s1 d0:1", "d0:1")
    write(tmp_path / "trace", [done])
    (tmp_path / "trace" / "events").mkdir()
    late, data = tmp_path / "trace" / "events" / name, tmp_path / name
    put(data, [Event("r", 1, 1, "join")])
    late.write_bytes(data.read_bytes()[:-6])
    reader = Reader(tmp_path / "trace")
    for _ in range(3):
        reader.read(everything=True)
    assert (len(reader.rows), reader.manifests[-1].quiesced) == (3, False)
    late.write_bytes(data.read_bytes())
    reader.read(everything=True)
    assert (len(reader.rows), reader.manifests[-1].quiesced) == (4, True)


def test_a_run_is_not_over_before_anything_came_of_it(tmp_path: Path) -> None:
    """Whoever copies a trace may begin with the manifest."""
    done = run("r", "s1 d0:1", "d0:1")
    write(tmp_path / "trace", [done])
    (tmp_path / "copy").mkdir()
    reader = Reader(tmp_path / "copy")
    shutil.copy(tmp_path / "trace" / "manifest.jsonl", tmp_path / "copy")
    reader.read()
    shutil.copy(tmp_path / "trace" / "events.jsonl", tmp_path / "copy")
    reader.read(everything=True)
    assert [one.quiesced for one in reader.manifests] == [False, True]


def test_a_log_s_torn_end_has_not_happened_and_keeps_no_run_going(tmp_path: Path) -> None:
    with SpanLog(tmp_path, "a", run="r", process=0) as log:
        log.write(spans(Random(1), 5))
    with next(tmp_path.glob("*.spans")).open("ab") as torn:
        torn.write(b"\x00\x00\x00\x50half a rec")
    over = replace(MANIFEST, quiesced=True)
    (tmp_path / "manifest.jsonl").write_bytes(over.to_json() + b"\n")
    reader = Reader(tmp_path)
    reader.read(everything=True)
    assert reader.manifests == [over]


def test_where_nothing_follows_a_last_line_needs_no_end(tmp_path: Path) -> None:
    done = run("r", "s1 d0:1", "d0:1")
    file = write(tmp_path / "trace", [done]) / "events.jsonl"
    file.write_bytes(file.read_bytes().rstrip(b"\n"))
    reader = Reader(tmp_path / "trace")
    assert reader.read(everything=True) == 2
    reader.options["ended"] = "true"
    reader.restart()
    reader.stream.prepareForTriggerAvailableNow()
    assert reader.read(everything=True) == 1
    assert reader.manifests[-1] == done.manifest
    assert reader.read(everything=True) == 0
    with file.open("ab") as more:  # something followed after all
        more.write(b"\n" + encode_event(EVENTS[-1]) + b"{}")
    reader.restart()
    with pytest.raises(TraceError, match=r"events.jsonl, line 5: not an event"):
        reader.read(everything=True)
    with pytest.raises(TraceError, match=r"events.jsonl, line 5: not an event"):
        judge(tmp_path / "trace", here=True)


@pytest.mark.parametrize("name", ["events/a.parquet", "manifest.jsonl"])
def test_where_nothing_follows_half_a_file_is_refused_as_by_verify(
    tmp_path: Path, name: str
) -> None:
    trace = write(tmp_path / "trace", [run("r", "s1 d0:1", "d0:1")])
    (trace / "events").mkdir()
    write_parquet(EVENTS[4:], trace / "events" / "a.parquet")
    os.truncate(trace / name, (trace / name).stat().st_size - 9)
    assert told_by(lambda: Reader(trace, ended="true").read()) == told_by(
        lambda: judge(trace, here=True)
    )
    assert Reader(trace).read(everything=True) >= 3, "it may become whole"


def told_by(act: Callable[[], object]) -> str:
    with pytest.raises(TraceError) as refused:
        act()
    return str(refused.value)


@pytest.mark.parametrize(
    "name",
    [
        "events/a.jsonl.gz",
        "events.jsonl.zst",
        "manifest.jsonl.gz",
        "events/day/a.jsonl",
        "events/a.jsonl/part",
    ],
)
def test_what_verify_refuses_to_pass_over_is_not_passed_over(tmp_path: Path, name: str) -> None:
    (tmp_path / "events.jsonl").write_bytes(encode_event(EVENTS[0]))
    reader = Reader(tmp_path)
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_bytes(b"")
    assert told_by(reader.read) == told_by(lambda: judge(tmp_path, here=True))


def test_what_verify_passes_over_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "events" / "_temporary").mkdir(parents=True)
    for name in (".tmp-x.jsonl", "_x.jsonl", "_temporary/x.jsonl"):
        (tmp_path / "events" / name).write_bytes(encode_event(EVENTS[0]))
    reader = Reader(tmp_path)
    assert reader.read(everything=True) == 0
    (tmp_path / "events" / "x.jsonl").write_bytes(encode_event(EVENTS[0]))
    assert reader.read(everything=True) == 1


def test_a_batch_that_is_read_again_does_not_end_a_run_early(tmp_path: Path) -> None:
    """Killed after the offset was written: by then the manifest says more than it did."""
    going_on = replace(MANIFEST, quiesced=False)
    (tmp_path / "events.jsonl").write_bytes(b"".join(map(encode_event, EVENTS[:2])))
    (tmp_path / "manifest.jsonl").write_bytes(going_on.to_json() + b"\n")
    reader = Reader(tmp_path)
    start = reader.stream.initialOffset()
    end = reader.stream.latestOffset(start, ReadAllAvailable())
    ended = replace(MANIFEST, quiesced=True)
    (tmp_path / "manifest.jsonl").write_bytes(ended.to_json() + b"\n")
    reader.restart()
    for part in reader.stream.partitions(start, end):
        for batch in reader.stream.read(part):
            reader._take(batch)
    assert [one.quiesced for one in reader.manifests] == [False]
    reader.offset = json.dumps(end)
    reader.read()
    assert [one.quiesced for one in reader.manifests] == [False, True]


def test_a_manifest_that_is_just_being_written_can_wait(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_bytes(encode_event(EVENTS[0]))
    (tmp_path / "manifest.jsonl").write_bytes(MANIFEST.to_json()[:20])
    reader = Reader(tmp_path)
    assert reader.read(everything=True) == 1
    assert reader.manifests == []
    (tmp_path / "manifest.jsonl").write_bytes(MANIFEST.to_json() + b"\n")
    reader.read()
    assert reader.manifests == [MANIFEST]


def test_logs_beside_a_trace_are_not_read_twice(tmp_path: Path) -> None:
    """`verify` makes a trace of members' logs, in the same directory."""
    from ordercast.trace.gather import gather

    with SpanLog(tmp_path, "a", run="r", process=0, manifest=MANIFEST) as log:
        log.write(spans(Random(1), 5))
    reader = Reader(tmp_path)
    first = reader.read(everything=True)
    gather(tmp_path)
    assert first > 0
    assert reader.read(everything=True) == 0


def test_a_log_may_be_removed_once_it_was_read(tmp_path: Path) -> None:
    written = spans(Random(1), 40)
    with SpanLog(tmp_path, "a", run="r", process=0, rotate_bytes=100) as log:
        log.write(written[:1])
        reader = Reader(tmp_path)
        for span in written[1:]:
            log.write([span])
            reader.read(everything=True)
            for old in sorted(tmp_path.glob("*.spans"))[:-1]:
                old.unlink()
    assert reader.rows == expected(written)


def test_a_file_that_goes_before_it_was_read_is_missed(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_bytes(encode_event(EVENTS[0]))
    stream = Reader(tmp_path).stream
    start = stream.initialOffset()
    [part] = stream.partitions(start, stream.latestOffset(start, ReadAllAvailable()))
    (tmp_path / "events.jsonl").unlink()
    with pytest.raises(TraceError, match=r"events.jsonl: it was removed before all of it was read"):
        list(stream.read(part))


def test_a_file_that_shrinks_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_bytes(b"".join(map(encode_event, EVENTS)))
    reader = Reader(tmp_path)
    reader.read(everything=True)
    os.truncate(file, 10)
    with pytest.raises(
        TraceError, match=r"were read, and now it has 10: it was written anew; watch"
    ):
        reader.read()


def lines(origin: int, count: int = 300) -> bytes:
    """As long for each origin of one digit."""
    rows = (Event("r", 0, at, "deliver", origin, at + 1) for at in range(count))
    return b"".join(map(encode_event, rows))


@pytest.mark.parametrize(
    "content",
    [
        lines(1),
        lines(1) + lines(2),
        lines(0, 299) + lines(1).splitlines(keepends=True)[-1] + lines(0),
        lines(1, 1) + lines(0).split(b"\n", 1)[1],
    ],
    ids=["as long", "longer", "its end", "its beginning"],
)
def test_a_file_that_others_took_the_place_of_is_refused(tmp_path: Path, content: bytes) -> None:
    """Though every line is where one was."""
    file = tmp_path / "events.jsonl"
    file.write_bytes(lines(0))
    reader = Reader(tmp_path)
    assert reader.read(everything=True) == 300
    file.write_bytes(content)
    reader.restart()
    with pytest.raises(TraceError, match=r"events.jsonl: what was read of it is no longer in it: "):
        reader.read()


def test_a_parquet_file_that_others_took_the_place_of_is_refused(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    file = tmp_path / "events" / "a.parquet"
    write_parquet(EVENTS, file)
    reader = Reader(tmp_path)
    reader.read(everything=True)
    for others in (EVENTS[:3], ()):
        write_parquet(others, file)
        with pytest.raises(TraceError, match=r"a.parquet: what was read of it is no longer in it"):
            reader.read()


@pytest.mark.parametrize("name", ["events.jsonl", "events/a.parquet"])
def test_a_batch_that_is_read_again_is_not_read_from_another_file(
    tmp_path: Path, name: str
) -> None:
    file = tmp_path / name
    (tmp_path / "events").mkdir()
    put(file, EVENTS[:4])
    stream = Reader(tmp_path).stream
    start = stream.initialOffset()
    [part] = stream.partitions(start, stream.latestOffset(start, ReadAllAvailable()))
    put(file, EVENTS[1:])
    with pytest.raises(TraceError, match="what was read of it is no longer in it"):
        list(stream.read(part))


def put(file: Path, events: Sequence[Event]) -> None:
    if file.suffix == ".parquet":
        write_parquet(events, file)
    else:
        file.write_bytes(b"".join(map(encode_event, events)))


def test_a_file_that_was_copied_is_gone_on_with_and_so_is_an_older_checkpoint(
    tmp_path: Path,
) -> None:
    trace = write(tmp_path / "trace", [run("r", "s1 d0:1", "d0:1", quiesced=False)])
    reader = Reader(trace)
    assert reader.read(everything=True) == 3
    shutil.copytree(trace, tmp_path / "copy")
    reader.path = tmp_path / "copy"
    offset = json.loads(reader.offset)
    del offset["files"]["events.jsonl"]["mark"]
    for known in (json.dumps(offset), reader.offset):
        reader.offset = known
        reader.restart()
        assert reader.read() == 0
        assert reader.offset == known, "nothing is new"
        over = replace(reader.manifests[0], quiesced=True)
        (reader.path / "manifest.jsonl").write_bytes(over.to_json() + b"\n")
        reader.stream.prepareForTriggerAvailableNow()
        reader.read(everything=True)
        assert reader.manifests.pop() == over
        (reader.path / "manifest.jsonl").write_bytes(reader.manifests[0].to_json() + b"\n")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"{}\n", "events.jsonl, line 3: not an event"),
        (encode_event(EVENTS[0]).replace(b'"origin":0', b'"origin":5'), "line 3: process 0 cannot"),
    ],
)
def test_a_bad_row_is_told_with_its_place(tmp_path: Path, line: bytes, words: str) -> None:
    (tmp_path / "events.jsonl").write_bytes(b"".join(map(encode_event, EVENTS[:2])) + line)
    reader = Reader(tmp_path, max_bytes_per_batch=200)
    with pytest.raises(TraceError, match=words):
        reader.read_all()


def test_what_cannot_be_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="there is no such file or directory"):
        Reader(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="choose a number of bytes"):
        Reader(tmp_path, max_bytes_per_batch="many")
    with pytest.raises(UsageError, match=r"load\(DIR\)"):
        OrdercastSource({}).reader(None)


def test_spark_reads_the_same_as_we_do(spark: SparkSession, tmp_path: Path) -> None:
    """As a table; and without manifests, the columns are those of a trace."""
    written = spans(Random(3), 20)
    with SpanLog(tmp_path, "a", run="r", process=0, manifest=MANIFEST, rotate_bytes=150) as log:
        for span in written:
            log.write([span])
    register(spark)
    frame = spark.read.format("ordercast").load(str(tmp_path))
    assert frame.columns == list(Event.__struct_fields__)
    found = [Event(**row.asDict()) for row in frame.orderBy("position").collect()]
    assert found == expected(written)
