"""How fast traces are judged, next to a floor on Spark and to what else could judge them.

Traces of one causal run (and one in total order, one with faults, one whose messages are for half
of the processes) for every number of delivery rows and processes, one of very many small runs, and
the same rows shuffled, are written without being simulated. Then,
in one warm session (one judgement of a small trace goes before; each figure is the best of two):

floor     Spark's groupBy(process, origin).agg(count, max(number)) over the same files: the least
          that a job on Spark would do. For many runs, groupBy(run, process, origin). Measured
          before and after; the fastest counts.
all       the judgement on all eleven properties, from the files to the verdicts.
safety    on no duplication, no creation, agreement, FIFO and causal order only.
peers     after the session: plain Python, numpy, DuckDB and Polars on the safety set; each in a
          process of its own, best of two, start-up not counted (benchmarks/pipeline/peers).

Nothing waits for ever: see --limit. The exit code is 1 if a judgement came to nothing.

example:
  python -m benchmarks.pipeline --rows 1e6 --runs 10000
  python -m benchmarks.pipeline --rows 1e7 --processes 10 --only causal --without properties
  python -m benchmarks.pipeline --directory /var/tmp --json figures.json
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.pipeline.generate import Shape
from benchmarks.pipeline.measure import Compared, Limits, Measured, measure, run_peer
from benchmarks.pipeline.peers import PEERS
from benchmarks.pipeline.results import print_results, write_json
from benchmarks.pipeline.traces import Case, cases
from ordercast import pipeline
from ordercast.cli.steps import steps

WARM_UP_ROWS = 1_000_000
PARTS = ("properties", "peers")


@dataclass
class Plan:
    cases: list[Case]
    n: int
    """The number of processes that goals are for."""
    warm_up: Case
    parts: set[str]
    limits: Limits
    json: Path | None
    measured: list[Measured] = field(default_factory=list)
    compared: list[Compared] = field(default_factory=list)

    def save(self) -> None:
        """After every figure: the last one may take an hour."""
        if self.json is not None:
            write_json(self.json, self.measured, self.compared, self.n)


def main() -> None:
    chosen = _parser().parse_args()
    n = 10 if 10 in chosen.processes else chosen.processes[0]
    wanted = [
        case
        for case in cases(
            chosen.rows, chosen.processes, n=n, runs=chosen.runs, shuffled_most=chosen.shuffled_most
        )
        if any(word in case.name for word in chosen.only)
    ]
    if not wanted:
        print("there is no trace with that in its name", file=sys.stderr)
        sys.exit(2)
    parts = set(PARTS) - set(chosen.without)
    warm_up = Case(Shape(n, min(chosen.rows[0], WARM_UP_ROWS)))
    plan = Plan(wanted, n, warm_up, parts, Limits(chosen.limit), chosen.json)
    try:
        with _workplace(chosen.directory, keep=chosen.keep) as directory:
            _judge_all(plan, directory)
            _ask_peers(plan, directory)
    finally:
        # Also if it was interrupted: what there is took long enough.
        print_results(plan.measured, plan.compared, n)
    sys.exit(any(times.words for one in plan.measured for times in one.judged.values()))


def _judge_all(plan: Plan, directory: Path) -> None:
    scratch = directory / "spark"
    scratch.mkdir(exist_ok=True)
    config = {"spark.local.dir": str(scratch)}
    with steps() as doing, pipeline.session(config=config) as spark:
        doing.begin("warming up")
        path = plan.warm_up.make(spark, directory)
        measure(spark, plan.warm_up, path, plan.limits, each=False)
        for case in plan.cases:
            doing.begin(f"writing {case.name}")
            path = case.make(spark, directory)
            doing.begin(f"judging {case.name}")
            each = "properties" in plan.parts
            plan.measured.append(measure(spark, case, path, plan.limits, each=each))
            plan.save()


def _ask_peers(plan: Plan, directory: Path) -> None:
    if "peers" not in plan.parts:
        return
    plain = [one.case for one in plan.measured if one.case.plain]
    subjects = [case for case in plain if case.processes == plan.n]
    with steps() as doing:
        for peer in PEERS.values() if subjects else ():
            for case in [plan.warm_up] if peer.small_only else subjects:
                doing.begin(f"{peer.name} checks {case.name}")
                path, scratch = directory / case.name, directory / "peers"
                plan.compared.append(run_peer(peer, case, path, scratch, plan.limits))
                plan.save()


@contextmanager
def _workplace(directory: Path | None, *, keep: bool) -> Iterator[Path]:
    """A directory of our own in the given one, removed in the end."""
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
    place = (
        Path(tempfile.mkdtemp(prefix="ordercast-benchmark-", dir=directory))
        if not keep
        else (directory or Path(tempfile.gettempdir())) / "ordercast-benchmark"
    )
    place.mkdir(exist_ok=True)
    try:
        yield place
    finally:
        if keep:
            print(f"the traces are in {place}", file=sys.stderr)
        else:
            shutil.rmtree(place, ignore_errors=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pipeline",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add: Any = parser.add_argument
    add("--rows", type=_counts, default=[10**6, 10**7, 10**8], metavar="R,…",
        help="deliveries in a trace (default: 1e6,1e7,1e8)")  # fmt: skip
    add("--processes", type=_counts, default=[5, 10, 16], metavar="N,…", help="default: 5,10,16")
    add("--runs", type=_count, default=100_000, metavar="R",
        help="in the trace of many runs, of 100 rows each (default: 100000)")  # fmt: skip
    add("--shuffled-most", type=_count, default=10**7, metavar="R",
        help="greater traces are not shuffled (default: 1e7)")  # fmt: skip
    add("--only", type=_words, default=[""], metavar="NAME,…",
        help="traces with that in their name: causal-n10, total, runs, shuffled")  # fmt: skip
    add("--without", type=_words, default=[], metavar="PART,…",
        help="properties (each one alone), peers")  # fmt: skip
    add("--limit", type=float, default=300, metavar="S",
        help="seconds for one judgement, or one peer and trace (default: 300)")  # fmt: skip
    add("--directory", type=Path, metavar="DIR", help="for the traces (default: a temporary one)")
    add("--keep", action="store_true", help="leave the traces there, for the next time")
    add("--json", type=Path, metavar="FILE", help="write all figures there as well")
    return parser


def _count(text: str) -> int:
    if (count := int(float(text))) < 1:
        raise argparse.ArgumentTypeError(f"{text} is too few")
    return count


def _counts(text: str) -> list[int]:
    return sorted({_count(word) for word in text.split(",")})


def _words(text: str) -> list[str]:
    return text.split(",")


if __name__ == "__main__":
    main()
