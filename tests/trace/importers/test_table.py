"""Tables: columns by name, order by position, clock or line, and files one by one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from import_samples import BROADCAST_GOOD, TABLE, TABLE_BROKEN, Sample

from ordercast.errors import TraceError, UsageError
from ordercast.oracle import judge
from ordercast.trace import Manifest, Trace
from ordercast.trace.importers import Options, import_trace
from ordercast.trace.importers.tasks import file_events, import_file, write_manifest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def taken(files: dict[str, str], directory: Path, **options: Any) -> list[Trace]:
    sources = Sample(files).write(directory / "source")
    import_trace(sources, directory / "trace", format="table", options=Options(**options))
    return Trace.load(directory / "trace")


def story(trace: Trace) -> list[str]:
    return [f"{e.process} {e.kind} {e.origin}:{e.number}" for e in trace.events]


def test_the_same_table_in_any_notation(tmp_path: Path) -> None:
    source = tmp_path / "t.csv"
    source.write_text(TABLE_BROKEN)
    table = pyarrow.csv.read_csv(source)
    pq.write_table(table, tmp_path / "t.parquet")
    rows = [{key: str(value) for key, value in row.items()} for row in table.to_pylist()]
    (tmp_path / "t.jsonl").write_text("".join(f"{row}\n".replace("'", '"') for row in rows))
    (tmp_path / "t.tsv").write_text(TABLE_BROKEN.replace(",", "\t"))
    stories = []
    for suffix in ("csv", "parquet", "jsonl", "tsv"):
        out = tmp_path / f"{suffix}-trace"
        options = Options(**TABLE)  # type: ignore[arg-type]
        import_trace([tmp_path / f"t.{suffix}"], out, format="table", options=options)
        [trace] = Trace.load(out)
        stories.append((story(trace), [event.time_us for event in trace.events]))
    assert stories[0] == stories[1] == stories[2] == stories[3]
    assert stories[0][0][-2:] == ["2 deliver 1:1", "2 deliver 0:1"]


def test_order_is_by_position_then_clock_then_line(tmp_path: Path) -> None:
    rows = ["a,3,9,m1", "a,1,9,m2", "a,2,8,m3"]
    for field, column, order in (
        ("position", "n", ["m2", "m3", "m1"]),
        ("time", "t", ["m3", "m1", "m2"]),
        (None, "", ["m1", "m2", "m3"]),
    ):
        log = "host,n,t,id\n" + "".join(f"{row}\n" for row in rows)
        mapped = {"process": "host", "message": "id", "kind": "kind"}
        mapped |= {field: column} if field else {}
        text = log.replace("\n", ",send\n").replace("id,send", "id,kind", 1)
        directory = tmp_path / str(field)
        directory.mkdir()
        [trace] = taken({"r.csv": text}, directory, map=mapped)
        ids = trace.manifest.extra["messages"]
        assert [ids[f"0:{event.number}"] for event in trace.events] == order
        notes = trace.manifest.extra["imported"].get("notes", [])
        assert len(notes) == (field != "position")
        assert trace.manifest.extra.get("clock") == ("wall" if field == "time" else None)


def test_own_numbers_are_kept_and_forgeries_are_seen(tmp_path: Path) -> None:
    log = (
        "process,kind,origin,number,destinations,bytes\n"
        "a,send,,7,b;c,5\nb,deliver,a,7,,\nc,deliver,a,8,,\nc,crash,,,,\n"
    )
    [trace] = taken({"r.csv": log}, tmp_path)
    assert story(trace)[:3] == ["0 send 0:7", "1 deliver 0:7", "2 deliver 0:8"]
    assert (trace.events[0].destinations, trace.events[0].bytes) == ((1, 2), 5)
    assert "messages" not in trace.manifest.extra
    assert {v.property: v.verdict for v in judge(trace)}["no_creation"] == "violated"


KAFKA = """\
{"client":"web-1","type":"produce","topic":"t","partition":0,"offset":0,"key":"k","timestamp":1000}
{"client":"web-1","type":"produce","topic":"t","partition":1,"offset":0,"key":"j","timestamp":1001}
{"client":"app-1","type":"consume","topic":"t","partition":1,"offset":0,"key":"j","timestamp":1002}
{"client":"app-1","type":"consume","topic":"t","partition":0,"offset":0,"key":"k","timestamp":1003}
"""


def test_kafka_keeps_order_only_within_a_partition(tmp_path: Path) -> None:
    for name in ("whole", "parts"):
        (tmp_path / name).mkdir()
    [whole] = taken({"r.jsonl": KAFKA}, tmp_path / "whole", preset="kafka")
    assert {v.property: v.verdict for v in judge(whole)}["fifo"] == "violated"
    assert whole.manifest.extra["messages"] == {"1:1": "t/0/0", "1:2": "t/1/0"}
    assert whole.events[0].time_us == 1_002_000
    by_partition = {"run": "topic+partition"}
    parts = taken({"r.jsonl": KAFKA}, tmp_path / "parts", preset="kafka", map=by_partition)
    assert [trace.manifest.run for trace in parts] == ["t/0", "t/1"]
    for trace in parts:
        assert {v.property: v.verdict for v in judge(trace)}["fifo"] == "holds"


@pytest.mark.parametrize(
    ("log", "options", "sentence"),
    [
        ("host,kind,message\n1,send,m\n", {}, r"which column is the process\? say it with --map"),
        ("process,kind\na,send\n", {}, "which columns are the message"),
        (
            "a,b\n1,2\n",
            {"map": {"process": "c"}},
            "there is no column 'c' for process: it has a, b",
        ),
        ("a\n1\n", {"map": {"colour": "a"}}, "--map colour=…: there is no such field"),
        (
            "process,kind,message\na,send,m\n",
            {"kinds": {"x": "sing"}},
            "'sing' is not one of send, receive",
        ),
        ("process,kind,message\na,send\n", {}, "line 2: 2 values for 3 columns"),
        ("process,kind,message\na,send,\n", {}, r"line 2: which message\? a send needs an id"),
        ("process,kind,origin,number\na,send,b,1\n", {}, "line 2: a cannot send a message whose"),
        ("process,kind,origin,number\na,send,a,0\n", {}, "line 2: number is 0, and numbers count"),
        ("process,kind,message,time\na,send,m,noon\n", {}, "line 2: time is 'noon', neither"),
        (
            "process,kind,message,time\na,send,m,-5\n",
            {},
            "line 2: a position, time, number or size that",
        ),
        ("process,kind,message,position\na,send,m,x\n", {}, "line 2: position is 'x', not a whole"),
        ("process,kind,message\na,send,m\nb,send,m\n", {}, "line 3: 'm' is sent a second time"),
        (
            "process,kind,message\na,send,m\n",
            {"crashed": ("z",)},
            "--crashed z: there is no process",
        ),
    ],
)
def test_what_cannot_be_is_told(
    log: str, options: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises((TraceError, UsageError), match=sentence):
        taken({"r.csv": log}, tmp_path, **options)


def test_a_table_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r.parquet").write_bytes(b"nothing of the kind")
    with pytest.raises(TraceError, match=r"r\.parquet: not a readable Parquet file"):
        import_trace([tmp_path / "r.parquet"], tmp_path / "trace")


ALONE = "process,position,kind,origin,number\n"
PARTS = {
    "x.csv": ALONE + "a,0,send,a,1\nb,1,send,b,1\n",
    "y.csv": ALONE + "b,0,deliver,a,1\nc,0,deliver,b,1\nc,1,deliver,a,1\n",
}


def test_files_can_be_imported_one_by_one(tmp_path: Path, spark: SparkSession) -> None:
    """As Spark tasks would; the trace is the same as all of them at once."""
    for format, files, names in (
        ("table", PARTS, ("a", "b", "c")),
        ("broadcast", BROADCAST_GOOD, ("1", "2", "3")),
    ):
        sources = Sample(files).write(tmp_path / format)
        options = Options(to="everyone") if format == "table" else Options()
        import_trace(sources, tmp_path / f"{format}-whole", format=format, options=options)
        out = str(tmp_path / f"{format}-parts")

        def convert(file: str, format: str = format, out: str = out, names: Any = names) -> int:
            return import_file(file, out, format=format, run="r", processes=names)

        tasks = spark.sparkContext.parallelize([str(path) for path in sources], len(sources))
        assert tasks.map(convert).sum() == sum(log.count("\n") for log in files.values()) - (
            len(files) if format == "table" else 0
        )
        write_manifest(out, Manifest("r", names))
        [parts], [whole] = Trace.load(Path(out)), Trace.load(tmp_path / f"{format}-whole")
        assert story(parts) == story(whole)
        assert [v.verdict for v in judge(parts)] == [v.verdict for v in judge(whole)]


def test_what_cannot_stand_alone_is_refused(tmp_path: Path) -> None:
    def alone(name: str, text: str, format: str) -> None:
        (tmp_path / name).write_text(text)
        list(file_events(tmp_path / name, format=format, run="r", processes=["a"]))

    with pytest.raises(UsageError, match="a table needs position, origin and number"):
        alone("x.csv", "process,kind,message\na,send,m\n", "table")
    with pytest.raises(TraceError, match=r"x\.csv, line 2: z is none of the processes"):
        alone("x.csv", ALONE + "z,0,send,z,1\n", "table")
    with pytest.raises(TraceError, match=r"x\.csv, line 2: a position, time, number or size that"):
        alone("x.csv", ALONE + "a,-1,send,a,1\n", "table")
    with pytest.raises(TraceError, match="it delivers from 9, which is none of the processes"):
        alone("a.output", "d 9 1\n", "broadcast")
    with pytest.raises(UsageError, match="otlp logs cannot be read file by file"):
        alone("a.json", "{}", "otlp")
