"""Tables: columns by name, order by position, clock or line, and files one by one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
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


CLOSE = {
    "dates": ("us", "2026-01-01T00:00:00.{}Z", "123456788", "123456789"),
    "a comma": ("us", "2026-01-01 00:00:00,{}+02:00", "1234567", "1234568"),
    "ns": ("ns", "{}", "1700000000000000001", "1700000000000000002"),
    "s": ("s", "{}", "1700000000.1234567891", "1700000000.1234567892"),
    "us": ("us", "{}", "1700000000123456.7", "1700000000123456.8"),
}


@pytest.mark.parametrize(("unit", "form", "first", "second"), CLOSE.values(), ids=CLOSE)
@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_clocks_tell_the_order_with_all_their_digits(
    unit: str, form: str, first: str, second: str, suffix: str, tmp_path: Path
) -> None:
    # The later one stands first. In JSON a number has no quotes.
    quote = "" if (suffix, form) == ("jsonl", "{}") else '"'
    row = {
        "csv": "a,send,{},{}\n",
        "jsonl": '{{"process":"a","kind":"send","message":"{}","time":{}}}\n',
    }[suffix]
    text = "process,kind,message,time\n" if suffix == "csv" else ""
    for message, digits in (("m2", second), ("m1", first)):
        text += row.format(message, quote + form.format(digits) + quote)
    [trace] = taken({f"r.{suffix}": text}, tmp_path, time_unit=unit)
    assert trace.manifest.extra["messages"] == {"0:1": "m1", "0:2": "m2"}
    [one, two] = [event.time_us for event in trace.events]
    assert one == two
    assert one is not None
    assert 10**15 < one < 10**16


def test_parquet_clocks_have_nanoseconds(tmp_path: Path) -> None:
    times = [1_700_000_000_000_000_002, 1_700_000_000_000_000_001]
    columns = {"process": ["a", "a"], "kind": ["send"] * 2, "message": ["m2", "m1"]}
    clock = pa.array(times, pa.timestamp("ns"))
    pq.write_table(pa.table(columns | {"time": clock}), tmp_path / "t.parquet")
    import_trace([tmp_path / "t.parquet"], tmp_path / "trace")
    [trace] = Trace.load(tmp_path / "trace")
    assert trace.manifest.extra["messages"] == {"0:1": "m1", "0:2": "m2"}
    assert [event.time_us for event in trace.events] == [1_700_000_000_000_000] * 2


def test_large_numbers_without_a_unit_still_tell_the_order(tmp_path: Path) -> None:
    rows = (
        "process,kind,message,time\na,send,m2,1700000000000000002\na,send,m1,1700000000000000001\n"
    )
    [trace] = taken({"r.csv": rows}, tmp_path)
    assert trace.manifest.extra["messages"] == {"0:1": "m1", "0:2": "m2"}


SEND = '{"process":"a","kind":"send","message":"m"}\n'


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ('{"process":["a"],"kind":"send","message":"n"}', "the column 'process' is a list, and"),
        ('{"process":true,"kind":"send","message":"n"}', "the column 'process' is true or false"),
        ('{"process":"a","kind":"send","message":{"k":1}}', "the column 'message' is an object"),
        ('{"process":"a","kind":["send"],"message":"n"}', "the column 'kind' is a list"),
        ('{"process":"a","kind":"send","message":"n","bytes":true}', "the column 'bytes' is true"),
        (
            '{"process":"a","kind":"send","message":"n","destinations":{"b":1}}',
            "the column 'destinations' is an object, and text or a number is expected",
        ),
        (
            '{"process":"a","kind":"send","message":"n","destinations":[["b"]]}',
            "a value of 'destinations' is a list",
        ),
        (
            '{"process":"a","kind":"send","message":"n","destinations":["b",null]}',
            "a value of 'destinations' is empty, and a name is expected",
        ),
    ],
)
def test_values_of_the_wrong_type_make_a_bad_row(row: str, sentence: str, tmp_path: Path) -> None:
    columns = SEND.replace("}", ',"bytes":1,"destinations":["b"]}')
    (tmp_path / "skipped").mkdir()
    with pytest.raises(TraceError, match=rf"r\.jsonl, line 2: {re.escape(sentence)}"):
        taken({"r.jsonl": columns + row}, tmp_path)
    [trace] = taken({"r.jsonl": columns + row}, tmp_path / "skipped", skip_bad_rows=True)
    assert trace.manifest.extra["imported"]["left_out"] == 1
    assert len(trace.events) == 1


@pytest.mark.parametrize("time", ["true", "[1]", '{"t":1}', "1e999", '"nan"'])
def test_a_clock_that_is_no_time_makes_a_bad_row(time: str, tmp_path: Path) -> None:
    row = SEND.replace("}", f',"time":{time}}}')
    with pytest.raises(
        TraceError, match=r"line 1: (the column 'time' is|time is '[\w+]+', neither)"
    ):
        taken({"r.jsonl": row}, tmp_path)


def test_whole_numbers_are_the_same_message_however_written(tmp_path: Path) -> None:
    sends = [f'{{"process":"a","kind":"send","message":{n}}}' for n in ("1", "2.5", "100", "0")]
    heard = [
        f'{{"process":"b","kind":"deliver","message":{n}}}' for n in ("1.0", "2.50", "1e2", "-0.0")
    ]
    [trace] = taken({"r.jsonl": "\n".join(sends + heard)}, tmp_path)
    assert trace.manifest.complete
    ids = {"0:1": "1", "0:2": "2.5", "0:3": "100", "0:4": "0"}
    assert trace.manifest.extra["messages"] == ids
    # A column with gaps is one of floats, for pandas.
    columns = {"process": ["a", "a"], "kind": ["send", "crash"], "message": [7.0, float("nan")]}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    import_trace([tmp_path / "t.parquet"], tmp_path / "parquet")
    [trace] = Trace.load(tmp_path / "parquet")
    assert trace.manifest.extra["messages"] == {"0:1": "7"}


def test_rows_at_the_same_position_are_noted(tmp_path: Path) -> None:
    note = "rows of one process have the same position: these are in the order of the lines"
    log = "process,kind,message,position\na,send,m1,1\nb,send,m2,1\na,send,m3,2\n"
    for name, text, notes in (("apart", log, None), ("tied", log + "a,send,m4,2\n", [note])):
        (tmp_path / name).mkdir()
        [trace] = taken({"r.csv": text}, tmp_path / name)
        assert trace.manifest.extra["imported"].get("notes") == notes


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
            "process,kind,message,message\na,send,m,n\n",
            {},
            r"r\.csv: two columns are called 'message', so which of them is the message",
        ),
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


ROWS = (("a", "send", "m1"), ("b", "deliver", "m1"), ("a", "send", "m2"))


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_header_shows_what_separates_columns(separator: str, tmp_path: Path) -> None:
    lines = [separator.join(row) for row in (("process", "kind", "message"), *ROWS)]
    [trace] = taken({"t.csv": "\n".join(lines)}, tmp_path)
    assert story(trace) == ["0 send 0:1", "0 send 0:2", "1 deliver 0:1"]


def test_a_column_may_lie_deeper(tmp_path: Path) -> None:
    rows = [{"host": host, "event": {"type": kind, "id": name}} for host, kind, name in ROWS]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    columns = {"process": "host", "kind": "event.type", "message": "event.id"}
    for name in ("t.jsonl", "t.parquet"):
        out = tmp_path / f"{name}-trace"
        import_trace([tmp_path / name], out, options=Options(map=columns))
        [trace] = Trace.load(out)
        assert story(trace) == ["0 send 0:1", "0 send 0:2", "1 deliver 0:1"]
        wrong = Options(map=columns | {"message": "event.name"})
        with pytest.raises(UsageError, match=r"there is no column 'event\.name' for message"):
            import_trace([tmp_path / name], tmp_path / "other", options=wrong)


def test_a_name_with_a_dot_is_a_column_first(tmp_path: Path) -> None:
    row = '{"process":"a","kind":"send","m.id":"right","m":{"id":"wrong"}}\n'
    [trace] = taken({"t.jsonl": row}, tmp_path, map={"message": "m.id"})
    assert trace.manifest.extra["messages"] == {"0:1": "right"}


def test_not_each_object_has_all_columns(tmp_path: Path) -> None:
    rows = '{"process":"a","kind":"start"}\n{"process":"a","kind":"send","id":"x"}\n'
    [trace] = taken({"t.jsonl": rows}, tmp_path, map={"message": "id"}, kinds={"start": ""})
    assert story(trace) == ["0 send 0:1"]


@pytest.mark.parametrize("name", ["t.jsonl", "app.log"])
def test_whoever_names_columns_has_a_table(name: str, tmp_path: Path) -> None:
    source = tmp_path / name
    source.write_text('{"host":"a","what":"send","id":"x"}\n')
    columns = {"process": "host", "kind": "what", "message": "id"}
    done = import_trace([source], tmp_path / "trace", options=Options(map=columns))
    assert (done.format, done.events) == ("table", 1)
