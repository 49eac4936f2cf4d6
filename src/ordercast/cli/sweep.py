"""Simulate and judge thousands of runs as one Spark job: a row of costs per configuration.

The exit code speaks of what the configurations promise: 0: it held in every run; 1: a promise was
broken; 2: unknown, or unusable input. With --output a sweep that was stopped goes on where it
was, and one with more seeds or configurations runs only those that are new.

example:
  ordercast sweep --ordering fifo,causal_vector --processes 3,5 --seeds 100 --output out
  ordercast sweep --ordering all --dissemination all --faults "" --faults "crash:0@20ms, loss:5%"
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import msgspec
from rich.text import Text

from ordercast.cli.console import LOOKS, console
from ordercast.cli.faults import parsed_faults
from ordercast.cli.output import answering
from ordercast.cli.spark import add_spark_arguments, require_spark, spark_settings
from ordercast.cli.steps import Steps, steps
from ordercast.cli.sweep_table import print_empty, print_failures, print_table
from ordercast.cli.words import counted
from ordercast.errors import UsageError
from ordercast.protocols import catalog
from ordercast.simulator.faults import GRAMMAR, parse_faults
from ordercast.simulator.plan import Network, check_size
from ordercast.spelling import did_you_mean
from ordercast.sweep.configuration import Configuration, LeftOut, To, combine
from ordercast.trace.verdicts import Outcome, exit_code

if TYPE_CHECKING:
    from ordercast.sweep.block import Block, Results
    from ordercast.sweep.tally import Row

__all__ = ["act", "add_arguments"]

PIPED_COLUMNS = 200
SEEDS_MAX = 1_000_000
SEED_DIGITS_MAX = 18


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--order", "--ordering", dest="ordering", default="causal_vector", metavar="NAMES",
        help="comma-separated, words such as fifo, causal or total, or orderings' own names; or "
        "all (default: causal_vector)",
    )  # fmt: skip
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--dissemination", metavar="NAMES",
        help="comma-separated, or all (default: what suits each ordering)",
    )  # fmt: skip
    how.add_argument(
        "--reliability", default="best_effort", metavar="WORD",
        help="the same in a word: best_effort (default), reliable or uniform",
    )  # fmt: skip
    parser.add_argument(
        "--processes", default="5", metavar="SIZES", help="comma-separated (default: 5)"
    )
    parser.add_argument(
        "--messages", type=int, default=20, metavar="N", help="sent by each process (default: 20)"
    )
    parser.add_argument(
        "--payload", type=int, default=16, metavar="BYTES", help="in each message (default: 16)"
    )
    parser.add_argument(
        "--to", metavar="WHOM",
        help="everyone, one, some, comma-separated (default: everyone, if the ordering can)",
    )  # fmt: skip
    parser.add_argument(
        "--threshold", type=int, metavar="K",
        help="how many must hold a message before a uniform dissemination counts on it",
    )  # fmt: skip
    forms = "; ".join(f"{form}: {meaning}" for form, meaning in GRAMMAR.items())
    parser.add_argument(
        "--faults", action="append", metavar="PLAN",
        help=f"may be given several times; comma-separated, {forms}".replace("%", "%%"),
    )  # fmt: skip
    parser.add_argument(
        "--seeds", default="100", metavar="N|A..B", help="how many, or from A to B (default: 100)"
    )
    parser.add_argument(
        "--output", type=Path, metavar="DIR", help="keep the results here, and go on from them"
    )
    parser.add_argument(
        "--traces", action="store_true", help="write every run's trace to DIR/traces as well"
    )
    parser.add_argument("--json", action="store_true", help="print the table as JSON")
    add_spark_arguments(parser)


def act(options: argparse.Namespace) -> int:
    configurations, left_out = _configurations(options)
    seeds = _seeds(options.seeds)
    config = spark_settings(options)
    if options.traces and options.output is None:
        raise UsageError("--traces needs a place to write them: give --output DIR")
    for reason in left_out:
        print(reason, file=sys.stderr)

    require_spark("a sweep")
    from ordercast.pipeline.jobs import run_each
    from ordercast.sweep.conduct import conduct
    from ordercast.sweep.tally import outcome

    def perform(work: Callable[[Block], Results], blocks: Sequence[Block]) -> Iterator[Results]:
        return run_each(work, blocks, master=options.master, config=config, verbose=options.verbose)

    try:
        with steps() as progress:
            teller = _Teller(progress, len(configurations), len(seeds))
            rows = conduct(
                configurations,
                seeds,
                perform=perform,
                output=options.output,
                traces=options.traces,
                progress=teller,
            )
    except KeyboardInterrupt:
        if options.output is not None:
            print("what is done is kept: the same command goes on from here", file=sys.stderr)
        raise
    print(teller.summary(), file=sys.stderr)
    found = outcome(rows)
    with answering(exit_code(found)):
        _tell(options, rows, left_out, found)
    return exit_code(found)


def _configurations(options: argparse.Namespace) -> tuple[list[Configuration], list[LeftOut]]:
    if options.messages < 0 or options.payload < 0:
        raise UsageError("--messages and --payload count from 0 upwards")
    sizes = _split(options.processes)
    if not all(size.isdecimal() for size in sizes):
        raise UsageError(f"--processes {options.processes!r} is not a list of numbers")
    for size in sizes:
        check_size(int(size[:20]))  # more digits than any group has
    lower, to = options.dissemination, options.to
    destinations: Any = None if to is None else _names("--to", to, get_args(To))
    plans = options.faults or [""]
    for plan in plans:
        parsed_faults(lambda text: parse_faults(text, Network()), plan)
    return combine(
        orderings=_orderings(options.ordering, options.reliability),
        disseminations=None
        if lower is None
        else _names("--dissemination", lower, catalog.DISSEMINATIONS),
        processes=[int(size) for size in sizes],
        messages=options.messages,
        payload=options.payload,
        to=destinations,
        faults=plans,
        threshold=options.threshold,
        reliability=options.reliability,
    )


def _orderings(text: str, reliability: str) -> list[str]:
    """By people's words, or by their own names."""
    if text == "all":
        return list(catalog.ORDERINGS)
    return list(dict.fromkeys(catalog.choose(word, reliability)[0] for word in _split(text)))


def _split(text: str) -> list[str]:
    return [word.strip() for word in text.split(",")]


def _names(flag: str, text: str, known: Collection[str]) -> list[str]:
    words = list(known) if text == "all" else _split(text)
    for word in words:
        if word not in known:
            near = did_you_mean(word, known)
            raise UsageError(
                f"{flag}: there is no {word!r}{near}: choose from {', '.join(known)}, all"
            )
    return words


def _seeds(text: str) -> range:
    """`100` is from 0 to 99; `5..104` is just that."""
    form = re.fullmatch(r"(?:(\d+)\.\.)?(\d+)", text, re.ASCII)
    if form is None:
        raise UsageError(f"--seeds {text!r} is neither a number nor of the form A..B")
    too_many = UsageError(
        f"--seeds {text[:40]!r} is too many: choose up to {SEEDS_MAX:,}, none of more than "
        f"{SEED_DIGITS_MAX} digits"
    )
    if max(len(number) for number in form.groups("")) > SEED_DIGITS_MAX:
        raise too_many
    first, last = form.groups()
    seeds = range(int(last)) if first is None else range(int(first), int(last) + 1)
    if not seeds:
        raise UsageError(f"--seeds {text!r} is no seed at all")
    if len(seeds) > SEEDS_MAX:
        raise too_many
    return seeds


class _Teller:
    """Says how far the sweep is: a moving bar on a terminal, a line for every tenth elsewhere."""

    def __init__(self, progress: Steps, configurations: int, seeds: int) -> None:
        self._progress = progress
        self._what = f"{counted(configurations, 'configuration')} × {counted(seeds, 'seed')}"
        self._started = time.monotonic()
        self._before: int | None = None
        self._done = self._told = 0

    def __call__(self, done: int, total: int) -> None:
        if self._before is None:
            already = f", {done} of {total} runs done already" if done else ""
            self._progress.begin(f"sweeping {self._what}{already}", total=total)
            self._before, self._told = done, 10 * done // total
        elif 10 * done // total > self._told and not sys.stderr.isatty():
            self._told = 10 * done // total
            self._progress.begin(f"{done} of {total} runs")
        self._done = done
        self._progress.advance_to(done)

    def summary(self) -> str:
        seconds = time.monotonic() - self._started
        runs = counted(self._done - (self._before or 0), "run")
        return f"{runs} simulated and judged in {seconds:.1f} s"


def _tell(
    options: argparse.Namespace, rows: list[Row], left_out: list[LeftOut], found: Outcome
) -> None:
    if options.json:
        answer = {
            "runs": sum(row.runs for row in rows),
            "outcome": found,
            "configurations": [msgspec.to_builtins(row) for row in rows],
            "left_out": [{"count": one.count, "reason": one.reason} for one in left_out],
        }
        print(json.dumps(answer))
        return
    out = console(piped_columns=PIPED_COLUMNS)
    print_table(rows, out)
    print_empty(rows, out)
    print_failures(rows, out)
    icon, style = LOOKS[found]
    out.print(Text.assemble("What was promised: ", (f"{icon} {found}", style), "."))
    if options.output is not None:
        print(f"table: {options.output / 'sweep' / 'configurations.parquet'}")
