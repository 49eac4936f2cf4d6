"""The short form of `python -m tests.runtime.soak`: five members, a few seconds of trouble."""

from __future__ import annotations

from pathlib import Path

import pytest

from .soak import random_plan
from .test_faults_runs import broken_promises, run

pytestmark = [pytest.mark.timeout(150), pytest.mark.usefixtures("members")]


@pytest.mark.parametrize("seed", [103, 106])
def test_nothing_is_lost_or_disordered_in_random_trouble(tmp_path: Path, seed: int) -> None:
    # The definitions are quadratic: half the messages in the same trouble are judged in a quarter.
    plan = random_plan(seed, interval_ms=40)
    outcome, trace = run(plan, tmp_path)
    assert (outcome.quiesced, outcome.obstacle) == (True, None), str(plan.faults)
    assert broken_promises(trace) == [], str(plan.faults)
    assert {member.delivered for member in outcome.members} == {5 * plan.messages}
