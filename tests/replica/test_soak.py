"""Replicas as real processes: killed, stopped, robbed, removed and joined while they work."""

from __future__ import annotations

from pathlib import Path

import pytest

from .soak import Soak

ILLS = 8


@pytest.mark.timeout(280)
@pytest.mark.parametrize("seed", [1, 2])
def test_replicas_stay_in_step_whatever_befalls_them(tmp_path: Path, seed: int) -> None:
    soak = Soak(tmp_path, seed)
    try:
        soak.begin()
        for _ in range(ILLS):
            soak.befall()
        assert soak.check() > 50
    finally:
        soak.end()
