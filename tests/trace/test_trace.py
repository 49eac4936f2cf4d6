"""Traces on disk: what is written is read back, and what is broken is refused with its place."""

from __future__ import annotations

import errno
import io
import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.errors import TraceError
from ordercast.protocols.messages import Message, MessageId
from ordercast.trace import Event, Manifest, Recorder, Trace, TraceWriter, directory
from ordercast.trace.directory import event_files
from ordercast.trace.jsonl import decode_event, encode_event
from ordercast.trace.runs import OneRun
from ordercast.trace.verdicts import (
    PROPERTIES,
    Judgement,
    Verdict,
    order_held,
    promised,
    properties_of_order,
)

EVENTS = [
    Event("r", 0, 0, "send", 0, 1, None, 10, 5, 7),
    Event("r", 0, 1, "deliver", 0, 1, None, 10, 5, None),
    Event("r", 1, 0, "receive", 0, 1, None, 20, 5, 7),
    Event("r", 1, 1, "crash", time_us=30),
    Event("r", 0, 2, "send", 0, 2, (0, 1), 40, 0, 7),
]
MANIFEST = Manifest("r", ("a", "b"), quiesced=True, order="fifo", extra={"seed": 7, "mood": "calm"})


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_what_is_written_is_read_back(tmp_path: Path, format: str) -> None:
    with TraceWriter(tmp_path / "t", format=format) as writer:  # type: ignore[arg-type]
        for event in EVENTS:
            writer.write(event)
        writer.add_manifest(MANIFEST)
    [trace] = Trace.load(tmp_path / "t")
    assert trace == Trace.of(MANIFEST, EVENTS)


def test_unknown_manifest_keys_are_kept() -> None:
    assert Manifest.from_json(MANIFEST.to_json(), where="here").extra == MANIFEST.extra


@pytest.mark.parametrize("rest", ["", ',"quiesced":null', ',"quiesced":false', ',"quiesced":true'])
def test_what_a_manifest_says_of_rest_and_what_it_does_not_is_kept(rest: str) -> None:
    line = '{"run":"r","processes":["a"],"complete":null,"schema":null' + rest + "}"
    manifest = Manifest.from_json(line, where="here")
    assert manifest.silent is (rest in ("", ',"quiesced":null'))
    assert manifest.quiesced is ("true" in rest)
    assert manifest.complete
    assert Manifest.from_json(manifest.to_json(), where="there") == manifest


def test_a_bare_events_file_has_the_members_that_are_seen(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_bytes(
        b"".join(map(encode_event, EVENTS[:2])) + encode_event(Event("r", 2, 0, "join"))
    )
    [trace] = Trace.load(file)
    assert trace.members == (0, 2)
    assert not trace.manifest.quiesced
    assert Trace.load(file, quiesced=True)[0].manifest.quiesced


def test_processes_of_a_bare_file_may_be_any_numbers() -> None:
    """A page or a picture of them costs what is seen, not what could be below the highest."""
    trace = Trace.bare("r", [Event("r", process, 0, "join") for process in (7, 2**31 - 1)])
    assert trace.members == (7, 2**31 - 1)
    assert not trace.manifest.processes


def test_a_trace_is_never_overwritten(tmp_path: Path) -> None:
    TraceWriter(tmp_path).close()
    with pytest.raises(TraceError, match="a trace here already"):
        TraceWriter(tmp_path)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("{", "line 2: not an event: Input data was truncated"),
        ("[]", "line 2: not an event: Expected `object`"),
        ('{"run":"r","process":0,"kind":"join"}', "line 2: .* missing required field `position`"),
        ('{"run":"r","process":0,"position":-1,"kind":"join"}', r"line 2: .*`int` >= 0 .*position"),
        ('{"run":"r","process":0,"position":0,"kind":"jump"}', r"line 2: .*kind"),
        ('{"run":"r","process":"a","position":0,"kind":"join"}', r"line 2: .*process"),
        (
            '{"run":"r","process":0,"position":0,"kind":"deliver","origin":1}',
            "line 2: a 'deliver' row needs both origin and number",
        ),
        (
            '{"run":"r","process":0,"position":0,"kind":"send","origin":1,"number":1}',
            "line 2: process 0 cannot send a message whose origin is 1",
        ),
        (
            '{"run":"r","process":0,"position":0,"kind":"crash","origin":1,"number":1}',
            "line 2: a 'crash' row has no message",
        ),
        ("\udcff", "line 2: not an event"),
        ('{"a":' * 50_000 + "1" + "}" * 50_000, "line 2: not an event: maximum recursion depth"),
    ],
)
def test_a_broken_row_is_refused_with_file_line_and_reason(
    tmp_path: Path, line: str, sentence: str
) -> None:
    file = tmp_path / "events.jsonl"
    file.write_bytes(encode_event(EVENTS[0]) + os.fsencode(line) + b"\n")
    with pytest.raises(TraceError, match=rf"events\.jsonl, {sentence}"):
        Trace.load(tmp_path)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("{}", "line 1: not a manifest line"),
        ('{"a":' * 50_000 + "1" + "}" * 50_000, "line 1: not a manifest line: maximum recursion"),
        (
            '{"run":"r","processes":["a"],"schema":99}',
            "schema 99 and this ordercast reads schema 1",
        ),
        ('{"run":"r","processes":"a"}', r"line 1: .*processes"),
        (
            '{"run":"r","processes":[]}\n{"run":"r","processes":[]}',
            "line 2: run 'r' has a manifest",
        ),
    ],
)
def test_a_broken_manifest_is_refused(tmp_path: Path, line: str, sentence: str) -> None:
    (tmp_path / "events.jsonl").write_bytes(encode_event(EVENTS[0]))
    (tmp_path / "manifest.jsonl").write_text(line + "\n")
    with pytest.raises(TraceError, match=sentence):
        Trace.load(tmp_path)


def test_where_traces_are_below_one_is_to_be_named(tmp_path: Path) -> None:
    """As a replica leaves them, one for each generation."""
    (tmp_path / "2").mkdir()
    (tmp_path / "2" / "events.jsonl").touch()
    (tmp_path / "notes").mkdir()
    with pytest.raises(TraceError, match=rf"generations \(2\): name one, such as {tmp_path}/2$"):
        Trace.load(tmp_path)
    (tmp_path / "10").mkdir()
    (tmp_path / "10" / "a-0001.spans").touch()
    words = rf"not a trace: .*generations \(2 to 10\): name one, such as {tmp_path}/10$"
    with pytest.raises(TraceError, match=words):
        Trace.load(tmp_path)
    with pytest.raises(TraceError, match=words):
        OneRun(tmp_path)


def test_missing_and_strange_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no such file or directory"):
        Trace.load(tmp_path / "nowhere")
    with pytest.raises(TraceError, match=r"neither events\.jsonl nor"):
        Trace.load(tmp_path)
    (tmp_path / "events.csv").touch()
    with pytest.raises(TraceError, match=r"ends in \.jsonl or \.parquet"):
        Trace.load(tmp_path / "events.csv")
    (tmp_path / "events.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(TraceError, match="not a readable Parquet file"):
        Trace.load(tmp_path / "events.parquet")


@given(st.binary(max_size=80))
def test_no_bytes_make_the_reader_stumble(data: bytes) -> None:
    with suppress(TraceError):
        decode_event(data, where="here")


def test_the_recorder_numbers_events_and_notes_only_the_boundary() -> None:
    rows: list[Event] = []
    recorder = Recorder("r", 1, write=rows.append, clock_us=lambda: 99)
    message = Message(MessageId(1, 1), b"abc", (0, 1))
    recorder.send(message, control_bytes=4)
    recorder.deliver(message)
    recorder.mark("leave")
    assert rows == [
        Event("r", 1, 0, "send", 1, 1, (0, 1), 99, 3, 4),
        Event("r", 1, 1, "deliver", 1, 1, None, 99, 3, None),
        Event("r", 1, 2, "leave", time_us=99),
    ]


def verdicts(**outcomes: str) -> list[Verdict]:
    return [Verdict("r", name, outcome, 1, 0) for name, outcome in outcomes.items()]  # type: ignore[arg-type]


def test_the_strongest_order_that_held() -> None:
    assert order_held(verdicts(fifo="violated", causal="violated")) == "async"
    assert order_held(verdicts(fifo="holds", causal="unknown")) == "fifo"
    assert order_held(verdicts(fifo="holds", causal="holds")) == "causal"
    assert order_held(verdicts(fifo="violated", causal="holds")) == "async"
    assert order_held(verdicts(fifo="holds", causal="holds", synchronous="holds")) == "synchronous"
    # What was not judged does not count.
    assert order_held(verdicts(causal="holds")) == "causal"
    assert order_held(verdicts(fifo="holds", synchronous="violated")) == "fifo"
    assert order_held(verdicts(validity="holds")) == "async"


@pytest.mark.parametrize(
    ("fifo", "causal", "exit_code"),
    [
        ("holds", "violated", 0),
        ("violated", "violated", 1),
        ("unknown", "holds", 2),
        ("holds", "unknown", 0),
    ],
)
def test_the_exit_code_speaks_of_what_was_promised(fifo: str, causal: str, exit_code: int) -> None:
    rows = tuple(verdicts(fifo=fifo, causal=causal))
    judgement = Judgement(1, 5, rows, {"r": ("fifo",)})
    assert judgement.exit_code == exit_code


def test_promises_come_from_the_manifest_or_its_order_or_are_all_up_to_causal() -> None:
    judged = ("no_duplication", "fifo", "causal")
    assert promised(Manifest("r", (), order="fifo"), judged) == ("no_duplication", "fifo")
    assert promised(Manifest("r", (), extra={"promises": ["fifo"]}), judged) == ("fifo",)
    assert promised(Manifest("r", ()), judged) == judged
    assert promised(Manifest("r", (), order="whatever zab gives"), judged) == judged
    assert "total_acyclic" in properties_of_order("total_skeen")
    for word, uniform in (("majority", True), ("majority_acks", True), ("best_effort", False)):
        manifest = Manifest("r", (), order="causal", dissemination=word)
        assert ("uniform_agreement" in promised(manifest, PROPERTIES)) is uniform


@pytest.mark.parametrize("promises", ["fifo", ["fifo", "fast"], [3], {"fifo": True}])
def test_a_promise_that_means_nothing_is_told(promises: object) -> None:
    manifest = Manifest("r", (), extra={"promises": promises})
    with pytest.raises(TraceError, match=r"the manifest of run 'r' promises .*, which is no prop"):
        promised(manifest, PROPERTIES)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        *((f"events/b.{form}", "compressed, so its events are not read: unpack it, or move it away")
          for form in ("jsonl.gz", "jsonl.zst", "jsonl.bz2", "parquet.gz", "JSONL.GZ")),
        ("events.jsonl.gz", "compressed, so its events are not read: unpack it, or move it away"),
        ("events/day=1/b.jsonl", "in a directory of its own, so its events are not read: move it"),
        ("events/1/2/b.parquet", "in a directory of its own, so its events are not read: move it"),
        ("events/1/b.jsonl.gz", "in a directory of its own, so its events are not read: move it"),
        ("events/dir.jsonl/b.jsonl", "it is a directory, and not a file of events: move what is"),
    ],
)  # fmt: skip
def test_events_that_would_not_be_read_are_refused(
    tmp_path: Path, name: str, sentence: str
) -> None:
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "a.jsonl").write_bytes(encode_event(EVENTS[0]))
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_bytes(encode_event(EVENTS[1]))
    with pytest.raises(TraceError, match=sentence) as caught:
        Trace.load(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / name}".removesuffix("/b.jsonl"))


def test_what_is_only_compressed_is_to_be_unpacked(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl.gz"
    file.touch()
    for path in (tmp_path, file):
        with pytest.raises(TraceError, match=r"gz: it is compressed, .* unpack it$"):
            Trace.load(path)
    file.rename(tmp_path / "manifest.jsonl.gz")
    (tmp_path / "events.jsonl").write_bytes(encode_event(EVENTS[0]))
    with pytest.raises(TraceError, match=r"manifest\.jsonl\.gz: it is compressed"):
        Trace.load(tmp_path)


def test_hidden_and_foreign_files_are_passed_over(tmp_path: Path) -> None:
    parts = tmp_path / "events"
    (parts / "_temporary").mkdir(parents=True)
    (parts / "notes").mkdir()
    (parts / "a.jsonl").write_bytes(encode_event(EVENTS[0]))
    for name in (".hidden.jsonl", "._a.jsonl", "_SUCCESS", "_b.parquet", ".c.jsonl.gz", "README"):
        (parts / name).write_bytes(b"no event")
    (parts / "_temporary" / "b.jsonl").touch()
    (parts / "notes" / "README").touch()
    assert event_files(tmp_path) == [parts / "a.jsonl"]


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
@pytest.mark.parametrize("made", [True, False])
def test_an_interrupted_writer_takes_back_what_it_wrote(
    tmp_path: Path, format: str, made: bool
) -> None:
    directory = tmp_path / "t"
    if not made:
        directory.mkdir()
        (directory / "mine").touch()
    with suppress(KeyboardInterrupt), TraceWriter(directory, format=format) as writer:  # type: ignore[arg-type]
        writer.write_all(EVENTS)
        raise KeyboardInterrupt
    assert directory.exists() is not made
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == ["mine"][made:]
    with TraceWriter(directory) as writer:
        writer.write_all(EVENTS)


def test_a_run_whose_end_is_known_is_kept_whatever_comes(tmp_path: Path) -> None:
    """As of a group that was interrupted: its manifest says that it did not come to rest."""
    with suppress(KeyboardInterrupt), TraceWriter(tmp_path / "t") as writer:
        writer.write_all(EVENTS)
        writer.add_manifest(MANIFEST)
        raise KeyboardInterrupt
    assert len(Trace.load(tmp_path / "t")) == 1


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_a_full_disk_is_named_and_nothing_stays(
    tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(io.BytesIO):
        def write(self, data: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    def full(*_: object) -> None:
        try:
            raise OSError(errno.ENOSPC, "Error writing bytes to file. Detail: [errno 28] No space")
        finally:  # as Arrow does
            raise ValueError("Operation on closed file")

    monkeypatch.setattr(directory, "write_parquet", full)

    def attempt() -> None:
        with TraceWriter(tmp_path / "t", format=format) as writer:  # type: ignore[arg-type]
            if writer._file is not None:
                writer._file.close()
                writer._file = Full()  # type: ignore[assignment]
            writer.write(EVENTS[0])

    with pytest.raises(OSError, match="No space left on device") as caught:
        attempt()
    name = {"jsonl": "events.jsonl", "parquet": "events/part-0.parquet"}[format]
    assert caught.value.filename == str(tmp_path / "t" / name)
    assert caught.value.errno == errno.ENOSPC
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_no_place_for_a_trace(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TraceError, match="file: it is a file: name a directory to write the trace"):
        TraceWriter(tmp_path / "file")
