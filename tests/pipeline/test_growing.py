"""A trace that grows: what is refused, and what is not. That nothing is read again, and the tables
are as if it had been, is in `test_tables.py`, which has the tables to compare them with."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from ordercast import pipeline
from ordercast.errors import OrdercastError, TraceError, UsageError
from ordercast.pipeline import rows, tables
from ordercast.pipeline.record import Part, read_record
from ordercast.pipeline.results import TABLES
from ordercast.trace import Manifest
from ordercast.trace import gather as gathering
from ordercast.trace.jsonl import encode_event
from ordercast.trace.parquet import to_table
from ordercast.trace.span_log import SpanLog
from ordercast.trace.spans import Span

from .builders import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Examine = Callable[..., Any]


def add(trace: Path, name: str, runs: list[Any], *, manifest: bool = True) -> Path:
    """One file more."""
    (trace / "events").mkdir(parents=True, exist_ok=True)
    events = [event for one in runs for event in one.events]
    file = trace / "events" / name
    if file.suffix == ".jsonl":
        file.write_bytes(b"".join(map(encode_event, events)))
    else:
        pq.write_table(to_table(events), file, row_group_size=100)
    if manifest:
        with (trace / "manifest.jsonl").open("ab") as lines:
            lines.writelines(one.manifest.to_json() + b"\n" for one in runs)
    return file


def contents(directory: Path) -> dict[str, list[str]]:
    there = [name for name in TABLES if (directory / name).exists()]
    return {name: sorted(map(repr, pq.read_table(directory / name).to_pylist())) for name in there}


def parts(directory: Path) -> tuple[Part, ...]:
    record = read_record(directory)
    assert record is not None
    return record.parts


def damage(file: Path) -> None:
    """So that reading it would not go unnoticed, while it looks as it did."""
    found = file.stat()
    file.write_bytes(b"\0" * found.st_size)
    os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns))


@pytest.fixture
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Costs take the longest, and are not what most of these tests are about."""
    kept = {name: TABLES[name] for name in ("verdicts", "violations", "runs", "flaws")}
    monkeypatch.setattr(tables, "TABLES", kept)


@pytest.fixture
def examine(spark: SparkSession, tmp_path: Path) -> Examine:
    def call(trace: str = "trace", output: str = "out", **choices: Any) -> Any:
        return pipeline.examine(tmp_path / trace, spark=spark, output=tmp_path / output, **choices)

    return call


@pytest.mark.usefixtures("unmeasured", "judged_here")
def test_several_traces_may_go_to_one_directory(tmp_path: Path, examine: Examine) -> None:
    add(tmp_path / "monday", "a.parquet", [run("monday", "s1 d0:1"), run("silent", "")])
    add(tmp_path / "tuesday", "a.parquet", [run("tuesday", "s1 d0:1")])
    examine("monday")
    found = examine("tuesday")
    assert found.runs["run"].to_pylist() == ["monday", "silent", "tuesday"]
    assert found.runs["events"].to_pylist() == [2, 0, 2]


def refused(examine: Examine, kind: type[OrdercastError] = TraceError, **choices: Any) -> str:
    with pytest.raises(kind) as caught:
        examine(**choices)
    assert "--again" in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.usefixtures("unmeasured", "judged_here")
def test_what_changed_is_refused_until_all_is_judged_again(
    tmp_path: Path, examine: Examine
) -> None:
    trace, out = tmp_path / "trace", tmp_path / "out"
    file = add(trace, "a.parquet", [run("a", "s1 d0:1"), run("b", "s1 d0:1")])
    examine()
    before = contents(out)

    add(trace, "more.parquet", [run("b", "- - s2")], manifest=False)
    assert refused(examine).startswith(f"{out}: run 'b' was judged before, and now rows of it")
    (trace / "events" / "more.parquet").unlink()

    manifests = (trace / "manifest.jsonl").read_bytes()
    (trace / "manifest.jsonl").write_bytes(manifests.replace(b"p0", b"p9", 1))
    assert refused(examine).startswith(f"{trace}: the manifest of run 'a' has changed")
    (trace / "manifest.jsonl").write_bytes(manifests)

    assert "was judged with another --only" in refused(examine, UsageError, properties=["fifo"])
    assert "was judged with another --only" in refused(examine, UsageError, skip=True)
    assert contents(out) == before

    add(trace, file.name, [run("a", "s1 d0:1 d0:1"), run("b", "s1 d0:1")], manifest=False)
    assert refused(examine).startswith(f"{file}: has changed since it was judged")
    assert contents(out) == before
    examine(again=True)
    [part] = parts(out)
    assert part.number == 2
    verdicts = pq.read_table(out / "verdicts").to_pylist()
    assert [(one["run"], one["property"]) for one in verdicts if one["verdict"] == "violated"] == [
        ("a", "no_duplication")
    ]
    assert [file.name for file in out.glob("*/*")] == ["part-0002.parquet"] * 3


@pytest.mark.usefixtures("unmeasured")
def test_a_hole_that_might_be_anybodys(tmp_path: Path, examine: Examine) -> None:
    """A line that nobody can read may tell of a run that was judged as whole: that is undone only
    by judging again. From then on every run has holes, also those to come."""
    trace = tmp_path / "trace"
    add(trace, "a.parquet", [run("a", "s1", "join")])
    assert examine(skip=True).runs["complete"].to_pylist() == [True]
    file = add(trace, "b.jsonl", [run("b", "s1", "join")])
    sound = file.read_bytes()
    file.write_bytes(sound + b'{"run": "a", "process": -1}\n')
    assert "run 'a' was judged before" in refused(examine, skip=True)
    file.write_bytes(sound + b'{"run": "a')
    assert "rows were left out that may belong to any run" in refused(examine, skip=True)
    assert examine(skip=True, again=True).runs["complete"].to_pylist() == [False, False]
    add(trace, "c.parquet", [run("c", "s1", "join")])
    found = examine(skip=True)
    assert found.runs["complete"].to_pylist() == [False] * 3
    assert [row["row"] for row in found.flaws.to_pylist()] == [3]


def log(trace: Path, name: str, *, run: str) -> None:
    """A member's, which has two rows more now."""
    manifest = Manifest(run, ("a",))
    with SpanLog(trace, name, run=run, process=0, manifest=manifest) as member:
        number = 1 + member.position // 2
        member.write([Span(kind, number, 0, number) for kind in ("send", "deliver")])


def close(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if it were on a disk that can only be read."""

    @contextmanager
    def refuse(place: Path) -> Iterator[None]:
        if place == directory:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        yield

    monkeypatch.setattr(gathering, "_alone", refuse)


@pytest.mark.usefixtures("unmeasured", "judged_here")
def test_logs_in_an_archive_are_known_again(
    tmp_path: Path, examine: Examine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time they are gathered in another place."""
    trace, out = tmp_path / "trace", tmp_path / "out"
    log(trace, "a", run="r")
    close(trace, monkeypatch)
    for _ in range(2):
        assert examine().runs["run"].to_pylist() == ["r"]
        assert len(parts(out)) == 1
    log(trace, "b", run="later")
    assert examine().runs["run"].to_pylist() == ["later", "r"]
    assert [list(part.files) for part in parts(out)] == [
        [str(trace / "events" / f"{name}.parquet")] for name in "ab"
    ]
    log(trace, "a", run="r")
    assert refused(examine).startswith(f"{trace}: has changed since it was judged")
    while gathering._elsewhere:  # a worker of pytest may end without its last rites
        gathering._elsewhere.popitem()[1].place.cleanup()


@pytest.mark.usefixtures("unmeasured", "judged_here")
def test_logs_that_are_as_they_were_are_not_judged_again(tmp_path: Path, examine: Examine) -> None:
    """Though they are gathered again, together with others."""
    log(tmp_path / "trace", "a", run="r")
    examine()
    log(tmp_path / "trace", "b", run="later")
    assert examine().runs["run"].to_pylist() == ["later", "r"]
    assert len(parts(tmp_path / "out")) == 2


@pytest.mark.usefixtures("unmeasured", "judged_here")
@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl"])
def test_a_trace_that_was_made_for_this_once_is_known_by_what_it_is_made_of(
    name: str, tmp_path: Path, examine: Examine
) -> None:
    source = tmp_path / "chat.log"
    for trace in ("one", "two"):
        add(tmp_path / trace, name, [run("r", "s1 d0:1")])
        examine(trace, made_of=source)
        assert len(parts(tmp_path / "out")) == 1
    add(tmp_path / "three", name, [run("r", "s1")])
    told = refused(examine, trace="three", made_of=source)
    assert told.startswith(f"{source}: has changed since it was judged, or is read in another way")


@pytest.mark.usefixtures("unmeasured", "judged_here")
@pytest.mark.parametrize("output", ["out", None])
def test_events_that_are_replaced_while_they_are_judged_are_judged_once_more(
    output: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    """The sender's log was read before it grew, and the receiver's after: a message that nobody
    sent."""
    trace = tmp_path / "trace"
    choices: dict[str, Any] = {"here": True}
    if output is not None:
        choices = {"spark": spark, "output": tmp_path / output}
    add(trace, "a.parquet", [run("r", "s1", "")])
    add(trace, "b.parquet", [run("r", "", "d0:1")], manifest=False)
    read_groups = rows._read_groups

    def read(piece: rows.Piece, extra: Any) -> rows.Loaded:
        found = read_groups(piece, extra)
        if Path(piece.file).name == "a.parquet":
            add(trace, "a.parquet", [run("r", "s1 s2", "")], manifest=False)
            add(trace, "b.parquet", [run("r", "", "d0:1 d0:2")], manifest=False)
        return found

    monkeypatch.setattr(rows, "_read_groups", read)
    with pytest.raises(TraceError, match=r"parquet: was replaced while it was judged: judge it"):
        pipeline.examine(trace, **choices)
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("spark", "unmeasured", "judged_here")
@pytest.mark.parametrize("name", ["part-0001.parquet", "results.json"])
def test_a_full_disk_is_told_with_what_was_to_be_there(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not as one of a worker, in the session of a verb."""
    sync = os.fsync

    def full(file: int) -> None:
        if Path(os.readlink(f"/proc/self/fd/{file}")).name == f".{name}":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(file)

    add(tmp_path / "trace", "a.parquet", [run("a", "s1 d0:1")])
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        pipeline.examine(tmp_path / "trace", output=tmp_path / "out")
    assert caught.value.filename.startswith(str(tmp_path / "out"))
    assert Path(caught.value.filename).name == name
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("unmeasured", "judged_here")
def test_where_nothing_can_be_written_tables_can_be_read(
    tmp_path: Path, examine: Examine, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(tmp_path / "trace", "a.parquet", [run("a", "s1 d0:1")])
    examine()
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert examine().runs["run"].to_pylist() == ["a"]
    add(tmp_path / "trace", "b.parquet", [run("b", "s1 d0:1")])
    with pytest.raises(UsageError, match="out: nothing can be written here: choose another place"):
        examine()
