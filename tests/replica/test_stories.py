"""Replicas in random stories: kills, cuts, newcomers, removals, in virtual time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .stories import play

LONG = 500 if os.environ.get("ORDERCAST_LONG") else 0

pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize("seed", [*range(16), *range(1000, 1000 + LONG)])
def test_whatever_befalls_replicas(tmp_path: Path, seed: int) -> None:
    cluster = play(seed, tmp_path)
    assert len(cluster.truth) >= len(cluster.told) > 0


def test_the_same_seed_tells_the_same_story(tmp_path: Path) -> None:
    """Wherever things are in memory: so what fails there, fails here again."""
    program = (
        "import pathlib, sys\n"
        "from tests.replica.stories import play\n"
        "for seed in (1, 2, 11):\n"
        "    cluster = play(seed, pathlib.Path(sys.argv[1], str(seed)))\n"
        "    print(seed, cluster.truth, sorted(cluster.told.items()), cluster.generations)\n"
    )
    first, *others = (
        subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / place)],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for place in "abc"
    )
    assert first
    assert others == [first, first]
