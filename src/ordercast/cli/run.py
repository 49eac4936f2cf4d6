"""Run a group of real processes on this machine, verify its trace on Spark, write the report.

The exit code speaks of what was promised: 0: it holds; 1: it is violated; 2: unknown.

example:
  ordercast run --order causal --processes 3 --messages 8
  ordercast run --order fifo --processes 5 --messages 100 --delay 0..50 --seed 7
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path

from ordercast.cli.console import Steps, print_judgement, steps
from ordercast.cli.verify import add_spark_arguments, judge
from ordercast.errors import UsageError
from ordercast.protocols import catalog
from ordercast.report import write
from ordercast.runtime.launcher import launch
from ordercast.runtime.plan import Outcome, Plan, Progress
from ordercast.runtime.weather import Weather
from ordercast.trace.directory import Trace

__all__ = ["act", "add_arguments"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--order", default="causal", metavar="ORDER",
        help="a word such as fifo, causal or total, or an ordering's own name (default: causal)",
    )  # fmt: skip
    parser.add_argument(
        "--dissemination", choices=sorted(catalog.DISSEMINATIONS), metavar="NAME",
        help="how a message reaches everyone (default: what suits the order)",
    )  # fmt: skip
    parser.add_argument("--processes", type=int, default=3, metavar="N")
    parser.add_argument("--messages", type=int, default=8, metavar="N", help="sent by each process")
    parser.add_argument("--payload", type=int, default=64, metavar="BYTES")
    parser.add_argument("--interval", type=float, default=10.0, metavar="MS", help="between sends")
    parser.add_argument(
        "--delay", default="0..30", metavar="LOW..HIGH",
        help="the network delays each packet by its own time, in ms, so that packets overtake "
        "each other (default: 0..30)",
    )  # fmt: skip
    parser.add_argument(
        "--swap-pairs", action="store_true",
        help="the network swaps every two consecutive messages of a process",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=60.0, metavar="S", help="give up after")
    parser.add_argument("--trace", type=Path, metavar="DIR", help="default: a new one in ./runs")
    parser.add_argument(
        "-o", "--report", type=Path, metavar="FILE", help="default: report.html in the trace"
    )
    parser.add_argument("--json", action="store_true", help="print the verdicts as JSON")
    add_spark_arguments(parser)


def act(options: argparse.Namespace) -> int:
    ordering, dissemination = catalog.choose(options.order)
    plan = _plan(options, ordering, options.dissemination or dissemination)
    plan.check()
    directory = options.trace or Path("runs") / plan.run
    try:
        with steps() as progress:
            outcome = _launch(plan, directory, progress)
    except KeyboardInterrupt:
        print(f"what happened so far is in {directory}", file=sys.stderr)
        raise
    if not options.json:
        print(_summary(plan, outcome))
    judgement = judge(options, directory)
    if options.json:
        print(json.dumps(judgement.to_json()))
    else:
        print_judgement(judgement)
    page = options.report or directory / "report.html"
    write(judgement, Trace.load(directory), page)
    if not options.json:
        print(f"trace:  {directory}\nreport: {page}")
    return judgement.exit_code


def _plan(options: argparse.Namespace, ordering: str, dissemination: str) -> Plan:
    delay = re.fullmatch(r"(\d+(?:\.\d+)?)\.\.(\d+(?:\.\d+)?)", options.delay)
    if delay is None:
        raise UsageError(f"--delay {options.delay!r} is not of the form LOW..HIGH, in ms")
    now = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
    command = [
        *("ordercast", "run", "--order", ordering, "--dissemination", dissemination),
        *("--processes", str(options.processes), "--messages", str(options.messages)),
        *("--payload", str(options.payload), "--interval", str(options.interval)),
        *("--delay", options.delay, "--seed", str(options.seed)),
        *(["--swap-pairs"] if options.swap_pairs else []),
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
        timeout_s=options.timeout,
        command=shlex.join(command),
    )


def _launch(plan: Plan, directory: Path, progress: Steps) -> Outcome:
    phase = ""

    def show(now: Progress) -> None:
        nonlocal phase
        if now.phase != phase:
            phase = now.phase
            said = {
                "gathering": f"starting {now.processes} processes",
                "connecting": f"{now.present} of {now.processes} present, connecting",
                "running": f"{plan.ordering} over {plan.dissemination}: delivering",
                "stopping": "stopping the group",
            }
            progress.begin(said[phase], total=now.to_deliver if phase == "running" else None)
        if phase == "running":
            progress.advance_to(now.delivered)

    return asyncio.run(launch(plan, directory=directory, progress=show))


def _summary(plan: Plan, outcome: Outcome) -> str:
    sent = sum(member.sent for member in outcome.members)
    delivered = sum(member.delivered for member in outcome.members)
    held = max((member.held_max for member in outcome.members), default=0)
    rest = "came to rest" if outcome.quiesced else "did not come to rest"
    line = (
        f"{plan.processes} processes, {plan.ordering} over {plan.dissemination}: {sent} messages "
        f"sent, {delivered} deliveries, up to {held} held at once; "
        f"{rest} in {outcome.duration_s:.1f} s"
    )
    crashes = [f"p{crash.process} crashed: {crash.cause}" for crash in outcome.crashed]
    return "\n".join([line, *crashes])
