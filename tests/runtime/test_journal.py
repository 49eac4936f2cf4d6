"""What was committed comes back, whatever happens to the process or to the last write."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from threading import Event
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.errors import JournalError
from ordercast.runtime.journal import Journal, checksum, ownership, taken, writer

from . import journal_child
from .journal_child import IDENTITY

Policy = Literal["write", "disk"]
POLICIES: tuple[Policy, ...] = ("write", "disk")


def nothing() -> None:
    pass


@contextmanager
def opened(
    directory: Path,
    policy: Policy = "write",
    *,
    segment_bytes: int = 64 << 20,
    keep_bytes: int = 1 << 40,
) -> Iterator[Journal]:
    journal = Journal(
        directory,
        identity=IDENTITY,
        sync=policy,
        segment_bytes=segment_bytes,
        keep_bytes=keep_bytes,
    )
    try:
        yield journal
    finally:
        journal.close()


def commit(journal: Journal, *records: bytes) -> None:
    for record in records:
        journal.append(record)
    done: list[int] = []
    journal.commit(lambda: done.append(1))
    assert done, "the write policy confirms at once"


def content(journal: Journal) -> tuple[bytes, list[bytes]]:
    assert journal.recovered is not None
    return journal.recovered.snapshot, list(journal.recovered.records())


def read(directory: Path) -> tuple[bytes, list[bytes]]:
    with opened(directory) as journal:
        return content(journal)


# What it does on a good day.


def test_a_new_journal_has_nothing_to_recover(tmp_path: Path) -> None:
    with opened(tmp_path / "deep" / "journal") as journal:
        assert journal.recovered is None
        assert journal.taken == 0
        assert list(journal.history()) == []


def test_a_journal_that_never_started_is_still_new(tmp_path: Path) -> None:
    with opened(tmp_path):
        pass
    (tmp_path / "0000000001.new").write_bytes(b"a start that was interrupted")
    with opened(tmp_path) as journal:
        assert journal.recovered is None
        journal.start(b"first")
    assert read(tmp_path) == (b"first", [])
    assert not list(tmp_path.glob("*.new"))


@pytest.mark.parametrize("count", [1, 3, 2000])
@pytest.mark.parametrize("size", [10, 40_000])
def test_batches_of_any_shape_are_written_alike(tmp_path: Path, count: int, size: int) -> None:
    records = [bytes((number % 251,)) * size for number in range(count)]
    with opened(tmp_path) as journal:
        journal.start(b"snapshot")
        commit(journal, *records)
        commit(journal, b"more")
    assert read(tmp_path) == (b"snapshot", [*records, b"more"])


def test_records_come_back_and_more_are_added(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        journal.start(b"snapshot")
        commit(journal, b"one", b"")
        journal.append(b"in ", b"three", b" parts")
        commit(journal)
        journal.append(b"never committed")
    with opened(tmp_path) as journal:
        assert content(journal) == (b"snapshot", [b"one", b"", b"in three parts"])
        commit(journal, b"more")
        # What was found stays what it was.
        assert content(journal) == (b"snapshot", [b"one", b"", b"in three parts"])
    assert read(tmp_path) == (b"snapshot", [b"one", b"", b"in three parts", b"more"])


@given(st.binary(max_size=5000), st.integers(0, 2**32 - 1))
def test_checksums_are_the_same_whoever_computes_them(data: bytes, seed: int) -> None:
    assert checksum.crc32(data, seed) == zlib.crc32(data, seed)


def test_a_journal_is_read_where_the_fast_checksum_is_not_installed(tmp_path: Path) -> None:
    assert checksum.crc32 is not zlib.crc32, "the extra `fast` is not installed"
    with opened(tmp_path) as journal:
        journal.start(b"snapshot")
        commit(journal, b"one", b"two")
    code = (
        "import sys, zlib; sys.modules['isal'] = None\n"
        "from pathlib import Path\n"
        "from ordercast.runtime.journal import Journal, checksum\n"
        "assert checksum.crc32 is zlib.crc32\n"
        f"found = Journal(Path({str(tmp_path)!r}), identity={IDENTITY!r}).recovered\n"
        "print(found.snapshot, *found.records())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "b'snapshot' b'one' b'two'\n"


def test_cutting_keeps_a_history_and_bounds_it(tmp_path: Path) -> None:
    with opened(tmp_path, segment_bytes=1000, keep_bytes=5000) as journal:
        journal.start(b"0")
        for number in range(1, 201):
            assert not journal.full
            commit(journal, b"%d" % number * 100)
            if journal.full:
                journal.cut(b"%d" % number)
        kept = [(int(one.snapshot), list(one.records())) for one in journal.history()]
    sizes = [path.stat().st_size for path in sorted(tmp_path.glob("*.segment"))]
    assert 2500 < sum(sizes[:-1]) <= 5000
    assert 1 < len(kept) < 10
    snapshot, records = read(tmp_path)
    kept.append((int(snapshot), records))
    for (before, records), (after, _) in zip(kept, [*kept[1:], (200, [])], strict=True):
        assert records == [b"%d" % number * 100 for number in range(before + 1, after + 1)]


def test_a_large_snapshot_is_not_written_again_at_once(tmp_path: Path) -> None:
    """Before and after it is opened anew."""
    large = bytes(5000)
    with opened(tmp_path, segment_bytes=1000) as journal:
        journal.start(large)
        for _ in range(20):
            assert not journal.full
            commit(journal, bytes(200))
    with opened(tmp_path, segment_bytes=1000) as journal:
        assert not journal.full
        commit(journal, bytes(1000))
        assert journal.full
        journal.cut(b"small")
        commit(journal, bytes(999))
        assert journal.full


def test_a_cut_covers_what_was_appended_before_it(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        journal.start(b"0")
        journal.append(b"1")
        journal.cut(b"1")
        commit(journal, b"2")
        (old,) = journal.history()
        assert (old.snapshot, list(old.records())) == (b"0", [b"1"])
    assert read(tmp_path) == (b"1", [b"2"])


def test_taken_is_remembered_without_a_commit(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        journal.start(b"")
        for position in range(1, 100):
            journal.mark(position)
        journal.mark(98)
        assert journal.taken == 99
    for _ in range(2):
        with opened(tmp_path) as journal:
            assert journal.taken == 99
    with opened(tmp_path) as journal:
        journal.cut(b"")
        journal.mark(2**64 - 1)
    with opened(tmp_path) as journal:
        assert journal.taken == 2**64 - 1


def test_a_journal_without_its_segments_is_not_a_new_one(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        journal.start(b"")
        journal.mark(3)
    (tmp_path / "0000000001.segment").unlink()
    said = r"taken is there, says that 3 messages were taken, and all else is gone; restore"
    with pytest.raises(JournalError, match=said):
        read(tmp_path)
    for half_made in (b"", bytes(100)):
        (tmp_path / "taken").write_bytes(half_made)
        with opened(tmp_path) as journal:
            assert journal.recovered is None


def test_taken_that_is_damaged_is_what_it_was_before_and_the_log_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before, now = 0x0102030405060708, 0x0112131415161718
    with opened(tmp_path) as journal:
        journal.start(b"")
        journal.mark(before)
        journal.mark(now)
    file = tmp_path / "taken"
    whole = file.read_bytes()
    slots = range(4096, 4096 + 16 + 4096), range(3 * 4096, 3 * 4096 + 16 + 4096)
    for byte in (*range(100), *(at for slot in slots for at in (*slot[:100], *slot[100::500]))):
        file.write_bytes(whole[:byte] + bytes([whole[byte] ^ 0x5A]) + whole[byte + 1 :])
        caplog.clear()
        if byte < 8:
            with pytest.raises(JournalError, match=r"taken is corrupt.*backup"):
                read(tmp_path)
            continue
        with opened(tmp_path) as journal:
            assert journal.taken == (before if byte in slots[1] else now)
        said = [text for text in caplog.messages if "what was taken last may be handed" in text]
        assert len(said) == any(byte in slot for slot in slots)
    file.write_bytes(whole[:8] + bytes(taken.FILE_BYTES - 8))
    with pytest.raises(JournalError, match="taken is corrupt"):
        read(tmp_path)


def test_messages_taken_one_by_one_are_ticked_off(tmp_path: Path) -> None:
    def take(journal: Journal, before: int, count: int, *, of: int) -> None:
        ticks = journal.ticks(before, of)
        for place in range(count):
            ticks[place] = 1

    with opened(tmp_path) as journal:
        journal.start(b"")
        take(journal, 0, 3, of=3)
        take(journal, 3, 2, of=taken.TICKS)
        assert journal.taken == 5
    with opened(tmp_path) as journal:
        take(journal, 1, 2, of=10)
        assert journal.taken == 5, "what was taken before is taken still"
        take(journal, 1, 7, of=10)
        assert journal.taken == 8
        take(journal, 0, 8, of=8)
        assert journal.taken == 8
        take(journal, 8, taken.TICKS, of=taken.TICKS)
        assert journal.taken == 8 + taken.TICKS
        journal.mark(9000)
    assert_taken(tmp_path, 9000)


class Dying:
    """Words of a mapped file; the process dies when it has stored some of them."""

    def __init__(self, words: memoryview, stores: int) -> None:
        self.words = words
        self.stores = stores

    def __getitem__(self, place: int) -> int:
        return self.words[place]

    def __setitem__(self, place: int, word: int) -> None:
        if not self.stores:
            raise ZeroDivisionError
        self.stores -= 1
        self.words[place] = word

    def release(self) -> None:
        self.words.release()


@pytest.mark.parametrize("stores", range(4))
def test_a_kill_while_a_stretch_begins_changes_nothing(
    tmp_path: Path, stores: int, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "taken"
    taken.Taken.create(file)
    counter = taken.Taken(file)
    for value in (100, 150):
        counter.mark(value)
    counter._words = Dying(counter._words, stores)  # type: ignore[assignment]
    with suppress(ZeroDivisionError):
        counter.begin(before=50, count=200)
    counter.close()
    assert taken.Taken(file).value == 150
    assert not caplog.messages


def test_taken_is_lowered_where_the_records_have_gone(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        journal.start(b"")
        journal.mark(50)
        journal.forget_beyond(50)
        assert journal.taken == 50
        journal.forget_beyond(20)
        assert journal.taken == 20
    assert_taken(tmp_path, 20)


def assert_taken(directory: Path, position: int) -> None:
    with opened(directory) as journal:
        assert journal.taken == position


# What is refused.


def test_two_openers_do_not_share_a_journal(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        journal.start(b"")
        with pytest.raises(JournalError, match="in use by this process: a member runs once"):
            read(tmp_path)
        (tmp_path / "lock").write_text("12345\n")
        with pytest.raises(JournalError, match=r"in use by another process \(pid 12345\)"):
            read(tmp_path)
    assert read(tmp_path) == (b"", [])


@pytest.mark.parametrize(
    ("identity", "words"),
    [
        ({"group": "test", "member": "b"}, "member = 'a', and this member has member = 'b'"),
        ({"member": "a"}, "group = 'test', and this member has group = None"),
        (IDENTITY | {"order": "causal"}, "order = None, and this member has order = 'causal'"),
    ],
)
def test_another_members_journal_is_refused(
    tmp_path: Path, identity: dict[str, str], words: str
) -> None:
    with opened(tmp_path) as journal:
        journal.start(b"")
    with pytest.raises(JournalError, match=words):
        Journal(tmp_path, identity=identity)
    assert read(tmp_path) == (b"", [])


@pytest.mark.parametrize(
    ("charter", "words"),
    [
        (
            "total_consensus over direct, 3 members (1a2b3c4d)",
            "is of fifo over relay, and this member was started with total_consensus over direct: ",
        ),
        (
            "fifo over relay, 4 members (5e6f7a8b)",
            "of a group of 3 members (1a2b3c4d), and this member was started with 4 members (5e6f7",
        ),
    ],
)
def test_a_journal_of_another_algorithm_or_group_says_which_and_what_to_do(
    tmp_path: Path, charter: str, words: str
) -> None:
    identity = IDENTITY | {"charter": "fifo over relay, 3 members (1a2b3c4d)"}
    journal = Journal(tmp_path, identity=identity)
    journal.start(b"")
    journal.close()
    with pytest.raises(JournalError, match=re.escape(words)) as raised:
        Journal(tmp_path, identity=identity | {"charter": charter})
    assert "charter" not in str(raised.value)
    assert "the whole group afresh, with new journals" in str(raised.value)
    with pytest.raises(JournalError, match="member = 'a', and this member has member = 'b'"):
        Journal(tmp_path, identity=identity | {"charter": charter, "member": "b"})


def test_a_journal_of_another_version_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        journal.start(b"")
    (file,) = tmp_path.glob("*.segment")
    data = bytearray(file.read_bytes())
    data[8] = 9
    file.write_bytes(data)
    with pytest.raises(JournalError, match="format version 9, and this release"):
        read(tmp_path)


def test_a_segment_that_is_missing_or_in_the_wrong_place_is_noticed(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        journal.start(b"0")
        for number in range(1, 4):
            commit(journal, b"%d" % number)
            journal.cut(b"%d" % number)
    first, second, third, last = sorted(tmp_path.glob("*.segment"))
    second.rename(tmp_path / "away")
    with opened(tmp_path) as journal, pytest.raises(JournalError, match="is followed by"):
        list(journal.history())
    shutil.copy(third, second)
    with opened(tmp_path) as journal, pytest.raises(JournalError, match="when it was written"):
        list(journal.history())
    (tmp_path / "away").rename(second)
    os.truncate(first, first.stat().st_size - 1)
    with opened(tmp_path) as journal, pytest.raises(JournalError, match="broken or missing"):
        [list(one.records()) for one in journal.history()]
    last.unlink()
    (tmp_path / "taken").unlink()
    with pytest.raises(
        JournalError, match=r"taken is missing; restore the directory .*A broken journal"
    ):
        read(tmp_path)


# What a crash leaves, byte by byte.

Operation = list[bytes] | Literal["cut"]
operations = st.lists(
    st.one_of(
        st.lists(st.one_of(st.binary(max_size=40), st.just(bytes(700))), max_size=4),
        st.just("cut"),
    ),
    max_size=8,
)


def carry_out(directory: Path, script: list[Operation]) -> list[tuple[int, int, list[bytes]]]:
    """For the last segment: begin and end of each batch, and all records up to there."""
    with opened(directory) as journal:
        journal.start(b"state")
        file = directory / "0000000001.segment"
        seen = [(0, file.stat().st_size, list[bytes]())]
        number = 1
        for operation in script:
            if operation == "cut":
                journal.cut(b"state")
                number += 1
                file = directory / f"{number:010}.segment"
                seen = [(0, file.stat().st_size, list[bytes]())]
            else:
                commit(journal, *operation)
                _, begin, records = seen[-1]
                seen.append((begin, file.stat().st_size, records + operation))
    return [one for one in seen if one[0] < one[1]]


def last_segment(directory: Path) -> Path:
    return max(directory.glob("*.segment"))


def outcome(directory: Path) -> list[bytes] | JournalError:
    try:
        snapshot, records = read(directory)
    except JournalError as error:
        return error
    assert snapshot == b"state"
    return records


@given(operations, st.data())
def test_a_file_cut_at_any_byte_keeps_what_was_committed_before(
    script: list[Operation], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory(prefix="ocjournal-") as name:
        directory = Path(name)
        batches = carry_out(directory, script)
        file = last_segment(directory)
        whole = file.read_bytes()
        at = data.draw(st.integers(0, len(whole)), label="cut at")
        # Behind the cut there is nothing, or what was zeroed ahead.
        zeros = data.draw(st.sampled_from((0, 1, 3000)), label="zeros behind")
        file.write_bytes(whole[:at] + bytes(zeros))
        known = [records for _, end, records in batches if end <= at]
        found = outcome(directory)
        if not known:
            assert isinstance(found, JournalError)
            return
        assert found == known[-1]
        # It goes on from there, and the repair is not needed twice.
        with opened(directory) as journal:
            assert journal.recovered is not None
            assert journal.recovered.repaired_bytes == 0
            commit(journal, b"afterwards")
        assert read(directory)[1] == [*known[-1], b"afterwards"]


def test_every_cut_of_one_journal(tmp_path: Path) -> None:
    batches = carry_out(tmp_path / "j", [[b"one"], [b"", b"two"], [bytes(30)], [b"last" * 200]])
    file = last_segment(tmp_path / "j")
    whole = file.read_bytes()
    for at in range(batches[0][1], len(whole) + 1):
        file.write_bytes(whole[:at])
        assert outcome(tmp_path / "j") == [r for _, end, r in batches if end <= at][-1]


def test_a_flipped_byte_never_makes_a_wrong_record(tmp_path: Path) -> None:
    script: list[Operation] = [[b"one"], [b"", b"two"], [bytes(600)], [b"four", b"last" * 100]]
    batches = carry_out(tmp_path / "j", script)
    file = last_segment(tmp_path / "j")
    whole = file.read_bytes()
    begin_of_last = batches[-1][0]
    repaired = 0
    random = Random(0)
    for byte in range(len(whole)):
        for flip in {1, 0x80, whole[byte], random.randrange(1, 256)} - {0}:
            file.write_bytes(whole[:byte] + bytes([whole[byte] ^ flip]) + whole[byte + 1 :])
            found = outcome(tmp_path / "j")
            if not isinstance(found, JournalError):
                assert byte >= begin_of_last
                assert found == batches[-2][2]
                repaired += 1
    # A last batch that is there as a whole is not a torn one; only its end mark, zeroed, looks so.
    assert repaired == 1


@given(operations, st.data())
def test_any_damage_is_noticed_or_costs_the_last_batch(
    script: list[Operation], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory(prefix="ocjournal-") as name:
        directory = Path(name)
        batches = carry_out(directory, script)
        file = last_segment(directory)
        whole = bytearray(file.read_bytes())
        begin = data.draw(st.integers(0, len(whole) - 1), label="from")
        size = data.draw(st.integers(1, len(whole) - begin), label="bytes")
        how = data.draw(st.sampled_from(("zero", "noise", "remove", "repeat")), label="how")
        piece = whole[begin : begin + size]
        damaged = {
            "zero": bytes(size),
            "noise": Random(begin).randbytes(size),
            "remove": b"",
            "repeat": bytes(piece * 2),
        }[how]
        file.write_bytes(whole[:begin] + damaged + whole[begin + size :])
        found = outcome(directory)
        if isinstance(found, JournalError):
            return
        possible = [records for _, end, records in batches if end <= begin]
        if file.read_bytes().startswith(whole):
            possible.append(batches[-1][2])
        assert found in possible, "records of a batch before the damage, and all of them"
        assert found == possible[-1]


@pytest.mark.parametrize("alignment", [0, 1, 100, 495, 511])
def test_sectors_that_a_power_loss_left_zero(tmp_path: Path, alignment: int) -> None:
    """The last batch may have holes anywhere; with a good batch behind it, it is corrupt."""
    random = Random(alignment)
    batches = carry_out(tmp_path / "j", [[b"x" * alignment], [random.randbytes(3000)]])
    file = last_segment(tmp_path / "j")
    begin, end, _ = batches[-1]
    whole = file.read_bytes()
    sectors = range(begin // 512, (end - 1) // 512 + 1)
    for _ in range(40):
        holed = bytearray(whole)
        for sector in random.sample(sectors, random.randint(1, len(sectors))):
            start, stop = max(begin, sector * 512), min(end, sector * 512 + 512)
            holed[start:stop] = bytes(stop - start)
        file.write_bytes(holed)
        assert outcome(tmp_path / "j") == [b"x" * alignment]
    file.write_bytes(whole)
    with opened(tmp_path / "j") as journal:
        commit(journal, b"behind")
    longer = file.read_bytes()
    file.write_bytes(longer[: begin + 600] + bytes(512) + longer[begin + 1112 :])
    found = outcome(tmp_path / "j")
    assert isinstance(found, JournalError)
    assert f"corrupt at byte {begin}: good records go on at byte {end}" in str(found)
    assert "from a backup of the same moment, or give the member up" in str(found)


def test_a_repair_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    batches = carry_out(tmp_path / "j", [[b"one"], [b"two"]])
    file = last_segment(tmp_path / "j")
    os.truncate(file, file.stat().st_size - 2)
    with caplog.at_level(logging.WARNING), opened(tmp_path / "j") as journal:
        assert journal.recovered is not None
        assert journal.recovered.repaired_bytes == batches[-1][1] - batches[-1][0] - 2
    assert "a: cut off 22 bytes" in caplog.text
    assert "or the disk was full" in caplog.text


def test_bytes_of_an_older_file_do_not_pass_for_new_ones(tmp_path: Path) -> None:
    """Same records, same places, another file: marker and checksums differ."""
    carry_out(tmp_path / "old", [[b"one"], [b"two"], [b"three"]])
    batches = carry_out(tmp_path / "new", [[b"one"]])
    old, new = last_segment(tmp_path / "old"), last_segment(tmp_path / "new")
    behind = old.read_bytes()[batches[-1][1] :]
    assert behind
    new.write_bytes(new.read_bytes() + behind)
    assert isinstance(outcome(tmp_path / "new"), JournalError)


# "disk": the thread.


def test_disk_commits_are_confirmed_in_order_on_the_loop(tmp_path: Path) -> None:
    syncs, many_wait = 0, Event()

    async def work() -> list[int]:
        done: list[int] = []
        with opened(tmp_path, "disk", segment_bytes=20_000) as journal:
            journal.start(b"0")
            for number in range(1, 1001):
                if number == 500:
                    assert not done, "nothing is synced yet"
                    many_wait.set()
                journal.append(b"%d" % number * 10)
                journal.commit(lambda number=number: done.append(number))  # type: ignore[misc]
                if number % 7 == 0:
                    journal.commit(lambda number=number: done.append(number))  # type: ignore[misc]
                    await asyncio.sleep(0)
                if journal.full:
                    journal.cut(b"%d" % number)
            last = asyncio.Event()
            journal.commit(last.set)
            await last.wait()
        return done

    def counting(fd: int, sync: Callable[[int], None] = os.fdatasync) -> None:
        nonlocal syncs
        syncs += 1
        many_wait.wait()
        sync(fd)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "sync_file", counting)
        done = asyncio.run(work())
    assert len(done) == 1000 + 1000 // 7
    assert done == sorted(done)
    assert 1 <= syncs < 700, "commits share a sync"
    snapshot, records = read(tmp_path)
    assert records == [b"%d" % number * 10 for number in range(int(snapshot) + 1, 1001)]
    with opened(tmp_path, "disk") as journal:
        numbers = [int(r[: len(r) // 10]) for one in journal.history() for r in one.records()]
    assert numbers == list(range(1, int(snapshot) + 1))


@pytest.mark.parametrize(
    ("reason", "said"),
    [(OSError(errno.EIO, os.strerror(errno.EIO)), "Input/output error"),
     (RuntimeError("a bug of ours"), "failed: RuntimeError('a bug of ours')")],
)  # fmt: skip
def test_after_a_failed_sync_nothing_is_confirmed_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: Exception, said: str
) -> None:
    """The kernel forgets what it could not write: the next sync would succeed, and lie."""
    calls = 0

    def failing(fd: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise reason

    monkeypatch.setattr(writer, "sync_file", failing)

    async def work() -> None:
        told: asyncio.Future[JournalError] = asyncio.get_running_loop().create_future()
        journal = Journal(tmp_path, identity=IDENTITY, sync="disk", on_failure=told.set_result)
        journal.start(b"")
        first = asyncio.Event()
        journal.append(b"one")
        journal.commit(first.set)
        await first.wait()
        late = asyncio.Event()
        journal.append(b"two")
        journal.commit(late.set)
        error = await told
        assert said in str(error)
        assert journal.failure is error
        journal.append(b"three")
        with pytest.raises(JournalError):
            journal.commit(late.set)
        with pytest.raises(JournalError):
            journal.cut(b"")
        journal.close()
        await asyncio.sleep(0.01)
        assert not late.is_set()
        assert calls == 2

    asyncio.run(work())
    assert read(tmp_path)[1][0] == b"one"


def test_a_callback_that_fails_does_not_stop_the_next(tmp_path: Path) -> None:
    async def work() -> None:
        seen: list[str] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: seen.append(repr(context["exception"])))
        done = asyncio.Event()
        with opened(tmp_path, "disk") as journal:
            journal.start(b"")
            journal.append(b"one")
            journal.commit(lambda: [][0])
            journal.commit(done.set)
            await done.wait()
        assert seen == ["IndexError('list index out of range')"]

    asyncio.run(work())


def test_closing_writes_what_was_committed(tmp_path: Path) -> None:
    async def work() -> list[int]:
        done: list[int] = []
        with opened(tmp_path, "disk") as journal:
            journal.start(b"")
            for number in range(50):
                journal.append(b"%d" % number)
                journal.commit(lambda number=number: done.append(number))  # type: ignore[misc]
        await asyncio.sleep(0)
        return done

    assert asyncio.run(work()) == list(range(50))
    assert read(tmp_path) == (b"", [b"%d" % number for number in range(50)])
    assert last_segment(tmp_path).stat().st_size < 4096, "no zeros are left"


# Real processes.

FULL = """
import asyncio, resource, signal, sys
from pathlib import Path
from ordercast.errors import JournalError
from ordercast.runtime.journal import Journal

async def main():
    journal = Journal(Path(sys.argv[1]), identity={"group": "test", "member": "a"},
                           sync=sys.argv[2], on_failure=lambda error: told.set_result(error))
    told = asyncio.get_running_loop().create_future()
    journal.start(b"")
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    confirmed = 0
    def count():
        nonlocal confirmed
        confirmed += 1
    try:
        for number in range(1000):
            journal.append(b"%d" % number * 300)
            journal.commit(count)
            await asyncio.sleep(0.001 if sys.argv[2] == "disk" else 0)
    except JournalError as error:
        await asyncio.sleep(0.1)
        print(confirmed, error)
    journal.close()

asyncio.run(main())
"""


@pytest.mark.parametrize("policy", POLICIES)
def test_a_disk_that_is_full_confirms_nothing_that_is_not_written(
    tmp_path: Path, policy: Policy
) -> None:
    """A limit on file sizes makes the kernel refuse the write, half-way through a batch."""
    done = subprocess.run(
        [sys.executable, "-c", FULL, tmp_path / "j", policy], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    confirmed, _, words = done.stdout.partition(" ")
    assert "cannot be written: File too large" in words
    _, records = read(tmp_path / "j")
    if policy == "write":
        assert int(confirmed) > 50
    assert records[: int(confirmed)] == [b"%d" % n * 300 for n in range(int(confirmed))]
    # With room again, it goes on.
    with opened(tmp_path / "j") as journal:
        commit(journal, bytes(200_000))


KILLS = 20


@pytest.mark.parametrize("policy", POLICIES)
def test_kill_nine_at_any_moment_loses_nothing_that_was_confirmed(
    tmp_path: Path, policy: Policy
) -> None:
    random = Random(policy)
    reported = 0
    repaired = 0
    for generation in range(KILLS):
        command = [sys.executable, "-m", journal_child.__name__, tmp_path, policy]
        child = subprocess.Popen([*command, str(generation)], stdout=subprocess.PIPE)
        assert child.stdout is not None
        try:
            # By progress, and then at any moment: a busy machine must not make this an idle test.
            lines = [child.stdout.readline() for _ in range(random.randint(1, 60))]
            assert lines[-1], f"generation {generation} ended by itself: see its traceback"
            time.sleep(random.choice((0, random.random() * 0.005, random.random() * 0.05)))
        finally:
            alive = child.poll() is None
            child.send_signal(signal.SIGKILL)
            said, _ = child.communicate()
        assert alive, f"generation {generation} ended by itself: see its traceback"
        first, *others = lines + said.split(b"\n")[:-1]
        reported = max(reported, reported_now([first, *others]))
        with opened(tmp_path) as journal:
            state = journal_child.recover(journal)
            assert state.count >= reported
            assert reported_now(others) <= journal.taken <= state.count
            for older in journal.history():
                past = journal_child.State(older.snapshot)
                for record in older.records():
                    past.take(record)
            assert journal.recovered is not None
            repaired += journal.recovered.repaired_bytes > 0
    assert reported > 400
    print(f"{policy}: {reported} records confirmed, {repaired} torn tails in {KILLS} kills")


def reported_now(lines: list[bytes]) -> int:
    return max((int(line.strip().removeprefix(b"T ")) for line in lines), default=0)


def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", journal_child.__name__, tmp_path, "write", "0"],
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    try:
        child.stdout.readline()
        with pytest.raises(JournalError, match=rf"in use by another process \(pid {child.pid}\)"):
            read(tmp_path)
    finally:
        child.kill()
        child.communicate()
    read(tmp_path)


def test_a_place_where_no_journal_can_be_is_told_as_such(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("precious")
    for path in (file, file / "deep" / "journal"):
        with pytest.raises(JournalError, match=r"cannot be opened: .*/file is a file: name a dir"):
            Journal(path, identity=IDENTITY)
    with pytest.raises(JournalError, match="no directory can be made there; name another"):
        Journal(Path("/proc/ordercast"), identity=IDENTITY)


def test_nobody_else_may_look_into_a_directory_that_was_made_for_a_journal(tmp_path: Path) -> None:
    """All that was sent is in there. One that was there before is somebody's own choice."""
    (tmp_path / "shared").mkdir(mode=0o750)
    for name, mode in {"deep/fresh": 0o700, "shared": 0o750}.items():
        with opened(tmp_path / name):
            assert (tmp_path / name).stat().st_mode & 0o777 == mode


def test_directories_that_were_made_for_a_journal_outlive_a_power_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(ownership, "sync_directory", synced.append)
    with opened(tmp_path / "state" / "a" / "journal"):
        assert synced == [tmp_path / "state" / "a", tmp_path / "state", tmp_path]
    with opened(tmp_path / "state" / "a" / "journal"):
        assert len(synced) == 3


@pytest.mark.parametrize("sync", ["write", "disk"])
def test_a_journal_that_is_removed_under_its_member_is_noticed(
    tmp_path: Path, sync: Literal["write", "disk"]
) -> None:
    found: list[JournalError] = []
    place = tmp_path / "journal"
    journal = Journal(place, identity=IDENTITY, sync=sync, on_failure=found.append)
    try:
        journal.look()
        journal.start(b"snapshot")
        journal.look()
        assert found == []
        shutil.move(place, tmp_path / "elsewhere")
        place.mkdir()
        shutil.copy(tmp_path / "elsewhere" / "0000000001.segment", place)
        journal.look()
        journal.look()
        [error] = found
        assert str(error) == (
            f"the journal in {place} is lost: {place}/0000000001.segment was removed or moved "
            "while the member was writing to it; put the directory back, or give the member up "
            "(see “A broken journal” in the documentation)"
        )
        with pytest.raises(JournalError, match="is lost"):
            journal.commit(lambda: None)
    finally:
        journal.close()
    journal.look()


def test_a_disk_that_fails_at_the_end_leaves_the_journal_to_the_next_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def written(journal: Journal) -> None:
        safe = asyncio.Event()
        journal.append(b"one")
        journal.commit(safe.set)
        await safe.wait()

    def failing(fd: int, length: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    journal = Journal(tmp_path, identity=IDENTITY, sync="disk")
    journal.start(b"snapshot")
    asyncio.run(written(journal))
    with monkeypatch.context() as patch:
        patch.setattr(os, "ftruncate", failing)
        with pytest.raises(JournalError, match="Input/output error"):
            journal.close()
    assert read(tmp_path) == (b"snapshot", [b"one"])


def test_a_program_may_go_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with opened(Path("journal")) as journal:
        journal.start(b"")
        monkeypatch.chdir("elsewhere")
        journal.look()
        assert journal.failure is None
        journal.cut(b"next")
        journal.look()
        assert journal.failure is None
    assert len(list((tmp_path / "journal").glob("*.segment"))) == 2


def test_segments_that_are_needed_stay_however_many_there_are(tmp_path: Path) -> None:
    journal = Journal(tmp_path, identity={}, segment_bytes=10, keep_bytes=0)
    journal.start(b"snapshot")

    def cut() -> list[int]:
        journal.append(b"x" * 20)
        journal.commit(lambda: None)
        journal.cut(b"snapshot")
        return sorted(int(path.stem) for path in tmp_path.glob("*.segment"))

    journal.need_from(1)
    assert [cut() for _ in range(4)][-1] == [1, 2, 3, 4, 5]
    journal.need_from(4)
    assert cut() == [4, 5, 6]
    journal.close()
