"""Replicas in random stories: kills, cuts, newcomers, removals, in virtual time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .stories import play

LONG = 500 if os.environ.get("ORDERCAST_LONG") else 0

pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize("seed", [*range(16), *range(1000, 1000 + LONG)])
def test_whatever_befalls_replicas(tmp_path: Path, seed: int) -> None:
    cluster = play(seed, tmp_path)
    assert len(cluster.truth) >= len(cluster.told) > 0
