"""Logs of several members become one trace, row by row the same."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.errors import TraceError
from ordercast.trace import Event, Manifest, read_events, read_manifests, unrolled
from ordercast.trace import gather as gathering
from ordercast.trace.gather import (
    RECORD,
    Gathered,
    gather,
    gathered,
    is_to_be_gathered,
    undisturbed,
)
from ordercast.trace.importers import source_files
from ordercast.trace.span_log import SpanLog
from ordercast.trace.spans import EXCERPTS_MAX, Head, Span, log_files, read_log, rows_of

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
        found = gather(directory)
    wanted: list[Event] = []
    for span in written:
        wanted += rows_of(span, run="r", process=0, position=len(wanted))
    assert list(read_events(directory)) == wanted
    assert found == Gathered(1, len(wanted))
    assert read_manifests(directory) == [MANIFEST]


@contextmanager
def closed(directory: Path) -> Iterator[None]:
    """Nobody may write there, and this process is nobody if it was root."""
    own = os.geteuid()
    directory.chmod(0o555)
    if own == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(own)
        directory.chmod(0o755)


def test_logs_where_nothing_may_be_written_are_gathered_elsewhere(tmp_path: Path) -> None:
    write(tmp_path, "a")
    gather(tmp_path)  # with all that has to be imported, which nobody may not be allowed to read
    with tempfile.TemporaryDirectory() as place:  # where anyone may look in, unlike in `tmp_path`
        archive = Path(place)
        with SpanLog(archive, "a", run="r", process=0, manifest=MANIFEST) as log:
            log.write([Span("send", 1, 0, 1)])
        for file in archive.iterdir():
            file.chmod(0o444)
        told: list[Gathered] = []
        with closed(archive):
            with pytest.raises(PermissionError):
                gather(archive)
            trace = gathered(archive, told.append)
        assert trace != archive
        assert told == [Gathered(1, 1)]
        assert [event.number for event in read_events(trace)] == [1]
        assert read_manifests(trace) == [MANIFEST]
        assert gathered(trace) == trace, "there is no more to be gathered"
        assert gathered(archive) == archive, "it may be written to now"
        assert not is_to_be_gathered(archive)
        gathering._elsewhere.pop(
            trace
        ).place.cleanup()  # a worker of pytest may end without its last rites
        assert not trace.exists()


def test_a_full_disk_is_no_reason_to_gather_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SpanLog(tmp_path, "a", run="r", process=0, manifest=MANIFEST) as log:
        log.write([Span("send", 1, 0, 1)])

    def full(*_: object) -> Gathered:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(gathering, "gather", full)
    with pytest.raises(OSError, match="No space left"):
        gathered(tmp_path)


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


def write(directory: Path, *names: str) -> None:
    """A log for each of them, which has two rows more now."""
    for name in names:
        with SpanLog(directory, name, run="r", process="abc".index(name), manifest=MANIFEST) as log:
            log.write([Span("deliver", 1, 0, 1, 2, 3)])


def test_a_log_that_comes_later_is_gathered_whatever_its_time(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere", "c")
    write(tmp_path / "trace", "a", "b")
    gather(tmp_path / "trace")
    shutil.copy2(tmp_path / "elsewhere" / "c-0001.spans", tmp_path / "trace")  # with its times
    assert is_to_be_gathered(tmp_path / "trace")
    assert gather(tmp_path / "trace") == Gathered(3, 6)
    assert not is_to_be_gathered(tmp_path / "trace")


def test_rows_that_are_written_while_others_are_read_are_gathered_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(file: Path, *, size: int) -> tuple[Head, list[Span]]:
        found = read_log(file, size=size)
        write(tmp_path, "a", "b")  # b's rows may be of messages that a sent after it was read
        return found

    write(tmp_path, "a", "b")
    monkeypatch.setattr(gathering, "read_log", read)
    assert gather(tmp_path) == Gathered(2, 4)
    monkeypatch.undo()
    assert is_to_be_gathered(tmp_path)
    assert gather(tmp_path) == Gathered(2, 12)
    assert not is_to_be_gathered(tmp_path)


def test_logs_that_never_rest_have_holes_until_they_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Path] = []

    def logs(directory: Path) -> list[Path]:
        looks.append(directory)
        write(tmp_path, "a")
        return log_files(directory)

    write(tmp_path, "a", "b")
    monkeypatch.setattr(gathering, "log_files", logs)
    monkeypatch.setattr(gathering, "_LOOKS", 3)
    gather(tmp_path)
    assert len(looks) == 3
    assert read_manifests(tmp_path) == [replace(MANIFEST, complete=False)]
    monkeypatch.undo()
    gather(tmp_path)
    assert read_manifests(tmp_path) == [MANIFEST]


def test_who_reads_while_logs_are_gathered_again_finds_whole_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(file: Path, *, size: int) -> tuple[Head, list[Span]]:
        assert len(list(read_events(tmp_path))) == 4
        return read_log(file, size=size)

    write(tmp_path, "a", "b")
    gather(tmp_path)
    write(tmp_path, "a", "b")
    monkeypatch.setattr(gathering, "read_log", read)
    assert gather(tmp_path) == Gathered(2, 8)
    assert sorted(file.name for file in (tmp_path / "events").iterdir()) == [
        "a.parquet",
        "b.parquet",
    ]


def test_of_two_commands_at_once_one_gathers_and_the_other_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Gathered] = []
    second = threading.Thread(target=lambda: gathered(tmp_path, told.append))

    def read(file: Path, *, size: int) -> tuple[Head, list[Span]]:
        if second.ident is None:
            second.start()
            second.join(0.2)
            assert second.is_alive()
        return read_log(file, size=size)

    write(tmp_path, "a", "b")
    monkeypatch.setattr(gathering, "read_log", read)
    assert gathered(tmp_path, told.append) == tmp_path
    second.join()
    assert told == [Gathered(2, 4)]


def test_who_looks_at_a_trace_sees_events_and_manifests_of_one_moment(tmp_path: Path) -> None:
    write(tmp_path, "a")
    gather(tmp_path)
    write(tmp_path, "a", "b")
    second = threading.Thread(target=gathered, args=[tmp_path])
    with undisturbed(tmp_path):
        second.start()
        second.join(0.2)
        assert second.is_alive()
        assert len(list(read_events(tmp_path))) == 2
    second.join()
    assert len(list(read_events(tmp_path))) == 6


def test_a_trace_outlives_its_logs(tmp_path: Path) -> None:
    write(tmp_path, "a", "b")
    gather(tmp_path)
    for name in "ab":
        (tmp_path / f"{name}-0001.spans").unlink()
        assert not is_to_be_gathered(tmp_path)
    assert len(list(read_events(tmp_path))) == 4


def test_a_run_outlives_its_logs_when_others_are_gathered(tmp_path: Path) -> None:
    write(tmp_path, "a", "b")
    gather(tmp_path)
    for name in "ab":
        (tmp_path / f"{name}-0001.spans").unlink()
    later = replace(MANIFEST, run="later")
    with SpanLog(tmp_path, "c", run="later", process=0, manifest=later) as log:
        log.write([Span("send", 1, 0, 1)])
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for place in (elsewhere, tmp_path):
        assert gather(tmp_path, place) == Gathered(1, 1)
        assert read_manifests(place) == [MANIFEST, later]
        assert {event.run for event in read_events(place)} == {"r", "later"}
        assert len(list(read_events(place))) == 5


def test_a_manifest_that_was_cut_short_is_made_anew(tmp_path: Path) -> None:
    write(tmp_path, "a", "b")
    gather(tmp_path)
    (tmp_path / "manifest.jsonl").write_bytes(b'{"run": "r", "proc')
    (tmp_path / RECORD).unlink()
    gathered(tmp_path)
    assert read_manifests(tmp_path) == [MANIFEST]


@pytest.mark.parametrize("record", [None, b"", b'{"a-0001.spans": 7}', b"\xff"])
def test_logs_are_gathered_again_if_nobody_can_tell_what_they_were(
    tmp_path: Path, record: bytes | None
) -> None:
    write(tmp_path, "a", "b")
    gather(tmp_path)
    if record is None:
        (tmp_path / RECORD).unlink()
    else:
        (tmp_path / RECORD).write_bytes(record)
    assert is_to_be_gathered(tmp_path)


def test_what_was_not_gathered_to_the_end_is_gathered_again(tmp_path: Path) -> None:
    write(tmp_path, "a", "b")
    gather(tmp_path)
    whole = (tmp_path / "b-0001.spans").read_bytes()
    found = (tmp_path / "b-0001.spans").stat()
    (tmp_path / "b-0001.spans").write_bytes(b"")
    with pytest.raises(TraceError, match="does not say whose it is"):
        gather(tmp_path)
    (tmp_path / "b-0001.spans").write_bytes(whole)
    os.utime(tmp_path / "b-0001.spans", ns=(found.st_atime_ns, found.st_mtime_ns))
    assert is_to_be_gathered(tmp_path)


def test_what_is_known_of_the_logs_is_no_part_of_the_trace(tmp_path: Path) -> None:
    write(tmp_path / "trace", "a", "b")
    gather(tmp_path / "trace")
    assert read_manifests(tmp_path / "trace") == [MANIFEST]
    assert len(list(read_events(tmp_path / "trace"))) == 4
    names = {"a-0001.spans", "b-0001.spans", "manifest.jsonl"}
    assert {file.name for file in source_files([tmp_path / "trace"])} == names
    copy = shutil.copytree(tmp_path / "trace", tmp_path / "copy")
    assert not is_to_be_gathered(copy)


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


def test_a_file_that_does_not_say_whose_it_is_is_refused(tmp_path: Path) -> None:
    with SpanLog(tmp_path, "a", run="r", process=0, rotate_bytes=1) as log:
        log.write([Span("join", 1)])
    (tmp_path / "a-0001.spans").write_bytes(b"")
    with pytest.raises(TraceError, match=r"a-0001.spans: not a log of spans: it does not say"):
        gather(tmp_path)


def test_two_logs_of_one_process_are_refused(tmp_path: Path) -> None:
    for name in "ab":
        SpanLog(tmp_path, name, run="r", process=0).close()
    with pytest.raises(TraceError, match="is also in the log of 'a'"):
        gather(tmp_path)
