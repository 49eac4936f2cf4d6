"""How long nothing is delivered when the one that leads a total order is gone.

All members send at a low rate. In the middle the leader is killed, or stopped so that it hangs, and
the longest that a message of the others has taken to the others is how long nothing went on: one
of them was sent right after. Subjects take turns, each in a group of its own.

example:
  python -m benchmarks.runtime.failover
  python -m benchmarks.runtime.failover --turns 10 --n 5 'ordercast consensus'
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from contextlib import AsyncExitStack
from statistics import median

from benchmarks.runtime.conduct import Case, Durations, assemble
from benchmarks.runtime.processes import CaseError
from benchmarks.runtime.subject import ONE, all_subjects, subject_named
from benchmarks.show import Row, show
from ordercast.cli.steps import steps

__all__: list[str] = []

SUBJECTS = (
    "ordercast consensus",
    "ordercast consensus/journal",
    "ordercast replica/journal",
    "pysyncobj/prompt",
)
ENDS = {"killed": signal.SIGKILL, "stopped": signal.SIGSTOP}
RATE = 250.0
"""Messages a second and member."""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.runtime.failover",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help="by its whole name")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--n", type=int, default=3, help="processes (default: 3)")
    parser.add_argument("--how", choices=ENDS, action="append", help="default: both")
    parser.add_argument("--window", type=float, default=10.0, metavar="S", help="of a turn")
    parser.add_argument("--json", action="store_true", help="print JSON")
    chosen = parser.parse_args()
    try:
        waits = asyncio.run(_measure(chosen))
    except (CaseError, TimeoutError) as failure:
        print(f"a turn came to nothing: {failure or 'no time was left'}", file=sys.stderr)
        sys.exit(1)
    rows = [_row(name, how, seconds) for (name, how), seconds in waits.items()]
    title = f"a leader is gone, n = {chosen.n}: nothing is delivered for so long"
    show(title, rows, as_json=chosen.json)


async def _measure(chosen: argparse.Namespace) -> dict[tuple[str, str], list[float]]:
    """In seconds, by subject and how its leader went."""
    waits: dict[tuple[str, str], list[float]] = {}
    with steps() as doing:
        for turn in range(1, chosen.turns + 1):
            for name in chosen.subjects or SUBJECTS:
                for how in chosen.how or ENDS:
                    doing.begin(f"turn {turn} of {chosen.turns}: {name}, {how}")
                    wait_s = await _wait_s(name, how, chosen.n, chosen.window)
                    waits.setdefault((name, how), []).append(wait_s)
    return waits


async def _wait_s(name: str, how: str, n: int, window_s: float) -> float:
    if name not in {subject.name for subject in all_subjects()}:
        raise CaseError(f"there is no subject {name!r}")
    subject = subject_named(name)
    if missing := subject.missing():
        raise CaseError(f"{name}: {missing}")
    case = Case(name, ONE, n, 64, tls=True in subject.tls)
    durations = Durations(window_s=window_s)
    async with asyncio.timeout(durations.limit_s), AsyncExitStack() as stack:
        group = await assemble(subject, case, durations, stack)
        phase = await group.without(await group.leader(), ENDS[how], RATE, ONE)
    longest_us = phase.latencies.quantile_us(1.0)
    if longest_us is None:
        raise CaseError(f"{name}: nothing was delivered")
    return longest_us / 1e6


def _row(name: str, how: str, seconds: list[float]) -> Row:
    return {
        "subject": name,
        "its leader is": how,
        "median": f"{median(seconds):.3f} s",
        "from": f"{min(seconds):.3f} s",
        "to": f"{max(seconds):.3f} s",
    }


if __name__ == "__main__":
    main()
