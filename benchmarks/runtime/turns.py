"""A few subjects under full load in turn, several times over, and the medians.

On a machine that others use too, one run of each says little: the same subject may take half as
much again a minute later. In turns, such times fall on all of them. All are over mutual TLS, and
each is compared with the first.

example:
  python -m benchmarks.runtime.turns raw 'ordercast uniform/journal/many'
  python -m benchmarks.runtime.turns --turns 4 --n 5 raw 'ordercast uniform/journal/batches'
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from contextlib import AsyncExitStack
from statistics import median

from benchmarks.runtime.conduct import Case, Durations, Phase, assemble
from benchmarks.runtime.processes import CaseError
from benchmarks.runtime.subject import all_subjects, subject_named
from benchmarks.show import Row, show
from ordercast.cli.steps import steps

__all__: list[str] = []


def main() -> None:
    chosen = _parser().parse_args()
    known = {subject.name for subject in all_subjects() if True in subject.tls}
    if strange := [name for name in chosen.subjects if name not in known]:
        print(f"{strange[0]!r} is none of: {'; '.join(sorted(known))}", file=sys.stderr)
        sys.exit(2)
    try:
        measured = asyncio.run(_measure(chosen))
    except (CaseError, TimeoutError) as failure:
        print(f"a turn came to nothing: {failure or 'no time was left'}", file=sys.stderr)
        sys.exit(1)
    title = f"n = {chosen.n}, {chosen.bytes} bytes, mutual TLS 1.3; medians of {chosen.turns} turns"
    show(title, _rows(measured), as_json=chosen.json)


async def _measure(chosen: argparse.Namespace) -> dict[str, list[Phase]]:
    measured: dict[str, list[Phase]] = {name: [] for name in chosen.subjects}
    durations = Durations(window_s=chosen.window)
    with steps() as doing:
        for turn in range(1, chosen.turns + 1):
            for name, phases in measured.items():
                doing.begin(f"turn {turn} of {chosen.turns}: {name}")
                # What an application hands over in one go: raw frames are packed already.
                form = subject_named(name).forms[0]
                case = Case(name, form, chosen.n, chosen.bytes, tls=True)
                async with asyncio.timeout(durations.limit_s), AsyncExitStack() as stack:
                    group = await assemble(subject_named(name), case, durations, stack)
                    phases.append(await group.phase("count", 0, form))
    return measured


def _rows(measured: dict[str, list[Phase]]) -> list[Row]:
    rates = {name: [one.deliveries_per_s for one in phases] for name, phases in measured.items()}
    first = next(iter(rates.values()))
    rows = []
    for name, phases in measured.items():
        pairs = [mine / theirs for mine, theirs in zip(rates[name], first, strict=True)]
        rows.append(
            {
                "subject": name,
                "R": f"{median(rates[name]):,.0f}",
                "of the first": f"{median(rates[name]) / median(first):.2f}",
                "turn by turn": f"{min(pairs):.2f}–{max(pairs):.2f}",
                "µs": f"{median(phase.cpu_us for phase in phases):.3f}",
                "lost": sum(abs(phase.lost) for phase in phases),
                "others' cores": f"{max(phase.others_cores for phase in phases):.2f}",
            }
        )
    return rows


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.runtime.turns",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("subjects", nargs="+", metavar="SUBJECT", help="by its whole name")
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--n", type=int, default=3, help="processes (default: 3)")
    parser.add_argument("--bytes", type=int, default=64, help="of a message (default: 64)")
    parser.add_argument("--window", type=float, default=2.0, metavar="S", help="seconds of a turn")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


if __name__ == "__main__":
    main()
