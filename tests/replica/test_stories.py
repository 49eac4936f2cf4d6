"""Replicas in random stories: kills, cuts, newcomers, removals, in virtual time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .stories import play

FOUND = (13, 29, 59, 83)
"""Where something was wrong once: a leader that died before anyone had met it was never missed; a
newcomer forgot its life before it had a seat; who was left behind had its commands done twice."""
LONG = 500 if os.environ.get("ORDERCAST_LONG") else 0

pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize("seed", [*range(12), *FOUND, *range(1000, 1000 + LONG)])
def test_whatever_befalls_replicas(tmp_path: Path, seed: int) -> None:
    cluster = play(seed, tmp_path)
    assert len(cluster.truth) >= len(cluster.told) > 0
