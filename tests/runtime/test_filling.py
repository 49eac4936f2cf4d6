"""A trace whose end was lost, or never came about: the journal has it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ordercast import Group, Settings
from ordercast.pipeline.streaming.source_reach import Directory, Reach
from ordercast.runtime.journal import committer
from ordercast.trace import Manifest, Trace
from ordercast.trace.gather import gather
from ordercast.trace.spans import log_files, read_log, rows_of, whole_records

from .helpers import until
from .test_lives import Pair

pytestmark = pytest.mark.timeout(60)

SMALL = Settings(segment_bytes=5000, keep_bytes=24_000)
Rows = dict[int, tuple[str, int | None, int | None]]


def rows_in(directory: Path, name: str) -> Rows:
    found: Rows = {}
    for file in log_files(directory, name):
        head, spans = read_log(file)
        position = head.position
        for span in spans:
            for row in rows_of(span, run="g", process=head.process, position=position):
                assert row.position not in found
                found[row.position] = row.kind, row.origin, row.number
            position += span.count
    return found


def lose(directory: Path, name: str, *, keep: float) -> None:
    """What comes after this part of its records: they were in memory when the power failed."""
    (file,) = log_files(directory, name)
    data = file.read_bytes()
    ends = [end for _, end in whole_records(data, where=str(file))]
    file.write_bytes(data[: ends[int(keep * (len(ends) - 1))]])


async def exchange(pair: Pair, messages: int) -> Group:
    """The second one gets these, and some of its own, each in a bundle of its own."""
    a, b = await pair.both()
    for number in range(messages):
        await b.send(b"mine")
        receipt = await a.send(b"%0300d" % number)
        await receipt.delivered_by("b")
    return b


async def lives_again(pair: Pair) -> None:
    await pair.join("b")
    await pair.leave("b")


@pytest.mark.parametrize("keep", [0.98, 0.8, 0.6])
def test_what_the_trace_has_lost_is_written_again(tmp_path: Path, keep: float) -> None:
    """However many segments of the journal ago."""

    async def run() -> Rows:
        async with Pair(tmp_path, trace=tmp_path / "trace", settings=SMALL) as pair:
            b = await exchange(pair, 60)
            assert b._node.journal is not None
            assert b._node.journal.segment[0] > 3
            await pair.die("b", b)
            before = rows_in(tmp_path / "trace", "b")
            lose(tmp_path / "trace", "b", keep=keep)
            assert len(rows_in(tmp_path / "trace", "b")) < len(before)
            await lives_again(pair)
            return before

    before = asyncio.run(run())
    after = rows_in(tmp_path / "trace", "b")
    assert [*after] == [*range(len(after))]
    assert [*after.values()][: len(before)] == [*before.values()]
    assert [kind for kind, _, _ in [*after.values()][len(before) :]][:2] == ["crash", "recover"]
    assert gathered(tmp_path / "trace").complete


def gathered(directory: Path) -> Manifest:
    """What the trace says of itself, put together or followed."""
    live = Directory(directory)
    nothing = Reach({}, {})
    ((_, line),) = live.manifests(nothing, live.reach(nothing, most_bytes=2**20))
    gather(directory)
    (trace,) = Trace.load(directory)
    assert Manifest.from_json(line, where="the heads").complete == trace.manifest.complete
    return trace.manifest


def test_what_nobody_has_is_a_hole_and_said_to_be_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings(segment_bytes=8000, keep_bytes=0)

    async def run() -> Rows:
        async with Pair(tmp_path, trace=tmp_path / "trace", settings=settings) as pair:
            await pair.die("b", await exchange(pair, 60))
            before = rows_in(tmp_path / "trace", "b")
            lose(tmp_path / "trace", "b", keep=0.2)
            await lives_again(pair)
            await lives_again(pair)  # goes on at the right place
            return before

    before = asyncio.run(run())
    after = rows_in(tmp_path / "trace", "b")
    lost = [row for row in before if row not in after]
    assert lost == [*range(lost[0], lost[-1] + 1)]
    assert lost[0] > 10
    assert lost[-1] < len(before) - 1
    assert {position: after[position] for position in before if position in after}.items() <= (
        before.items()
    )
    (told,) = [one.message for one in caplog.records if "lacks" in one.message]
    assert told == (
        f"{tmp_path / 'trace'}: the trace lacks {len(lost)} rows of this member, "
        "which are not in its journal any more"
    )
    assert not gathered(tmp_path / "trace").complete


@pytest.mark.parametrize("traced_at_first", [True, False])
def test_a_trace_that_begins_in_a_later_life_has_a_hole(
    tmp_path: Path, traced_at_first: bool
) -> None:
    """Whether the one before was put elsewhere, or there was none."""
    elsewhere = {"trace": tmp_path / "elsewhere"} if traced_at_first else {}

    async def run() -> None:
        async with Pair(tmp_path, settings=Settings(segment_bytes=8000, keep_bytes=0)) as pair:
            pair.options |= elsewhere
            await pair.die("b", await exchange(pair, 60))
            pair.options["trace"] = tmp_path / "trace"
            await lives_again(pair)
            await lives_again(pair)

    asyncio.run(run())
    assert min(rows_in(tmp_path / "trace", "b")) > 100
    assert not gathered(tmp_path / "trace").complete


def test_a_new_segment_may_come_before_the_rows_that_led_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread has written it when the process is killed, and the loop was busy all the while."""

    async def run() -> None:
        async with Pair(
            tmp_path, trace=tmp_path / "trace", settings=SMALL, sync="disk", order="fifo"
        ) as pair:
            b = await exchange(pair, 40)
            monkeypatch.setattr(committer, "_confirm", lambda _: None)
            journal = b._node.journal
            assert journal is not None
            number, _ = journal.segment
            for _ in range(100):  # enough for more than one segment
                await b.send(bytes(300))
                await asyncio.sleep(0)
            await until((tmp_path / "b" / f"{number + 1:010}.segment").exists)
            assert journal.segment[0] == number + 1
            lacking = b._node.core.rows - len(rows_in(tmp_path / "trace", "b"))
            assert lacking >= 100
            await pair.die("b", b)
            monkeypatch.undo()
            await lives_again(pair)

    asyncio.run(run())
    after = rows_in(tmp_path / "trace", "b")
    assert [*after] == [*range(len(after))]
    sent = [number for kind, _, number in after.values() if kind == "send"]
    assert sent == [*range(1, len(sent) + 1)]
    assert len(sent) >= 140 - 1
