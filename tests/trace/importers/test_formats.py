"""Every format: a log that is in order, one that is not, and one that cannot be read."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from import_samples import GOOD, VIOLATED, Sample

from ordercast import pipeline
from ordercast.errors import OrdercastError, TraceError, UsageError
from ordercast.oracle import judge
from ordercast.trace import Trace
from ordercast.trace.importers import (
    FORMATS,
    Options,
    detect,
    import_trace,
    inference,
    lines,
    sink,
    store,
)
from ordercast.trace.verdicts import PROPERTIES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = [
    pytest.param(name, samples[name], id=f"{name}-{title}")
    for title, samples in (("good", GOOD), ("violated", VIOLATED))
    for name in FORMATS
]


def imported(sample: Sample, directory: Path, format: str, **choices: object) -> Trace:
    sources = sample.write(directory / "source")
    import_trace(sources, directory / "trace", format=format, options=sample.chosen(), **choices)  # type: ignore[arg-type]
    [trace] = Trace.load(directory / "trace")
    return trace


def verdicts(trace: Trace) -> dict[str, str]:
    return {verdict.property: verdict.verdict for verdict in judge(trace)}


@pytest.mark.parametrize(("format", "sample"), CASES)
@pytest.mark.parametrize("write", ["jsonl", "parquet"])
def test_samples_get_their_verdicts(
    format: str, sample: Sample, write: str, tmp_path: Path
) -> None:
    trace = imported(sample, tmp_path, format, write=write)
    found = verdicts(trace)
    assert {name: found[name] for name in sample.verdicts} == sample.verdicts
    assert trace.manifest.processes == sample.names
    assert trace.manifest.complete == sample.complete
    assert trace.manifest.extra["imported"]["format"] == format
    assert set(found) == set(PROPERTIES)
    written = {path.name for path in (tmp_path / "trace").iterdir()}
    assert written == {"manifest.jsonl", "events.jsonl" if write == "jsonl" else "events"}


def test_spark_says_the_same(tmp_path: Path, spark: SparkSession) -> None:
    """Of all of them at once: one trace, with a run for each format."""
    expected, manifests = {}, b""
    (tmp_path / "all" / "events").mkdir(parents=True)
    for name, sample in VIOLATED.items():
        (tmp_path / name).mkdir()
        named = replace(sample, options=sample.options | {"run": name})
        trace = imported(named, tmp_path / name, name, write="parquet")
        expected |= {(name, one): verdict for one, verdict in verdicts(trace).items()}
        manifests += (tmp_path / name / "trace" / "manifest.jsonl").read_bytes()
        [part] = (tmp_path / name / "trace" / "events").iterdir()
        part.rename(tmp_path / "all" / "events" / f"{name}.parquet")
    (tmp_path / "all" / "manifest.jsonl").write_bytes(manifests)
    said = pipeline.judge(tmp_path / "all", spark=spark).verdicts
    assert {(one.run, one.property): one.verdict for one in said} == expected


@pytest.mark.parametrize("format", FORMATS)
def test_the_format_is_recognised(format: str, tmp_path: Path) -> None:
    [first, *_] = GOOD[format].write(tmp_path / "source")
    assert detect(first) == format


@pytest.mark.parametrize("format", FORMATS)
def test_a_mark_at_the_start_of_a_file_is_passed_over(format: str, tmp_path: Path) -> None:
    sample = GOOD[format]
    for name in ("plain", "marked"):
        (tmp_path / name).mkdir()
    marked = replace(sample, files={name: f"\ufeff{text}" for name, text in sample.files.items()})
    found = imported(marked, tmp_path / "marked", format)
    assert found == imported(sample, tmp_path / "plain", format)
    assert detect(tmp_path / "marked" / "source" / next(iter(sample.files))) == format


def test_a_mark_before_one_object_or_a_quote_is_passed_over(tmp_path: Path) -> None:
    whole = json.dumps(json.loads(GOOD["otlp"].files["a.jsonl"].splitlines()[0]), indent=1)
    quoted = '"process","kind","message"\n"a","send","m"\n'
    for format, name, text in (("otlp", "a.json", whole), ("table", "a.csv", quoted)):
        (tmp_path / name).write_text(f"\ufeff{text}")
        done = import_trace([tmp_path / name], tmp_path / format, format=format)
        assert done.events == 1


@pytest.mark.parametrize("format", ["auto", *FORMATS])
def test_a_compressed_log_must_be_unpacked(format: str, tmp_path: Path) -> None:
    for pack in (gzip.compress, bz2.compress, lzma.compress):
        (tmp_path / "a1.gz").write_bytes(pack(b"b 1\n"))
        with pytest.raises(TraceError, match=r"a1\.gz: it is compressed: unpack it first$"):
            import_trace([tmp_path / "a1.gz"], tmp_path / "trace", format=format)


MANY = {
    "table": "process,kind,message\n" + "".join(f"a,send,m{n}\n" for n in range(2_500)),
    "shiviz": "".join(f'a {{"a":{n}}}\nsends {n}\n' for n in range(1, 2_501)),
    "broadcast": "".join(f"b {n}\n" for n in range(1, 20_001)),
}


@pytest.mark.parametrize("format", MANY)
def test_progress_goes_on_while_the_trace_is_written(
    format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a tenth of the rows, and of what is done at once."""
    for module in (store, inference):
        monkeypatch.setattr(module, "AT_ONCE", store.AT_ONCE // 10)
    monkeypatch.setattr(lines, "CHUNK", lines.CHUNK // 10)
    monkeypatch.setattr(sink, "ROWS_AT_ONCE", sink.ROWS_AT_ONCE // 10)
    source = tmp_path / "a1.csv"
    source.write_text(MANY[format])
    size, told = source.stat().st_size, [0]
    chosen = Options(send="sends") if format == "shiviz" else Options()
    import_trace(
        *([source], tmp_path / "trace"),
        format=format,
        options=chosen,
        advance=lambda count: told.append(told[-1] + count),
    )
    assert told == sorted(told)
    assert len(told) > 2
    if format == "broadcast":
        assert told[-1] == size
    else:
        assert size // 2 in told
        assert size * 0.8 < told[-1] <= size


@pytest.mark.parametrize("format", FORMATS)
def test_positions_are_those_of_each_process(format: str, tmp_path: Path) -> None:
    trace = imported(GOOD[format], tmp_path, format)
    for process in trace.members:
        log = [event for event in trace.events if event.process == process]
        assert [event.position for event in log] == list(range(len(log)))


BAD = {
    "shiviz": (
        {"a.log": GOOD["shiviz"].files["a.log"] + 'a {"a":"two"}\nsends y\n'},
        "a.log, line 11: not a vector clock: Expected `int`, got `str`",
    ),
    "dslab": (
        {"a.log": '{"ProcessStarted":{"node":"n","proc":"a"}}\n{"time":1}\n'},
        'a.log, line 2: expected an entry such as {"MessageSent": {…}}',
    ),
    "broadcast": (
        {"1.output": "b 1\nd 1\n"},
        "1.output, line 2: expected 'b SEQ' or 'd SENDER SEQ', with numbers from 1",
    ),
    "otlp": (
        {"a.jsonl": GOOD["otlp"].files["a.jsonl"] + '{"resourceSpans":[{"scopeSpans":1}]}\n'},
        "a.jsonl, line 6: not an OTLP export: Expected `array`, got `int`",
    ),
    "jepsen": (
        {"history.edn": "{:type :ok, :f :read, :value [1], :process 0}\n{:type :ok}\n"},
        "history.edn, line 2: expected an operation with :type, :f and :process",
    ),
    "maelstrom": (
        {"a.jsonl": GOOD["maelstrom"].files["a.jsonl"] + '{"type":"lost"}\n'},
        "a.jsonl, line 7: not an entry of a journal: Invalid enum value 'lost'",
    ),
    "table": (
        {"a.csv": "process,kind,message\na,send,x\na,sing,y\n"},
        "a.csv, line 3: what is 'sing'? say it with --kinds sing=send, or =deliver, or sing= if it",
    ),
}


@pytest.mark.parametrize("format", FORMATS)
def test_a_bad_row_is_refused_with_its_place_or_counted(format: str, tmp_path: Path) -> None:
    files, sentence = BAD[format]
    sources = Sample(files).write(tmp_path / "source")
    with pytest.raises(TraceError) as refused:
        import_trace(sources, tmp_path / "trace", format=format)
    assert str(refused.value).startswith(str(tmp_path / "source"))
    assert sentence in str(refused.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source"]

    options = Options(skip_bad_rows=True)
    if format == "jepsen":
        sources[0].write_text(GOOD["jepsen"].files["history.edn"] + files["history.edn"])
    if format == "dslab":
        sources[0].write_text(GOOD["dslab"].files["a.log"] + files["a.log"].splitlines()[1])
    done = import_trace(sources, tmp_path / "trace", format=format, options=options)
    assert done.report.bad == 1
    assert len(done.report.places) == 1
    [trace] = Trace.load(tmp_path / "trace")
    assert not trace.manifest.complete
    assert trace.manifest.extra["imported"]["left_out"] == 1


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.txt", "hello\nworld\n", "it looks like no format that I know"),
        ("a.txt", "", "it looks like no format that I know"),
        ("a.csv", 'a {"a":1}\nsends\n', "it could be shiviz or table"),
    ],
)
def test_a_guess_that_is_not_sure_is_not_made(
    name: str, text: str, words: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match=rf"{words}: say with --format which of shiviz, dslab"):
        detect(tmp_path / name)


@settings(max_examples=60)
@given(data=st.data())
@pytest.mark.parametrize("format", FORMATS)
def test_a_damaged_log_is_read_or_refused(format: str, data: st.DataObject) -> None:
    sample = GOOD[format]
    name = data.draw(st.sampled_from(sorted(sample.files)))
    log = bytearray(sample.files[name].encode())
    bits = st.sampled_from(
        [b"", b"9" * 30, b"-", b'"', b"{", b"]", b"\n", b"null", b"\xff", b"1e999"]
    )
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(log)))
        log[start : start + data.draw(st.integers(0, 6))] = data.draw(bits)
    with TemporaryDirectory() as directory:
        sources = sample.write(Path(directory) / "source")
        (Path(directory) / "source" / name).write_bytes(log)
        options = replace(sample.chosen(), skip_bad_rows=data.draw(st.booleans()))
        try:
            import_trace(sources, Path(directory) / "trace", format=format, options=options)
        except OrdercastError as error:
            assert "\n" not in str(error)  # noqa: PT017
        else:
            for trace in Trace.load(Path(directory) / "trace"):
                judge(trace)


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
@pytest.mark.parametrize("format", FORMATS)
def test_a_log_that_is_refused_is_closed(format: str, tmp_path: Path) -> None:
    """At once, whoever holds the error: the collector of garbage may come later, and warn."""
    sample = GOOD[format]
    sources = sample.write(tmp_path / "source")
    for file in (tmp_path / "source").iterdir():
        whole = file.read_text()
        file.write_text(f"{whole[:-5]}]\n{whole}")
    with pytest.raises(OrdercastError):
        import_trace(sources, tmp_path / "trace", format=format, options=sample.chosen())
    opened = [Path(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
    assert [file for file in opened if tmp_path in file.resolve().parents] == []


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    sources = GOOD["table"].write(tmp_path / "source")
    with pytest.raises(OrdercastError, match="there is something here already"):
        import_trace(sources, tmp_path / "source")


def test_an_empty_log_is_not_a_trace(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("process,kind,message\n")
    with pytest.raises(TraceError, match=r"a\.csv: nothing in it is an event"):
        import_trace([tmp_path / "a.csv"], tmp_path / "trace")
    assert not (tmp_path / "trace").exists()


def test_own_ids_are_kept_in_the_manifest_or_beside_it(tmp_path: Path) -> None:
    trace = imported(GOOD["table"], tmp_path, "table")
    assert trace.manifest.extra["messages"] == {"0:1": "question", "1:1": "answer"}
    many = tmp_path / "many.csv"
    rows = "".join(f"a,send,m{n}\n" for n in range(1500))
    many.write_text("process,kind,message\n" + rows)
    for write in ("jsonl", "parquet"):
        import_trace([many], tmp_path / write, write=write)  # type: ignore[arg-type]
        [big] = Trace.load(tmp_path / write)
        assert "messages" not in big.manifest.extra
    import pyarrow.parquet as pq

    side = pq.read_table(tmp_path / "parquet" / "messages.parquet").to_pylist()
    assert side[7] == {"run": "many", "origin": 0, "number": 8, "id": "m7"}
    line = (tmp_path / "jsonl" / "messages.jsonl").read_text().splitlines()[7]
    assert line == '{"run":"many","origin":0,"number":8,"id":"m7"}'
