"""A few subjects in turn, several times over, and the medians: under full load, or at given rates.

On a machine that others use too, one run of each says little: the same subject may take half as
much again a minute later. In turns, such times fall on all of them. All are over mutual TLS, and
each is compared with the first.

example:
  python -m benchmarks.runtime.turns raw 'ordercast uniform/journal/many'
  python -m benchmarks.runtime.turns --turns 4 --n 5 raw 'ordercast uniform/journal/batches'
  python -m benchmarks.runtime.turns --rates 2000,10000 raw 'ordercast uniform/journal'
"""

from __future__ import annotations

import argparse
import asyncio
import math
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from statistics import median

from benchmarks.runtime.conduct import Case, Durations, Phase, assemble
from benchmarks.runtime.processes import CaseError
from benchmarks.runtime.subject import all_subjects, subject_named
from benchmarks.show import Row, show
from ordercast.cli.steps import steps

__all__: list[str] = []

Measured = dict[str, list[Phase]]
"""By subject, its turns."""
FULL = 0
"""As fast as it goes."""


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
    title = (
        f"{'full load' if chosen.rates == (FULL,) else 'latency'}, n = {chosen.n}, "
        f"{chosen.bytes} bytes, mutual TLS 1.3; medians of {chosen.turns} turns"
    )
    rows: list[Row] = []
    for rate, by_subject in measured.items():
        if rate == FULL:
            rows += _rates(by_subject)
        else:
            rows += ({"messages a second": f"{rate:,}", **row} for row in _latencies(by_subject))
    show(title, rows, as_json=chosen.json)


async def _measure(chosen: argparse.Namespace) -> dict[int, Measured]:
    """By rate; each group goes through all of them."""
    measured: dict[int, Measured] = {
        rate: {name: [] for name in chosen.subjects} for rate in chosen.rates
    }
    durations = Durations(window_s=chosen.window)
    with steps() as doing:
        for turn in range(1, chosen.turns + 1):
            for name in chosen.subjects:
                doing.begin(f"turn {turn} of {chosen.turns}: {name}")
                # What an application hands over in one go: raw frames are packed already.
                form = subject_named(name).forms[0]
                case = Case(name, form, chosen.n, chosen.bytes, tls=True)
                async with asyncio.timeout(durations.limit_s), AsyncExitStack() as stack:
                    group = await assemble(subject_named(name), case, durations, stack)
                    for rate, by_subject in measured.items():
                        mode = "count" if rate == FULL else "check"
                        by_subject[name].append(await group.phase(mode, rate, form))
    return measured


def _rates(measured: Measured) -> list[Row]:
    return [
        {"subject": name, **_compared("R", rates, first), **_costs(measured[name])}
        for name, rates, first in _figures(measured, lambda phase: phase.deliveries_per_s)
    ]


def _latencies(measured: Measured) -> list[Row]:
    def quantile(share: float) -> Callable[[Phase], float]:
        return lambda phase: phase.latencies.quantile_us(share) or math.nan

    halves = _figures(measured, quantile(0.5))
    tails = _figures(measured, quantile(0.99))
    return [
        {
            "subject": name,
            **_compared("p50 in µs", mine, first),
            **_compared("p99", tail, first_tail),
            **_costs(measured[name]),
        }
        for (name, mine, first), (_, tail, first_tail) in zip(halves, tails, strict=True)
    ]


def _figures(
    measured: Measured, figure: Callable[[Phase], float]
) -> list[tuple[str, list[float], list[float]]]:
    """By subject, a figure of its turns, and of the first subject's."""
    found = {name: [figure(phase) for phase in phases] for name, phases in measured.items()}
    first = next(iter(found.values()))
    return [(name, mine, first) for name, mine in found.items()]


def _compared(what: str, mine: list[float], first: list[float]) -> Row:
    """The median, how it stands to that of the first subject, and what single turns said."""
    pairs = [one / other for one, other in zip(mine, first, strict=True)]
    return {
        what: f"{median(mine):,.0f}",
        f"{what.split()[0]} of the first": f"{median(mine) / median(first):.2f}",
        f"{what.split()[0]} turn by turn": f"{min(pairs):.2f}–{max(pairs):.2f}",
    }


def _costs(phases: list[Phase]) -> Row:
    return {
        "µs": f"{median(phase.cpu_us for phase in phases):.3g}",
        "lost": sum(abs(phase.lost) for phase in phases),
        "others' cores": f"{max(phase.others_cores for phase in phases):.2f}",
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.runtime.turns",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("subjects", nargs="+", metavar="SUBJECT", help="by its whole name")
    parser.add_argument(
        "--rates",
        type=_rates_of,
        default=(FULL,),
        metavar="N,N,…",
        help="latencies at so many messages a second and member (default: full load)",
    )
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--n", type=int, default=3, help="processes (default: 3)")
    parser.add_argument("--bytes", type=int, default=64, help="of a message (default: 64)")
    parser.add_argument("--window", type=float, default=2.0, metavar="S", help="seconds of a turn")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _rates_of(text: str) -> tuple[int, ...]:
    words = text.split(",")
    if not all(word.isdecimal() and int(word) for word in words):
        raise argparse.ArgumentTypeError(f"{text!r}: give messages a second, such as 2000,10000")
    return tuple(map(int, words))


if __name__ == "__main__":
    main()
