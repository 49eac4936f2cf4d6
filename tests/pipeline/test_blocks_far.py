"""Messages that reach too far for the blocks of a huge run are set apart, and the answers are the
same as those for the whole run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from ordercast import pipeline
from ordercast.pipeline.blocks import apart, judging, sketches
from ordercast.pipeline.blocks.view import Apart
from ordercast.pipeline.huge import Unhealthy
from ordercast.trace.manifest import Manifest

from .broadcasts import manifest_of, whole, write
from .multicasts import (
    LOGS,
    SPOILT,
    Row,
    in_blocks,
    logs_of_multicast,
    only_in_blocks,
    place,
    spoil,
    steady,
    table_of,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDS = 40
pytestmark = pytest.mark.timeout(600)  # on busy cores, compiling takes minutes


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sketches, "EVERY", 4)
    monkeypatch.setattr(judging, "BLOCK_ROWS", 100)


@pytest.fixture
def set_apart(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many messages were, each time."""
    many = []

    def count(*those: object) -> Apart:
        found = apart.apart_of(*those)  # type: ignore[arg-type]
        many.append(len(found.names))
        return found

    monkeypatch.setattr(judging, "apart_of", count)
    return many


def assert_same(path: Path, manifest: Manifest, what: object) -> None:
    found, expected = in_blocks(path, manifest), whole(path, manifest)
    assert found.verdicts.to_pylist() == expected.verdicts.to_pylist(), what
    assert found.seen == expected.seen
    assert sorted(found.violations.to_pylist(), key=str) == sorted(
        expected.violations.to_pylist(), key=str
    ), what


def test_whatever_reaches_far(
    tmp_path: Path, blocks: list[int], set_apart: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: Counter[str] = Counter()
    for seed in range(SEEDS):
        random = Random(seed)
        logs = logs_of_multicast(seed, steps=700)
        spoilt = [spoil(logs, random) for _ in range(random.choice([1, 1, 2, 5]))]
        events = table_of(logs)
        manifest = manifest_of(events, quiesced=random.random() < 0.6)
        monkeypatch.setattr(sketches, "EVERY", random.choice([1, 2, 4, 8]))
        monkeypatch.setattr(judging, "BLOCK_ROWS", random.choice([120, 200, 300]))
        path = write(tmp_path / str(seed), events, manifest, random.choice([7, 20, 40, 100]))
        try:
            assert_same(path, manifest, (seed, spoilt))
        except Unhealthy:
            told["not possible"] += 1
            continue
        told.update(set(spoilt) if blocks[-1] > 2 else [])
    assert told["not possible"] <= 2
    assert len(set_apart) > SEEDS // 2
    assert all(told[how] > 2 for how in SPOILT), told


def omit(logs: LOGS) -> None:
    del logs[1][place(logs, 1, (0, 60))]


def postpone(logs: LOGS) -> None:
    logs[1].insert(place(logs, 1, (0, 160)), logs[1].pop(place(logs, 1, (0, 60))))


def repeat_later(logs: LOGS) -> None:
    logs[1].insert(place(logs, 1, (0, 160)), ("deliver", 0, 60, None))


def forge(logs: LOGS) -> None:
    logs[1].insert(place(logs, 1, (0, 60)), ("deliver", 0, 10**9, None))


def receive_first(logs: LOGS) -> None:
    """All that is delivered has been received as well; of messages, that says nothing."""
    postpone(logs)
    for log in logs:
        log[:] = [
            one
            for row in log
            for one in ([("receive", *row[1:]), row] if row[0] == "deliver" else [row])
        ]


def later(logs: LOGS, by: int) -> None:
    logs[1].insert(place(logs, 1, (0, 60 + by)), logs[1].pop(place(logs, 1, (0, 60))))


def again(logs: LOGS, by: int) -> None:
    logs[1].insert(place(logs, 1, (0, 60 + by)), ("deliver", 0, 60, None))


def skipped_before_the_end(logs: LOGS, by: int) -> None:
    """What the second one sends after that is sent by the first one instead."""
    end = place(logs, 1, (0, 60 + by // 3))
    ended = {row[1:3] for row in logs[1][end:] if row[0] == "send"}
    logs[1] = [*logs[1][:end], ("crash", None, None, None)]
    del logs[1][place(logs, 1, (0, 58 - by % 12))]
    for p in (0, 2):
        logs[p] = [row for row in logs[p] if row[1:3] not in ended]


@pytest.mark.parametrize("spoil", [omit, postpone, repeat_later, forge, receive_first])
def test_one_message(
    tmp_path: Path, blocks: list[int], set_apart: list[int], spoil: Callable[[LOGS], None]
) -> None:
    logs = steady(600)
    spoil(logs)
    manifest = manifest_of(table_of(logs), quiesced=True)
    assert_same(write(tmp_path / "trace", table_of(logs), manifest, 20), manifest, spoil)
    assert set_apart == [1]
    [many] = blocks
    assert many >= 17


def filled_in(logs: LOGS, by: int) -> None:
    """The second one delivers a number between those that were sent."""
    for log in logs:
        log[:] = [row for row in log if row[1:3] != (0, 60)]
    logs[1].insert(place(logs, 1, (0, 59 + by)), ("deliver", 0, 60, None))


@pytest.mark.parametrize("spoil", [later, again, skipped_before_the_end, filled_in])
def test_however_far_it_reaches(
    tmp_path: Path,
    blocks: list[int],
    set_apart: list[int],
    monkeypatch: pytest.MonkeyPatch,
    spoil: Callable[[LOGS, int], None],
) -> None:
    monkeypatch.setattr(judging, "MARGINS", (4,))
    for by in range(2, 44, 3):
        logs = steady(450)
        spoil(logs, by)
        events = table_of(logs)
        manifest = manifest_of(events, quiesced=True)
        assert_same(write(tmp_path / str(by), events, manifest, 100), manifest, by)
    assert len(set_apart) > 5


def sender(logs: LOGS) -> Callable[..., Row]:
    """Sends, and has it delivered by those readers who do not get it later or never."""
    sent = [0] * len(logs)

    def send(p: int, *readers: int, later: Sequence[int] = ()) -> Row:
        sent[p] += 1
        delivery: Row = "deliver", p, sent[p], None
        logs[p].append(("send", p, sent[p], readers))
        for q in readers:
            if q not in later:
                logs[q].append(delivery)
        return delivery

    return send


def lacking_two(at: int) -> LOGS:
    """The first process delivers a message of the third one before two others: one that the third
    one had delivered, and one, sent long before, that it knew of by that. The second one skips it.
    """
    logs: LOGS = [[] for _ in range(4)]
    send = sender(logs)
    for i in range(120):
        send(i % 4, *(q for q in range(4) if q != i % 4))
        if i == at:
            old = send(1, 0, 3, later=[0])
            for _ in range(8):
                send(0, 1, 2, 3)
            near = send(3, 0, 2, later=[0])
            send(2, 0, 1, later=[1])
            logs[0] += [old, near]
    return logs


def test_what_it_lacks_is_told_by_several_blocks(
    tmp_path: Path, blocks: list[int], set_apart: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "MARGINS", (3,))
    for at in range(41, 55, 2):
        events = table_of(lacking_two(at))
        manifest = manifest_of(events, quiesced=True)
        assert_same(write(tmp_path / str(at), events, manifest, 50), manifest, at)
    assert set_apart == [1] * 7


def two_groups(
    many: int, bridges: Sequence[int], *, skips: int = 1, slow: int | None = None
) -> LOGS:
    """Two pairs of processes. The first pair hears of the second one now and then, but the second
    one of the first only at the bridges. Early on, someone skips a message: if it is the last
    process, then who tells of it at the bridges heard of it itself, from one who is silent since.

    `slow`: one message of those who have it goes to the second pair, and gets there then.
    """
    logs: LOGS = [[] for _ in range(4)]
    send = sender(logs)
    for i in range(many):
        for pair in (0, 2):
            p = pair + i % 2
            if p > 0 or skips == 1 or i < 150:
                send(p, pair + (i + 1) % 2)
        if i % 5 == 0:
            send(2, 0, 1)
        if i in bridges:
            send(1 if skips == 3 else 0, 2)
        if i == 10:
            send(0, skips, later=[skips])
        if i == 20 and slow:
            underway = send(0, 2, 3, later=[2, 3])
        if i == slow:
            logs[2].append(underway)
            logs[3].append(underway)
    return logs


@pytest.mark.parametrize("skips", [1, 3])
@pytest.mark.parametrize("bridges", [(), (250,), (250, 270, 290)])
def test_who_hears_of_it_late_or_never(
    tmp_path: Path,
    blocks: list[int],
    set_apart: list[int],
    monkeypatch: pytest.MonkeyPatch,
    bridges: Sequence[int],
    skips: int,
) -> None:
    asked = []
    ask = apart._Ways._ask

    def count(self: apart._Ways, *those: object) -> object:
        asked.append(len(self.since))
        return ask(self, *those)  # type: ignore[arg-type]

    monkeypatch.setattr(apart._Ways, "_ask", count)
    events = table_of(two_groups(300, bridges, skips=skips))
    manifest = manifest_of(events, quiesced=True)
    assert_same(write(tmp_path / "trace", events, manifest, 20), manifest, bridges)
    assert len(set_apart) == 1
    assert (len(asked) > 3) == (250 in bridges)


def test_who_hears_of_it_by_another_one_later_on(
    tmp_path: Path, blocks: list[int], set_apart: list[int]
) -> None:
    """In the block where it was sent, only that other one can be seen."""
    events = table_of(two_groups(300, (250,), slow=290))
    manifest = manifest_of(events, quiesced=True)
    assert_same(write(tmp_path / "trace", events, manifest, 20), manifest, "slow")
    assert set_apart == [2]


def test_too_many(tmp_path: Path, blocks: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    logs = steady(600)
    for number in (60, 90, 120):
        del logs[1][place(logs, 1, (0, number))]
    manifest = manifest_of(table_of(logs), quiesced=True)
    path = write(tmp_path / "trace", table_of(logs), manifest, 20)
    monkeypatch.setattr(apart, "APART_MOST", 3)
    in_blocks(path, manifest)
    monkeypatch.setattr(apart, "APART_MOST", 2)
    with pytest.raises(Unhealthy, match="much later than others, or never"):
        in_blocks(path, manifest)


def test_who_hears_of_it_too_late(
    tmp_path: Path, blocks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    events = table_of(two_groups(300, (250,)))
    manifest = manifest_of(events, quiesced=True)
    path = write(tmp_path / "trace", events, manifest, 20)
    monkeypatch.setattr(apart, "_ROUNDS", 10)  # just enough
    in_blocks(path, manifest)
    monkeypatch.setattr(apart, "_ROUNDS", 9)
    with pytest.raises(Unhealthy, match="hear after a long time"):
        in_blocks(path, manifest)


def test_spark_judges_such_a_run_in_blocks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = logs_of_multicast(5, steps=4000, size=4)
    for seed in range(6):
        spoil(logs, Random(seed))
    events = table_of(logs)
    path = write(tmp_path / "trace", events, manifest_of(events, quiesced=True), 300)
    expected = pipeline.judge(path, spark=spark)
    only_in_blocks(monkeypatch)
    assert pipeline.judge(path, spark=spark) == expected
