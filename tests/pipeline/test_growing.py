"""A trace that grows: what is refused, and what is not. That nothing is read again, and the tables
are as if it had been, is in `test_tables.py`, which has the tables to compare them with."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from ordercast import pipeline
from ordercast.errors import OrdercastError, TraceError, UsageError
from ordercast.pipeline import tables
from ordercast.pipeline.record import Part, read_record
from ordercast.pipeline.results import TABLES
from ordercast.trace.jsonl import encode_event
from ordercast.trace.parquet import to_table

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
    assert refused(examine).startswith(f"{out}: run 'b' was judged before, and now there are more")
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
