"""Five members under random faults, again and again, judged by the definitions. By hand:

    python -m tests.runtime.soak --minutes 5 [--seed 1]

Prints each plan as it runs; stops at the first broken promise, with the plan to run it again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from ordercast.runtime.faults import parse_faults
from ordercast.runtime.plan import Plan

from .test_faults_runs import broken_promises, run

__all__ = ["random_plan"]

SUBJECTS = (
    ("causal_vector", "majority_acks"),
    ("causal_history", "majority_acks"),
    ("causal_vector", "majority"),
    ("fifo", "gossip"),
    ("causal_matrix", "relay"),
    ("total_coordinator", "direct"),
    ("total_skeen", "direct"),
    ("total_consensus", "direct"),
    ("total_consensus", "direct"),
)


def random_plan(
    seed: int, *, processes: int = 5, seconds: float = 4.0, interval_ms: int = 20
) -> Plan:
    """Every process that is killed comes back: nothing may be lost, whatever the algorithm."""
    chance = Random(f"soak {seed}")
    ordering, dissemination = chance.choice(SUBJECTS)
    victims = chance.sample(range(processes), chance.randint(2, processes))
    faults = [
        f"{chance.choice(('kill', 'kill', 'pause', 'slow'))}:{victim}{_when(chance, seconds)}"
        for victim in victims
    ]
    if chance.random() < 0.6:
        faults.append(_partition(chance, processes) + _when(chance, seconds))
    if chance.random() < 0.5:
        faults.append(f"loss:{chance.choice((1, 2, 3))}%")
    if chance.random() < 0.5:
        faults.append(f"delay:{chance.randint(1, 20)}ms±{chance.randint(0, 1)}ms")
    return Plan(
        run=f"soak-{seed}",
        ordering=ordering,
        dissemination=dissemination,
        processes=processes,
        messages=int(seconds * 1000 / interval_ms),
        interval_ms=interval_ms,
        seed=seed,
        faults=parse_faults(",".join(faults)),
        timeout_s=60 + 10 * seconds,
    )


def _when(chance: Random, seconds: float) -> str:
    return f"@{chance.randint(200, int(seconds * 1000))}ms+{chance.randint(100, 1500)}ms"


def _partition(chance: Random, processes: int) -> str:
    members = list(range(processes))
    chance.shuffle(members)
    cut = chance.randint(1, processes - 1)
    sides = (",".join(map(str, sorted(side))) for side in (members[:cut], members[cut:]))
    return f"partition:{'|'.join(sides)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    seed = options.seed
    while time.monotonic() < end:
        plan = random_plan(seed)
        print(f"{seed}: {plan.ordering} over {plan.dissemination}, {plan.faults}", flush=True)
        with tempfile.TemporaryDirectory() as directory:
            outcome, trace = run(plan, Path(directory) / "trace")
            broken = broken_promises(trace)
        delivered = sum(member.delivered for member in outcome.members)
        print(f"    {delivered} deliveries in {outcome.duration_s:.1f} s", flush=True)
        if not outcome.quiesced or broken:
            print(f"    did not hold: {outcome.obstacle or broken or 'no rest'}")
            return 1
        seed += 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
