"""How fast groups of real processes are, next to the limit and to what else could carry messages.

For every subject, n processes on loopback go through three loads:

full      everyone sends as fast as it is let, for --window seconds after a warm-up.
low       2,000 messages a second and process, each in a call of its own; every one is checked.
half      half the rate that was reached under full load.

raw       frames of the same bytes over uvloop and nothing else: the limit, plain and with TLS.
ordercast whatever `ours.py` names, plain and with TLS.
peers     NATS, JetStream, Redis, PySyncObj, Corosync, JGroups: plain, whatever is installed.

How messages are handed over matters most. 'one by one' is a call and a turn of the loop for each;
'bursts of 64' are 64 messages of the subject's in a row, which its client may send together;
'frames of 64' are 64 packed into one message of the subject's by the application, which anyone
can do by hand who does not need to know the messages one by one. Every peer is measured both ways.

Nothing waits for ever: see --limit. Servers listen on loopback only and end with their case.
The exit code is 1 if a case came to nothing.

example:
  python -m benchmarks.runtime
  python -m benchmarks.runtime --only raw,nats --n 3 --bytes 64
  python -m benchmarks.runtime --only raw --tls yes --json figures.json
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Any

from benchmarks.runtime.conduct import Case, Durations, Figures, conduct
from benchmarks.runtime.results import print_results, write_json
from benchmarks.runtime.subject import Subject, all_subjects
from ordercast.cli.steps import steps

TLS = {"no": (False,), "yes": (True,), "both": (False, True)}


def main() -> None:
    chosen = _parser().parse_args()
    subjects = [one for one in all_subjects() if any(word in one.name for word in chosen.only)]
    if not subjects:
        names = "; ".join(one.name for one in all_subjects())
        print(f"there is nothing with that in its name; there are: {names}", file=sys.stderr)
        sys.exit(2)
    skipped = {one.name: reason for one in subjects if (reason := one.missing()) is not None}
    for name, reason in skipped.items():
        print(f"NOT MEASURED: {name}: {reason}", file=sys.stderr)
    cases = [
        case
        for n in chosen.n
        for size in chosen.bytes
        for one in subjects
        if one.name not in skipped
        for case in _cases(one, n, size, TLS[chosen.tls])
        if any(word in case.form.name for word in chosen.form)
    ]
    durations = Durations(window_s=chosen.window, limit_s=chosen.limit, patience_s=chosen.patience)
    measured: list[Figures] = []
    try:
        asyncio.run(_measure(cases, durations, measured, chosen.json, skipped))
    except KeyboardInterrupt:
        print("interrupted; what there is:", file=sys.stderr)
    finally:
        print_results(measured, skipped)
    sys.exit(any(one.words for one in measured))


def _cases(subject: Subject, n: int, size: int, tls: tuple[bool, ...]) -> list[Case]:
    return [
        Case(subject.name, form, n, size, encrypted)
        for encrypted in tls
        if encrypted in subject.tls
        for form in subject.forms
    ]


async def _measure(
    cases: list[Case],
    durations: Durations,
    measured: list[Figures],
    json: Path | None,
    skipped: dict[str, str],
) -> None:
    with steps() as doing:
        for number, case in enumerate(cases, 1):
            doing.begin(f"{number} of {len(cases)}: {case.name}")
            figures = await conduct(case, durations)
            if figures.words:
                print(f"{case.name}: {figures.words}", file=sys.stderr)
            measured.append(figures)
            if json is not None:
                write_json(json, measured, skipped)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.runtime",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add: Any = parser.add_argument
    add("--n", type=_numbers, default=[3, 5], metavar="N,…", help="processes (default: 3,5)")
    add("--bytes", type=_numbers, default=[64, 1024], metavar="B,…",
        help="of a message (default: 64,1024)")  # fmt: skip
    add("--tls", choices=TLS, default="both", help="peers are measured in plain only")
    add("--only", type=_words, default=[""], metavar="NAME,…",
        help="subjects with that in their name: raw, nats, redis, …")  # fmt: skip
    add("--form", type=_words, default=[""], metavar="NAME,…", help="one, bursts, frames")
    add("--window", type=float, default=2.0, metavar="S", help="seconds of each load (default: 2)")
    add("--limit", type=float, default=90.0, metavar="S", help="for a case (default: 90)")
    add("--patience", type=float, default=0.0, metavar="S",
        help="wait so long before a case for other programs to be quiet (default: 0)")  # fmt: skip
    add("--json", type=Path, metavar="FILE", help="write all figures there, after every case")
    return parser


def _numbers(text: str) -> list[int]:
    numbers = [int(word) for word in text.split(",")]
    if min(numbers) < 2:
        raise argparse.ArgumentTypeError("two or more")
    return numbers


def _words(text: str) -> list[str]:
    return text.split(",")


if __name__ == "__main__":
    main()
