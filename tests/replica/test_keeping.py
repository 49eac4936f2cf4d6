"""What a replica keeps on disk."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import pytest

from ordercast.errors import JournalError
from ordercast.replica.checkpoint import Checkpoint
from ordercast.replica.keeping import Keeping, Kept
from ordercast.runtime.frames import Roll, Seat

Sync = Literal["write", "disk"]

pytestmark = pytest.mark.parametrize("sync", ["write", "disk"])


def kept(generation: int) -> Kept:
    return Kept("g", "a", Roll(generation, {"a": Seat("h:1", "x")}))


def checkpoint(generation: int, position: int = 0, state: bytes = b"s") -> Checkpoint:
    return Checkpoint(generation, position, {"a": ("session", 4)}, state)


def found(directory: Path, sync: Sync) -> tuple[Kept, Checkpoint | None] | None:
    keeping = Keeping(directory, sync=sync)
    try:
        return keeping.newest(group="g", me="a")
    finally:
        keeping.close()


def begun(directory: Path, sync: Sync) -> Keeping:
    keeping = Keeping(directory, sync=sync)
    keeping.begin(kept(1), None)
    return keeping


def test_the_newest_generation_is_where_the_replica_is(tmp_path: Path, sync: Sync) -> None:
    assert found(tmp_path, sync) is None
    keeping = begun(tmp_path, sync)
    keeping.close()
    assert found(tmp_path, sync) == (kept(1), None)
    keeping = Keeping(tmp_path, sync=sync)
    keeping.begin(kept(2), checkpoint(2))
    keeping.save(checkpoint(2, 7, b"later"))
    keeping.close()
    assert found(tmp_path, sync) == (kept(2), checkpoint(2, 7, b"later"))


def test_generations_go_one_by_one_when_they_are_left(tmp_path: Path, sync: Sync) -> None:
    keeping = begun(tmp_path, sync)
    for generation in (2, 3):
        keeping.begin(kept(generation), checkpoint(generation))
    left = {1: "23", 3: "23", 2: "3"}
    for generation, stay in left.items():
        keeping.drop(generation)
        assert sorted(path.name[-1] for path in tmp_path.glob("gen*")) == list(stay)
    keeping.close()


def test_generations_that_nobody_was_there_to_leave_go_at_the_next_start(
    tmp_path: Path, sync: Sync
) -> None:
    keeping = begun(tmp_path, sync)
    for generation in (2, 3):
        keeping.begin(kept(generation), checkpoint(generation))
    keeping.close()
    assert found(tmp_path, sync) == (kept(3), checkpoint(3))
    assert [path.name for path in tmp_path.glob("gen*")] == ["generation-0000000003"]


def test_one_that_was_killed_while_it_made_the_next_one_is_in_the_one_before(
    tmp_path: Path, sync: Sync
) -> None:
    begun(tmp_path, sync).close()
    (tmp_path / "next").mkdir()
    (tmp_path / "next" / "roll").write_bytes(b"half of")
    assert found(tmp_path, sync) == (kept(1), None)
    keeping = Keeping(tmp_path, sync=sync)
    keeping.begin(kept(2), checkpoint(2))
    keeping.close()
    assert found(tmp_path, sync) == (kept(2), checkpoint(2))


def test_a_life_is_chosen_once(tmp_path: Path, sync: Sync) -> None:
    for fresh in ("first", "second"):
        keeping = Keeping(tmp_path, sync=sync)
        assert keeping.life(fresh) == "first"
        keeping.close()


@pytest.mark.parametrize("name", ["roll", "state"])
@pytest.mark.parametrize("harm", ["cut", "changed"])
def test_what_is_damaged_is_told(tmp_path: Path, sync: Sync, name: str, harm: str) -> None:
    keeping = begun(tmp_path, sync)
    keeping.begin(kept(2), checkpoint(2))
    keeping.close()
    path = tmp_path / "generation-0000000002" / name
    content = path.read_bytes()
    path.write_bytes(content[:-1] if harm == "cut" else content[:-1] + b"!")
    with pytest.raises(JournalError, match=re.escape(f"{path} is damaged (its checksum")):
        found(tmp_path, sync)


def test_it_belongs_to_one_member_and_one_process(tmp_path: Path, sync: Sync) -> None:
    keeping = begun(tmp_path, sync)
    with pytest.raises(JournalError, match="in use by this process"):
        Keeping(tmp_path, sync="write")
    with pytest.raises(JournalError, match="is what 'a' of 'g' has kept, and this is 'b' of 'g'"):
        keeping.newest(group="g", me="b")
    keeping.close()


def test_a_disk_that_cannot_be_written_is_told(tmp_path: Path, sync: Sync) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match=r"file.*cannot be opened"):
        Keeping(tmp_path / "file", sync=sync)
