"""Run a group of real processes on this machine, verify its trace on Spark, write the report.

The exit code speaks of what was promised: 0: it holds; 1: it is violated; 2: unknown.

example:
  ordercast run --order causal --processes 3 --messages 8
  ordercast run --order fifo --processes 5 --messages 100 --delay 0..50 --seed 7
  ordercast run --dissemination majority_acks --faults "kill:1@1s+1s,loss:1%"
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
from contextlib import AbstractContextManager, ExitStack, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ordercast.cli.console import Steps, print_judgement, steps
from ordercast.cli.follow import Follower, following
from ordercast.cli.report import page_of
from ordercast.cli.verify import add_spark_arguments, judge
from ordercast.errors import UsageError
from ordercast.protocols import catalog
from ordercast.report.sheet import save
from ordercast.runtime.faults import GRAMMAR, Faults, parse_faults
from ordercast.runtime.launcher import launch
from ordercast.runtime.plan import Outcome, Plan, Progress
from ordercast.runtime.weather import Weather

if TYPE_CHECKING:
    from ordercast.cli.live import Stage

__all__ = ["act", "add_arguments"]

MESSAGES = 8
INTERVAL_MS = 10.0
LIVE_INTERVAL_MS = 500.0
LIVE_FAULTS = "delay:100ms±90ms"
"""Slow enough to be seen, and uneven enough for messages to be held."""
OUTLAST_MS = 1000


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
    parser.add_argument(
        "--messages", type=int, metavar="N",
        help="sent by each process (default: 8, or enough to outlast the faults; with --live "
        "until you press Finish)",
    )  # fmt: skip
    parser.add_argument("--payload", type=int, default=64, metavar="BYTES")
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
    options.faults = parse_faults(options.faults)
    plan = _plan(options, ordering, options.dissemination or dissemination)
    plan.check()
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
            print(f"what happened so far is in {directory}", file=sys.stderr)
            raise
        print(_summary(plan, outcome), file=aside)
        judgement = judge(options, directory, spark=follower.spark if follower else None)
    if options.json:
        print(json.dumps(judgement.to_json()))
    else:
        print_judgement(judgement)
    if follower is not None:
        print(follower.compare(judgement), file=aside)
    page = options.report or directory / "report.html"
    save(page_of(judgement, directory), page)
    if not options.json:
        print(f"trace:  {directory}\nreport: {page}", flush=True)
    if stage is not None:
        stage.show(judgement)
    return judgement.exit_code


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
    if not faults or interval_ms <= 0:
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
                "gathering": f"starting {now.processes} processes",
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


def _summary(plan: Plan, outcome: Outcome) -> str:
    sent = sum(member.sent for member in outcome.members)
    delivered = sum(member.delivered for member in outcome.members)
    held = max((member.held_max for member in outcome.members), default=0)
    rest = "came to rest" if outcome.quiesced else "did not come to rest"
    why = "" if outcome.obstacle is None else f": {outcome.obstacle}"
    line = (
        f"{plan.processes} processes, {plan.ordering} over {plan.dissemination}: {sent} messages "
        f"sent, {delivered} deliveries, up to {held} held at once; "
        f"{rest} in {outcome.duration_s:.1f} s{why}"
    )
    lines = [line]
    if plan.faults:
        lines.append(f"faults: {plan.faults}")
    if plan.faults or plan.live:
        lines += [f"  {happening}" for happening in outcome.happened]
    if (traffic := outcome.traffic) is not None:
        lines.append(
            f"  {traffic.connections} connections through the proxies, {traffic.lost} broken by "
            f"losses and {traffic.parted} by partitions"
        )
    unplanned = (crash for crash in outcome.crashed if crash.process not in outcome.killed)
    lines += [f"p{crash.process} crashed: {crash.cause}" for crash in unplanned]
    return "\n".join(lines)
