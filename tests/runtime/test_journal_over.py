"""Segments that are written over older ones: what was there before never passes for anything."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from ordercast.errors import JournalError
from ordercast.runtime.journal import Journal, Segment, files, writer
from ordercast.runtime.journal.taken import Taken

from .test_journal import POLICIES, Policy, commit, last_segment, opened, outcome, read

SCRIPT = ([b"one"], [b"", b"two"], [bytes(600)], [b"four", b"last" * 100])


class Written(NamedTuple):
    """A segment, with the bytes that were in its file before."""

    file: Path
    whole: bytes
    before: bytes
    begins: list[int]
    """Of its batches, and where the last one ends."""


def end_of(journal: Journal) -> int:
    writer = journal._files._writer
    assert writer is not None
    return writer.end


def write(directory: Path, *, longer: int = 0) -> Written:
    """The ninth segment is written over the sixth, which was written over the third, and where as
    much was committed: so all batches are where others were."""
    with opened(directory, keep_bytes=0) as journal:
        journal.start(b"state")
        for _ in range(8):
            for records in SCRIPT:
                commit(journal, *(bytes(0x55 ^ byte for byte in record) for record in records))
            if longer:
                commit(journal, Random(longer).randbytes(longer))
            spare = directory / "spare"
            before = spare.read_bytes() if spare.exists() else b""
            journal.cut(b"state")
        assert before, "there was one to write over"
        file = last_segment(directory)
        begins = [end_of(journal)]
        for records in SCRIPT:
            commit(journal, *records)
            begins.append(end_of(journal))
        # As a process that is killed leaves it: one that closes cuts off what is behind.
        return Written(file, file.read_bytes(), before, begins)


def known_at(written: Written, at: int, *, missing: int = 0) -> list[bytes]:
    """The records of the batches that are there if so many bytes are."""
    ends = written.begins[1:]
    there = [records for records, end in zip(SCRIPT, ends, strict=True) if end - missing <= at]
    return [record for records in there for record in records]


def test_the_files_stay_the_same_ones(tmp_path: Path) -> None:
    files = set()
    with opened(tmp_path, segment_bytes=1000, keep_bytes=2000) as journal:
        journal.start(b"0")
        for number in range(1, 201):
            commit(journal, b"%d" % number * 100)
            if journal.full:
                journal.cut(b"%d" % number)
            files |= {path.stat().st_ino for path in tmp_path.iterdir() if path.name != "taken"}
    assert len(files) <= 7
    snapshot, records = read(tmp_path)
    assert records == [b"%d" % number * 100 for number in range(int(snapshot) + 1, 201)]


def test_what_is_to_survive_power_losses_is_always_new(tmp_path: Path) -> None:
    """Sectors that a power loss left out are known by their zeros."""
    write(tmp_path)
    assert (tmp_path / "spare").exists()

    async def cut() -> None:
        with opened(tmp_path, "disk", keep_bytes=0) as journal:
            assert not (tmp_path / "spare").exists()
            assert journal.full, "what was written over another is not gone on with"
            journal.cut(b"state")
            assert not journal.full
            for _ in range(3):
                journal.cut(b"state")

    asyncio.run(cut())
    assert not (tmp_path / "spare").exists()
    with opened(tmp_path, "disk") as journal:
        assert not journal.full


def test_a_spare_that_was_left_is_not_for_power_losses(tmp_path: Path) -> None:
    """Someone has removed all the rest."""
    write(tmp_path)
    for path in (*tmp_path.glob("*.segment"), tmp_path / "taken"):
        path.unlink()
    with opened(tmp_path, "disk") as journal:
        journal.start(b"state")
    with opened(tmp_path, "disk") as journal:
        assert not journal.full
    assert not (tmp_path / "spare").exists()


@pytest.mark.parametrize("over", [True, False])
def test_what_was_left_to_the_kernel_is_on_the_disk_before_anyone_hears_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, over: bool
) -> None:
    """The file and its name: it got both where only kills were to be survived."""
    if over:
        write(tmp_path)
    else:
        with opened(tmp_path) as journal:
            journal.start(b"state")
            commit(journal, b"one")
    synced: list[Path] = []
    monkeypatch.setattr(writer, "sync_file", lambda fd: synced.append(path_of(fd)))
    monkeypatch.setattr(files, "sync_directory", synced.append)
    with opened(tmp_path):
        assert not synced
    with opened(tmp_path, "disk"):
        assert synced == [last_segment(tmp_path), tmp_path]


def path_of(fd: int) -> Path:
    return Path(f"/proc/self/fd/{fd}").resolve()


def test_nothing_is_zeroed_where_zeros_say_nothing(tmp_path: Path) -> None:
    """What is committed after "write" has become "disk", and before the next segment."""
    written = write(tmp_path)

    async def go_on() -> None:
        with opened(tmp_path, "disk") as journal:
            done = asyncio.Event()
            journal.append(b"one")
            journal.commit(done.set)
            await done.wait()
            assert written.file.stat().st_size == end_of(journal)

    asyncio.run(go_on())


@pytest.mark.parametrize("longer", [0, 5000])
def test_a_kill_at_any_byte_keeps_what_was_committed_before(tmp_path: Path, longer: int) -> None:
    """`longer`, if what was there before goes on behind it."""
    written = write(tmp_path, longer=longer)
    _, whole, before, begins = written
    assert longer <= len(whole) - begins[-1] < longer + 100
    for at in range(begins[0], begins[-1] + 1):
        written.file.write_bytes(whole[:at] + before[at:])
        # Without its last eight bytes a batch is as good.
        known = known_at(written, at, missing=8)
        assert outcome(tmp_path) == known
    written.file.write_bytes(whole[: begins[-2] + 20] + before[begins[-2] + 20 :])
    with opened(tmp_path) as journal:
        assert journal.recovered is not None
        assert journal.recovered.repaired_bytes == begins[-1] - begins[-2]
        commit(journal, b"afterwards")
    assert read(tmp_path)[1] == [*known_at(written, begins[-2]), b"afterwards"]


def test_a_batch_that_lacked_only_its_end_counts_as_written_from_then_on(tmp_path: Path) -> None:
    written = write(tmp_path, longer=100)
    _, whole, before, begins = written
    written.file.write_bytes(whole[: begins[-1] - 3] + before[begins[-1] - 3 :])
    assert outcome(tmp_path) == known_at(written, begins[-1])
    # It was told to others by now.
    found = bytearray(written.file.read_bytes())
    found[begins[-1] - 50] ^= 1
    written.file.write_bytes(found)
    assert isinstance(outcome(tmp_path), JournalError)


@pytest.mark.parametrize("at", range(-16, 0))
def test_a_batch_that_the_file_ends_in_is_cut_off(tmp_path: Path, at: int) -> None:
    """It went on where nothing had been before."""
    written = write(tmp_path)
    _, whole, _, begins = written
    written.file.write_bytes(whole[: begins[-1] + at])
    with opened(tmp_path) as journal:
        assert journal.recovered is not None
        assert journal.recovered.repaired_bytes == begins[-1] + at - begins[-2]
        commit(journal, b"afterwards")
    assert read(tmp_path)[1] == [*known_at(written, begins[-2]), b"afterwards"]


def test_nothing_is_left_behind_a_segment_that_has_ended(tmp_path: Path) -> None:
    """For as much is kept as its size says."""
    write(tmp_path, longer=5000)
    with opened(tmp_path) as journal:
        for longer in (bytes(5000), b""):
            commit(journal, longer)
            file, end = last_segment(tmp_path), end_of(journal)
            journal.cut(b"state")
            assert file.stat().st_size == end
        end = end_of(journal)
    assert last_segment(tmp_path).stat().st_size == end


def test_what_was_there_before_may_look_like_anything(tmp_path: Path) -> None:
    """Marks of this very file, where they are not in their places."""
    written = write(tmp_path, longer=5000)
    _, whole, _, begins = written
    keys, end = Segment(written.file).keys, begins[-1]
    head = keys.batch_head([b"body"], 4, end)
    for stray in (head[:4], head, head + b"body", keys.batch_end(end), keys.batch_end(end)[:4]):
        written.file.write_bytes(whole[: end + 100] + stray + whole[end + 100 + len(stray) :])
        assert outcome(tmp_path) == known_at(written, end)


def test_a_batch_that_is_gone_is_noticed_by_the_next_that_was_begun(tmp_path: Path) -> None:
    written = write(tmp_path)
    _, whole, before, begins = written
    first, second, begun = begins[-3], begins[-2], begins[-2] + 30
    written.file.write_bytes(
        whole[:first] + before[first:second] + whole[second:begun] + before[begun:]
    )
    assert f"good records go on at byte {second}" in str(outcome(tmp_path))


class Killed(BaseException):
    pass


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("step", range(3))
def test_a_kill_while_a_segment_is_begun_over_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, half: bool
) -> None:
    """Before and amidst the renaming, the snapshot, and the renaming to what it is for."""
    written = write(tmp_path)
    left = step
    rename, writev = Path.rename, os.writev

    def dying(call: Callable[[], object]) -> None:
        nonlocal left
        if not left and not half:
            raise Killed
        call()
        if not left:
            raise Killed
        left -= 1

    def write_some(fd: int, parts: tuple[bytes, ...]) -> int:
        whole = b"".join(parts)
        dying(lambda: writev(fd, [whole if left else whole[:20]]))
        return len(whole)

    monkeypatch.setattr(Path, "rename", lambda path, to: dying(lambda: rename(path, to)))
    monkeypatch.setattr(os, "writev", write_some)
    with pytest.raises(Killed), opened(tmp_path) as journal:
        journal.cut(b"state")
    monkeypatch.undo()
    with opened(tmp_path) as journal:
        assert journal.recovered is not None
        new = step == 2 and half
        assert journal.recovered.number == 9 + new
        records = [] if new else known_at(written, written.begins[-1])
        assert list(journal.recovered.records()) == records
        commit(journal, b"more")
    assert read(tmp_path) == (b"state", [*records, b"more"])


def test_a_new_segment_is_on_the_disk_and_one_over_another_in_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(path_of(fd).name))
    monkeypatch.setattr(writer, "sync_directory", lambda path: synced.append(path.name))
    with opened(tmp_path, keep_bytes=0) as journal:
        synced.clear()  # of taken, and of what the directory is in
        for number in range(1, 6):
            if number > 1:
                journal.cut(b"state")
            else:
                journal.start(b"state")
            over = Segment(last_segment(tmp_path)).keys.over
            assert over == (number > 3)
            assert synced[-2:] == ([] if over else [f"{number:010}.new", tmp_path.name])
            synced.clear()


@pytest.mark.parametrize("policy", POLICIES)
def test_what_is_taken_is_on_the_disk_before_a_cut_only_where_it_has_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: Policy
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(Taken, "sync", lambda taken: synced.append(taken.value))

    async def cut() -> None:
        with opened(tmp_path, policy) as journal:
            journal.start(b"state")
            journal.mark(7)
            journal.cut(b"state")

    asyncio.run(cut())
    assert synced == ([7] if policy == "disk" else [])


@pytest.mark.parametrize("back", range(9))
def test_an_end_is_found_wherever_it_is(tmp_path: Path, back: int) -> None:
    """The file is searched in pieces of a MiB."""
    written = write(tmp_path)
    _, whole, _, begins = written
    written.file.write_bytes(whole[: begins[-1]])
    with opened(tmp_path) as journal:
        commit(journal, bytes((1 << 20) - back - 20))
        end = end_of(journal)
    assert end - 8 == begins[-1] + (1 << 20) - back
    found = bytearray(written.file.read_bytes())
    found[begins[-1] + 100] ^= 1
    written.file.write_bytes(found)
    assert "written as a whole and has changed" in str(outcome(tmp_path))


def test_no_repair_is_told_of_where_there_was_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    written = write(tmp_path, longer=1000)
    written.file.write_bytes(written.whole)
    with opened(tmp_path) as journal:
        assert journal.recovered is not None
        assert journal.recovered.repaired_bytes == 0
    assert not caplog.records


@pytest.mark.parametrize("longer", [0, 1500])
def test_damage_is_noticed_wherever_it_is(tmp_path: Path, longer: int) -> None:
    """What was written to its end is never taken for what a kill has cut short."""
    written = write(tmp_path, longer=longer)
    _, whole, _, begins = written
    everything = known_at(written, begins[-1])
    ends = {end - back for end in begins for back in range(1, 9)}
    random = Random(longer)
    for byte in range(begins[-1]):
        for flip in (1, 0x80, random.randrange(1, 256)):
            written.file.write_bytes(whole[:byte] + bytes([whole[byte] ^ flip]) + whole[byte + 1 :])
            found = outcome(tmp_path)
            if byte in ends:
                assert found == everything
            else:
                assert isinstance(found, JournalError)
    for byte in range(begins[-1], len(whole)):
        written.file.write_bytes(whole[:byte] + bytes([whole[byte] ^ 1]) + whole[byte + 1 :])
        assert outcome(tmp_path) == everything


@pytest.mark.parametrize("batch", range(len(SCRIPT)))
def test_a_batch_that_is_gone_is_noticed(tmp_path: Path, batch: int) -> None:
    """What was there before stands in its place, as after a power loss, or all is zero."""
    written = write(tmp_path)
    _, whole, before, begins = written
    begin, end = begins[batch : batch + 2]
    for instead in (before[begin : end - 8], bytes(end - 8 - begin)):
        written.file.write_bytes(whole[:begin] + instead + whole[end - 8 :])
        found = outcome(tmp_path)
        assert isinstance(found, JournalError)
        assert f"corrupt at byte {begin}" in str(found)


@pytest.mark.parametrize("name", ["segments", "spare"])
def test_what_a_backup_has_linked_to_does_not_change(tmp_path: Path, name: str) -> None:
    """Whether it was linked to while it was needed, or when it was spare already."""
    directory, backup = tmp_path / "journal", tmp_path / "backup"
    backup.mkdir()
    kept = {}
    with opened(directory, keep_bytes=0) as journal:
        journal.start(b"state")
        for number in range(1, 8):
            commit(journal, b"%d" % number)
            file = directory / "spare" if name == "spare" else last_segment(directory)
            journal.cut(b"state")
            if file.exists():
                os.link(file, backup / str(number))
                kept[number] = file.read_bytes()
    assert len(kept) >= 5
    with opened(directory) as journal:  # of which all is kept
        assert (directory / "spare").exists()
        journal.cut(b"state")
    assert not (directory / "spare").exists()
    for number, content in kept.items():
        assert (backup / str(number)).read_bytes() == content


def test_what_a_link_leads_to_does_not_change(tmp_path: Path) -> None:
    """Someone has moved old segments to where there is room."""
    directory, archive = tmp_path / "journal", tmp_path / "archive"
    with opened(directory) as journal:
        journal.start(b"state")
        commit(journal, b"one")
        journal.cut(b"state")
    (directory / "0000000001.segment").rename(archive)
    (directory / "0000000001.segment").symlink_to(archive)
    content = archive.read_bytes()
    cut_thrice(directory)
    assert archive.read_bytes() == content
    assert not any(path.is_symlink() for path in directory.iterdir())


def test_what_may_not_be_written_to_is_not_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is allowed everything but root, whose tests these may be."""
    write(tmp_path)
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path / "spare")
    with opened(tmp_path) as journal:
        journal.cut(b"state")
        assert not Segment(last_segment(tmp_path)).keys.over


def cut_thrice(directory: Path) -> None:
    with opened(directory, keep_bytes=0) as journal:
        for _ in range(3):
            journal.cut(b"state")


@pytest.mark.parametrize("policy", POLICIES)
def test_a_new_segment_that_was_never_named_is_forgotten(tmp_path: Path, policy: Policy) -> None:
    written = write(tmp_path)
    (tmp_path / "spare").rename(tmp_path / "0000000010.new")
    with opened(tmp_path, policy) as journal:
        assert journal.recovered is not None
        assert list(journal.recovered.records()) == known_at(written, written.begins[-1])
    assert not list(tmp_path.glob("*.new"))
