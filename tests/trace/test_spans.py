"""A member's log: spans in, rows out, whatever happened to the writer."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.errors import TraceError
from ordercast.trace.span_log import SpanLog
from ordercast.trace.spans import Span, log_files, read_log, rows_of, sizes_of

SPANS = [
    Span("send", 10, 0, 1, 3, [5, 0, 7], 10, (0, 2)),
    Span("deliver", 11, 0, 1, 3, 4),
    Span("crash", 12),
    Span("recover", 13),
    Span("receive", 14, 1, 7, 1, 9, 3),
]


def log(directory: Path, **more: int) -> SpanLog:
    return SpanLog(directory, "a", run="r", process=0, **more)


def read_all(directory: Path) -> list[Span]:
    return [span for file in log_files(directory) for span in read_log(file)[1]]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    with log(tmp_path) as writer:
        writer.write(SPANS[:2])
        writer.write(SPANS[2:])
        assert writer.position == 9
    assert read_all(tmp_path) == SPANS


def test_rows_of_a_span() -> None:
    rows = list(rows_of(SPANS[0], run="r", process=0, position=4))
    assert [(row.position, row.number, row.bytes, row.control_bytes) for row in rows] == [
        (4, 1, 5, 4),
        (5, 2, 0, 3),
        (6, 3, 7, 3),
    ]
    assert {(row.kind, row.origin, row.destinations, row.time_us) for row in rows} == {
        ("send", 0, (0, 2), 10)
    }
    (crash,) = rows_of(SPANS[2], run="r", process=0, position=0)
    assert (crash.kind, crash.origin, crash.number) == ("crash", None, None)


@given(st.lists(st.binary(max_size=3), min_size=1, max_size=5))
def test_sizes_are_one_number_if_they_are_all_the_same(payloads: list[bytes]) -> None:
    sizes = sizes_of(payloads)
    every = sizes if isinstance(sizes, list) else [sizes] * len(payloads)
    assert every == [len(payload) for payload in payloads]
    assert isinstance(sizes, int) == (len(set(every)) == 1)


def test_a_log_cut_anywhere_gives_what_was_whole_and_goes_on_from_there(tmp_path: Path) -> None:
    with log(tmp_path) as writer:
        for span in SPANS:
            writer.write([span])
    (file,) = log_files(tmp_path)
    data = file.read_bytes()
    head = 4 + int.from_bytes(data[:4], "big")
    seen = set()
    for end in range(head, len(data)):
        file.write_bytes(data[:end])
        whole = read_all(tmp_path)
        assert whole == SPANS[: len(whole)]
        seen.add(len(whole))
        with log(tmp_path) as writer:
            assert writer.position == sum(span.count for span in whole)
            writer.write([Span("leave", 99)])
        assert read_all(tmp_path) == [*whole, Span("leave", 99)]
    assert seen == set(range(len(SPANS)))


def test_files_rotate_and_the_next_says_where_it_begins(tmp_path: Path) -> None:
    with log(tmp_path, rotate_bytes=40) as writer:
        for _ in range(3):
            writer.write(SPANS)
    heads = [read_log(file)[0] for file in log_files(tmp_path)]
    assert [head.position for head in heads] == [0, 9, 18, 27]
    assert read_all(tmp_path) == SPANS * 3
    with log(tmp_path) as writer:
        assert writer.position == 27


def test_another_run_does_not_write_here(tmp_path: Path) -> None:
    log(tmp_path).close()
    with pytest.raises(TraceError, match="choose another directory"):
        SpanLog(tmp_path, "a", run="another", process=0)


def test_what_is_no_log_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a-0001.spans"
    path.write_bytes(b"\0\0\0\2\xc1\xc1")
    with pytest.raises(TraceError, match="byte 0: not a span of events"):
        read_log(path)
    path.write_bytes(b"")
    with pytest.raises(TraceError, match="does not say whose it is"):
        read_log(path)


class Killed(BaseException):
    pass


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("written", [0, 3, None])
def test_a_writer_killed_before_a_file_says_whose_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, written: int | None
) -> None:
    put = SpanLog._put

    def die(self: SpanLog, data: bytes) -> None:
        if self._number == number:
            put(self, data[:written])
            raise Killed
        put(self, data)

    monkeypatch.setattr(SpanLog, "_put", die)
    with pytest.raises(Killed):
        log(tmp_path, rotate_bytes=1).write(SPANS)
    monkeypatch.undo()
    before = SPANS if number == 2 else []
    assert read_all(tmp_path) == before
    with log(tmp_path, rotate_bytes=1) as writer:
        assert writer.position == sum(span.count for span in before)
        writer.write([Span("leave", 99)])
    assert read_all(tmp_path) == [*before, Span("leave", 99)]
    assert not list(tmp_path.glob("*.new"))


def test_a_log_whose_older_files_were_put_away_goes_on_with_the_newest(tmp_path: Path) -> None:
    with log(tmp_path, rotate_bytes=1) as writer:
        writer.write(SPANS)
    (tmp_path / "a-0001.spans").unlink()
    with log(tmp_path, rotate_bytes=1) as writer:
        writer.write([Span("leave", 99)])
        writer.look()
    assert [file.name for file in log_files(tmp_path)] == ["a-0002.spans", "a-0003.spans"]


@pytest.mark.parametrize("copied", [False, True])
def test_a_log_that_is_removed_under_its_writer_is_noticed(tmp_path: Path, copied: bool) -> None:
    place = tmp_path / "trace"
    with log(place) as writer:
        writer.write(SPANS)
        writer.look()
        shutil.move(place, tmp_path / "elsewhere")
        if copied:
            shutil.copytree(tmp_path / "elsewhere", place)
        with pytest.raises(TraceError) as told:
            writer.look()
        assert str(told.value) == (
            f"the trace in {place} is lost: {place}/a-0001.spans was removed or moved while the "
            "member was writing to it; start the member again, with another trace directory, or "
            "with its journal once the file is back"
        )
    writer.look()


def test_a_program_may_go_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with log(Path("trace"), rotate_bytes=1) as writer:
        monkeypatch.chdir("elsewhere")
        writer.look()
        writer.write(SPANS)
        writer.look()
    assert len(log_files(tmp_path / "trace")) == 2


def test_zeros_at_the_end_are_cut_off_only_for_who_has_a_journal(tmp_path: Path) -> None:
    with log(tmp_path) as writer:
        for span in SPANS:
            writer.write([span])
    (file,) = log_files(tmp_path)
    data = file.read_bytes()
    for lost in range(1, len(data) + 1):
        file.write_bytes(data[:-lost] + bytes(lost))
        with pytest.raises(TraceError, match=r"byte \d+: not a span|whose it is"):
            read_log(file)
        with log(tmp_path) as writer:
            with pytest.raises(TraceError, match=r"byte \d+: not a span|whose it is"):
                assert writer.position
            with pytest.raises(TraceError, match=r"byte \d+: not a span|whose it is"):
                writer.write([Span("leave", 99)])
            assert file.stat().st_size == len(data), "it is as it was"
            writer.mend()
            place = writer.position
            writer.write([Span("leave", 99)])
        whole = read_all(tmp_path)[:-1]
        assert whole == SPANS[: len(whole)]
        assert place == sum(span.count for span in whole)
        assert len(whole) < len(SPANS)


@pytest.mark.parametrize("left", [b"", bytes(100), b"\0\0\0\x20half a head"])
def test_a_last_file_without_a_head_is_begun_anew_for_who_has_a_journal(
    tmp_path: Path, left: bytes
) -> None:
    with log(tmp_path, rotate_bytes=1) as writer:
        writer.write(SPANS)
    (tmp_path / "a-0002.spans").write_bytes(left)
    with log(tmp_path) as writer:
        with pytest.raises(TraceError, match=r"a-0002.spans"):
            assert writer.position
        writer.mend()
        assert writer.position == 9
        writer.write([Span("leave", 99)])
        writer.look()
    assert [read_log(file)[0].position for file in log_files(tmp_path)] == [0, 9]
    assert read_all(tmp_path) == [*SPANS, Span("leave", 99)]


def test_nobody_mends_what_is_not_the_last_file(tmp_path: Path) -> None:
    with log(tmp_path, rotate_bytes=1) as writer:
        writer.write(SPANS)
    (tmp_path / "a-0001.spans").write_bytes(b"")
    (tmp_path / "a-0002.spans").write_bytes(b"")
    with pytest.raises(TraceError, match=r"a-0001.spans: not a log of spans"):
        log(tmp_path)
