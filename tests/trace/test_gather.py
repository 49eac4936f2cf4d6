"""Logs of several members become one trace, row by row the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.errors import TraceError
from ordercast.trace import Event, Manifest, read_events, read_manifests, unrolled
from ordercast.trace.gather import Gathered, gather, is_to_be_gathered
from ordercast.trace.spans import EXCERPTS_MAX, Span, SpanLog, rows_of

MANIFEST = Manifest("r", ("a", "b"), order="causal_vector", dissemination="majority_acks")

sizes = st.integers(0, 2**31 - 1)
counts = st.integers(1, 4)


@st.composite
def spans(draw: st.DrawFn) -> Span:
    if draw(st.integers(0, 9)) == 0:
        return Span(draw(st.sampled_from(["crash", "recover"])), draw(st.integers(0, 2**62)))
    kind = draw(st.sampled_from(["send", "receive", "deliver"]))
    count = draw(counts)
    some = st.lists(st.integers(0, 5), max_size=3).map(tuple)
    return Span(
        kind,
        draw(st.integers(0, 2**62)),
        0 if kind == "send" else draw(st.integers(0, 5)),
        draw(st.integers(1, 2**61)),
        count,
        draw(st.none() | sizes | st.lists(sizes, min_size=count, max_size=count)),
        draw(st.none() | st.integers(0, 2**20)),
        draw(st.none() | some) if kind == "send" else None,
    )


@given(st.lists(spans(), max_size=12))
def test_a_table_has_the_rows_that_the_spans_stand_for(
    tmp_path_factory: pytest.TempPathFactory, written: list[Span]
) -> None:
    directory = tmp_path_factory.mktemp("logs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unrolled, "ROWS_AT_ONCE", 5)
        with SpanLog(
            directory, "a", run="r", process=0, manifest=MANIFEST, rotate_bytes=150
        ) as log:
            for span in written:
                log.write([span])
        gathered = gather(directory)
    wanted: list[Event] = []
    for span in written:
        wanted += rows_of(span, run="r", process=0, position=len(wanted))
    assert list(read_events(directory)) == wanted
    assert gathered == Gathered(1, len(wanted))
    assert read_manifests(directory) == [MANIFEST]


def test_logs_are_gathered_when_they_are_newer_than_the_trace(tmp_path: Path) -> None:
    assert not is_to_be_gathered(tmp_path)
    for process, name in enumerate("ab"):
        with SpanLog(tmp_path, name, run="r", process=process, manifest=MANIFEST) as log:
            log.write([Span("deliver", 1, 0, 1, 2, 3)])
    assert is_to_be_gathered(tmp_path)
    assert gather(tmp_path) == Gathered(2, 4)
    assert not is_to_be_gathered(tmp_path)
    with SpanLog(tmp_path, "a", run="r", process=0, manifest=MANIFEST) as log:
        log.write([Span("deliver", 2, 0, 3)])
    later = (tmp_path / "manifest.jsonl").stat().st_mtime + 1
    os.utime(tmp_path / "a-0001.spans", (later, later))
    assert is_to_be_gathered(tmp_path)
    assert gather(tmp_path) == Gathered(2, 5)


def test_excerpts_come_into_the_manifest(tmp_path: Path) -> None:
    for process, name in enumerate("ab"):
        with SpanLog(tmp_path, name, run="r", process=process, manifest=MANIFEST) as log:
            texts = ["why?", "so"] if process == 0 else [f"{n}" for n in range(EXCERPTS_MAX + 1)]
            log.write([Span("send", 1, process, 3, len(texts), excerpts=texts)])
            log.write([Span("send", 1, process, 3 + len(texts))])
    gather(tmp_path)
    [manifest] = read_manifests(tmp_path)
    payloads = manifest.extra["payloads"]
    assert (payloads["0:3"], payloads["0:4"], payloads["1:3"]) == ("why?", "so", "0")
    assert len(payloads) == 2 + EXCERPTS_MAX


def test_two_logs_of_one_process_are_refused(tmp_path: Path) -> None:
    for name in "ab":
        SpanLog(tmp_path, name, run="r", process=0).close()
    with pytest.raises(TraceError, match="is also in the log of 'a'"):
        gather(tmp_path)
