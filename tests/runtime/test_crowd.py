"""Large groups: everyone meets everyone, hears everyone, and leaves. The long form is by hand."""

from __future__ import annotations

import subprocess
import sys

import pytest

from . import crowd


@pytest.mark.parametrize(
    ("order", "security"), [("causal", ["--tls"]), ("total", [])], ids=["causal", "total"]
)
def test_a_crowd_meets_hears_everyone_and_leaves(order: str, security: list[str]) -> None:
    told = subprocess.run(
        [
            *(sys.executable, "-m", crowd.__name__, "--members=40", "--processes=2"),
            *("--messages=2", f"--order={order}", *security),
        ],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    print(told.stdout)
    assert told.stdout.startswith("40 members in 2 processes: met in ")
    held = told.stdout.partition("holds: ")[2].strip().split(", ")
    promised = {"no_duplication", "no_creation", "validity", "agreement", "fifo", "causal"}
    if order == "total":
        promised |= {"uniform_agreement", "total_pairwise", "total_acyclic", "total_gap_free"}
    assert promised <= set(held)
