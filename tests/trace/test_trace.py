"""Traces on disk: what is written is read back, and what is broken is refused with its place."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.errors import TraceError
from ordercast.protocols.messages import Message, MessageId
from ordercast.trace import Event, Manifest, Recorder, Trace, TraceWriter
from ordercast.trace.jsonl import decode_event, encode_event
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
