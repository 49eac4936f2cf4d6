"""Run a group of real processes on this machine, verify its trace, write the report.

The trace is judged on Spark, or with --here in this process: that takes a second, and neither Spark
nor Java.

The exit code is about what was promised: 0: it holds; 1: it is violated; 2: unknown.

example:
  ordercast run --order causal --processes 3 --messages 8
  ordercast run --order fifo --processes 5 --messages 100 --delay 0..50 --seed 7
  ordercast run --dissemination majority_acks --faults "kill:1@1s+1s,loss:1%"
  ordercast run --order total --here
  ordercast run --order fifo --messages 2000 --follow
  ordercast run --live --processes 5 --dissemination majority_acks
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ordercast.cli.algorithm import add_algorithm_arguments, chosen
from ordercast.cli.console import print_judgement
from ordercast.cli.faults import parsed_faults
from ordercast.cli.follow import Follower, following
from ordercast.cli.open_files import require_open_files
from ordercast.cli.output import answering, refuse_output, refuse_overwriting
from ordercast.cli.run_summary import summary_of
from ordercast.cli.say import say_aside
from ordercast.cli.spark import add_judging_arguments, check_spark, or_here, refuse_with_here
from ordercast.cli.steps import Steps, steps
from ordercast.cli.verify import judge
from ordercast.cli.words import counted
from ordercast.errors import OrdercastError, UsageError
from ordercast.pipeline.installed import require_kernels
from ordercast.runtime.faults import GRAMMAR, Faults, parse_faults
from ordercast.runtime.launcher import launch
from ordercast.runtime.plan import Outcome, Plan, Progress
from ordercast.runtime.weather import Weather
from ordercast.trace.directory import MANIFEST
from ordercast.trace.verdicts import Judgement

if TYPE_CHECKING:
    from ordercast.cli.live import Stage

__all__ = ["act", "add_arguments"]

MESSAGES = 8
INTERVAL_MS = 10.0
INTERVAL_MS_MIN = 0.001
"""Whoever is to send more often does so as fast as it can: how many it takes, nobody knows."""
LIVE_INTERVAL_MS = 500.0
LIVE_FAULTS = "delay:100ms±90ms"
"""Slow enough to be seen, and uneven enough for messages to be held."""
OUTLAST_MS = 1000
OPEN_FILES = 10
OPEN_FILES_EACH = 4
"""What a launcher has open at least, itself and for each process."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_algorithm_arguments(parser)
    parser.add_argument(
        "--processes", type=int, default=3, metavar="N", help="in the group (default: 3)"
    )
    parser.add_argument(
        "--messages", type=int, metavar="N",
        help="sent by each process (default: 8, or enough to outlast the faults; with --live "
        "until you press Finish)",
    )  # fmt: skip
    parser.add_argument(
        "--payload", type=int, default=64, metavar="BYTES", help="in each message (default: 64)"
    )
    parser.add_argument(
        "--interval", type=float, metavar="MS", help="between sends (default: 10; 500 with --live)"
    )
    parser.add_argument(
        "--delay", metavar="LOW..HIGH",
        help="the network delays each packet by its own time, in ms, so that packets overtake "
        "each other (default: 0..30, or none if there are --faults)",
    )  # fmt: skip
    parser.add_argument(
        "--swap-pairs", action="store_true",
        help="the network swaps every two consecutive messages of a process",
    )  # fmt: skip
    forms = "; ".join(f"{form}: {meaning}" for form, meaning in GRAMMAR.items())
    parser.add_argument(
        "--faults", default="", metavar="PLAN",
        help=forms.replace("%", "%%") + "; comma-separated",
    )  # fmt: skip
    parser.add_argument(
        "--live", action="store_true",
        help="show the group on a page while it runs, with buttons to pause, cut off or kill "
        "its processes; of --faults, only delays and losses (default: delay:100ms±90ms)",
    )  # fmt: skip
    parser.add_argument(
        "--follow", action="store_true",
        help="judge the logs on Spark while they are written, and say what is violated at once",
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=int, default=0,
        help="the same seed draws the same delays and losses (default: 0)",
    )  # fmt: skip
    parser.add_argument(
        "--timeout", type=float, default=60.0, metavar="S",
        help="give up on the group after so many seconds (default: 60)",
    )  # fmt: skip
    parser.add_argument(
        "--trace", type=Path, metavar="DIR",
        help="write the trace here (default: a new directory in ./runs)",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--report", type=Path, metavar="FILE",
        help="write the page here (default: report.html in the trace)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the verdicts as JSON")
    add_judging_arguments(parser)


def act(options: argparse.Namespace) -> int:
    options.faults = parsed_faults(parse_faults, options.faults)
    plan = _plan(options, *chosen(options))
    if plan.messages is not None and plan.messages < 1:
        raise UsageError(f"--messages {plan.messages}: nothing to judge: choose 1 or more")
    plan.check()
    if options.report is not None:
        refuse_output(options.report)
        refuse_overwriting("-o", options.report, options.trace)
    require_open_files(OPEN_FILES + OPEN_FILES_EACH * plan.processes)
    refuse_with_here(options, "follow")
    with or_here(options, spark_only=options.follow):
        if options.here:
            require_kernels()
        else:
            check_spark(options)
    with _stage(plan) as stage:
        return _run(options, plan, stage)


def _stage(plan: Plan) -> AbstractContextManager[Stage | None]:
    if not plan.live:
        return nullcontext()
    from ordercast.cli.live import staged

    return staged(plan)


def _run(options: argparse.Namespace, plan: Plan, stage: Stage | None) -> int:
    directory = options.trace or Path("runs") / plan.run
    aside = sys.stderr if options.json else sys.stdout
    follower: Follower | None = None
    with ExitStack() as watch:
        try:
            with steps() as progress:
                if options.follow:
                    follower = watch.enter_context(following(options, plan, directory, progress))
                outcome = _launch(plan, directory, progress, stage, follower)
        except KeyboardInterrupt:
            if (directory / MANIFEST).is_file():
                print(f"what happened so far is in {directory}", file=sys.stderr)
            raise
        print(summary_of(plan, outcome), file=aside)
        with _kept(directory, here=options.here):
            judgement = judge(options, directory, spark=follower.spark if follower else None)
            page = options.report or directory / "report.html"
            trouble = _save(judgement, directory, page)
    with answering(judgement.exit_code):
        if options.json:
            print(json.dumps(judgement.to_json() | {"undelivered": outcome.undelivered}))
        else:
            print_judgement(judgement)
        if follower is not None:
            print(follower.compare(judgement), file=aside)
        if not options.json:
            print(f"trace:  {directory}" + (f"\nreport: {page}" if trouble is None else ""))
    if stage is not None:
        stage.show(judgement)
    if trouble is not None:
        say_aside(f"ordercast run: {trouble}")
        return 2
    return judgement.exit_code


@contextmanager
def _kept(directory: Path, *, here: bool) -> Iterator[None]:
    """Whatever goes wrong with the verdicts, the run need not be done again."""
    try:
        yield
    except BaseException:
        later = f"ordercast verify {shlex.quote(str(directory))}{' --here' if here else ''}"
        print(f"the trace is kept in {directory}: judge it later with {later}", file=sys.stderr)
        raise


def _save(judgement: Judgement, directory: Path, page: Path) -> OrdercastError | None:
    """What kept the page from being written, if anything did: to be told after the verdicts."""
    # Here, because it takes as long to load as all the rest, and the group would wait for it.
    from ordercast.cli.report import page_of
    from ordercast.report.sheet import save

    try:
        save(page_of(judgement, directory), page)
    except OrdercastError as trouble:
        return trouble
    return None


def _plan(options: argparse.Namespace, ordering: str, dissemination: str) -> Plan:
    if options.interval is None:
        options.interval = LIVE_INTERVAL_MS if options.live else INTERVAL_MS
    if options.live and not options.faults:
        options.faults = parse_faults(LIVE_FAULTS)
    if options.delay is None:
        options.delay = "0..0" if options.faults else "0..30"
    if options.messages is None and not options.live:
        options.messages = _enough(options.faults, options.interval)
    delay = re.fullmatch(r"(\d+(?:\.\d+)?)\.\.(\d+(?:\.\d+)?)", options.delay)
    if delay is None:
        raise UsageError(f"--delay {options.delay!r} is not of the form LOW..HIGH, in ms")
    now = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
    command = [
        *("ordercast", "run", "--order", ordering, "--dissemination", dissemination),
        *("--processes", str(options.processes)),
        *(["--messages", str(options.messages)] if options.messages is not None else []),
        *("--payload", str(options.payload), "--interval", str(options.interval)),
        *("--delay", options.delay, "--seed", str(options.seed)),
        *("--timeout", str(options.timeout)),
        *(["--swap-pairs"] if options.swap_pairs else []),
        *(["--faults", str(options.faults)] if options.faults else []),
        *(["--live"] if options.live else []),
    ]
    return Plan(
        run=f"{now[:-3]}-{ordering}",
        ordering=ordering,
        dissemination=dissemination,
        processes=options.processes,
        messages=options.messages,
        payload_bytes=options.payload,
        interval_ms=options.interval,
        seed=options.seed,
        weather=Weather(delay_ms=(float(delay[1]), float(delay[2])), swap_pairs=options.swap_pairs),
        faults=options.faults,
        live=options.live,
        timeout_s=options.timeout,
        command=shlex.join(command),
    )


def _enough(faults: Faults, interval_ms: float) -> int:
    """So many messages that the last fault still finds the members talking."""
    if not faults or not interval_ms >= INTERVAL_MS_MIN:  # nor is it, if it is no number
        return MESSAGES
    return max(MESSAGES, math.ceil((faults.end_us / 1000 + OUTLAST_MS) / interval_ms))


def _launch(
    plan: Plan, directory: Path, progress: Steps, stage: Stage | None, follower: Follower | None
) -> Outcome:
    phase, told = "", 0

    def show(now: Progress) -> None:
        nonlocal phase, told
        if now.phase != phase:
            phase = now.phase
            said = {
                "gathering": f"starting {counted(now.processes, 'process')}",
                "connecting": f"{now.present} of {now.processes} present, connecting",
                "running": f"{plan.ordering} over {plan.dissemination}: delivering",
                "stopping": "stopping the group",
            }
            progress.begin(said[phase], total=now.to_deliver if phase == "running" else None)
        if phase == "running":
            progress.advance_to(now.delivered)
        if follower is not None:
            follower.see(now)
        for happening in now.happened[told:]:
            progress.note(str(happening))
        told = len(now.happened)

    audience = stage.board if stage is not None else None
    try:
        reader = follower.finish if follower is not None else None
        return asyncio.run(
            launch(plan, directory=directory, progress=show, audience=audience, reader=reader)
        )
    finally:
        if audience is not None:
            audience.run_is_over()
