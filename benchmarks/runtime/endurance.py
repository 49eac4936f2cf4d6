"""Whether memory stays flat: a group under load for minutes, and what each process takes.

Members send at a steady rate (or as fast as they are let, with --rate 0) over mutual TLS with the
journal on. What a process has in memory is read twice a minute. The first half of the time is for
buffers to grow to what the worst pause of this machine asks for; the exit code is 1 if the last
reading is more than a twentieth above the highest of that time, or if a message was lost.

example:
  python -m benchmarks.runtime.endurance
  python -m benchmarks.runtime.endurance --minutes 2 --rate 0 --subject "ordercast lamport"
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from benchmarks.runtime.conduct import Case, Durations, Phase, assemble
from benchmarks.runtime.subject import BURSTS, subject_named
from benchmarks.show import Row, show
from ordercast.cli.steps import Steps, steps

__all__: list[str] = []

READINGS_MIN = 10
GROWTH_MAX = 1.05


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.runtime.endurance",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--rate", type=float, default=20_000, help="messages a second and process")
    parser.add_argument("--n", type=int, default=3)
    parser.add_argument("--bytes", type=int, default=64)
    parser.add_argument("--subject", default="ordercast uniform/journal")
    chosen = parser.parse_args()
    case = Case(chosen.subject, BURSTS, chosen.n, chosen.bytes, tls=True)
    with steps() as progress:
        progress.begin(case.name, total=int(chosen.minutes * 60))
        phase, readings = asyncio.run(_endure(case, chosen.minutes * 60, chosen.rate, progress))
    sys.exit(_judge(phase, readings))


async def _endure(
    case: Case, seconds: float, rate: float, progress: Steps
) -> tuple[Phase, list[list[float]]]:
    async with AsyncExitStack() as stack:
        durations = Durations(window_s=seconds)
        group = await assemble(subject_named(case.subject), case, durations, stack)
        readings: list[list[float]] = []
        watching = asyncio.create_task(_watch(group.pids, seconds, readings, progress))
        try:
            phase = await group.phase("count", rate, case.form)
        finally:
            watching.cancel()
        return phase, readings


async def _watch(
    pids: Sequence[int], seconds: float, readings: list[list[float]], progress: Steps
) -> None:
    step_s = min(30.0, seconds / READINGS_MIN)
    while True:
        await asyncio.sleep(step_s)
        readings.append([_resident_mib(pid) for pid in pids])
        progress.advance_to(int(step_s * len(readings)))


def _resident_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def _judge(phase: Phase, readings: list[list[float]]) -> int:
    half = len(readings) // 2
    rows: list[Row] = []
    grown = False
    for me, course in enumerate(zip(*readings, strict=True)):
        before, after = max(course[:half]), course[-1]
        grown = grown or after > GROWTH_MAX * before
        rows.append(
            {
                "process": f"p{me}",
                "first": f"{course[0]:.1f}",
                "highest of the first half": f"{before:.1f}",
                "end": f"{after:.1f}",
                "growth": f"{after / before - 1:+.1%}",
            }
        )
    print(
        f"{phase.deliveries_per_s:,.0f} deliveries a second and process, {phase.sent:,} messages "
        f"sent, {phase.lost} lost; others took {phase.others_cores:.1f} cores"
    )
    show("resident memory, MiB", rows, as_json=False)
    return int(grown or phase.lost != 0)


if __name__ == "__main__":
    main()
