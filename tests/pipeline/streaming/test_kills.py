"""A driver that is killed in mid-stream: see `kills`, which goes through more lives than there is
time for here."""

from __future__ import annotations

from pathlib import Path

from . import kills


def test_every_message_comes_out_once_through_two_lives(tmp_path: Path) -> None:
    committed = kills.run(tmp_path, lives=2, seed=5)
    assert committed == sorted(committed)
    assert committed[0] < committed[-1]
