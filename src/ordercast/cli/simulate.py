"""Run an algorithm in the deterministic simulator and write its trace.

example:
  ordercast simulate --ordering causal_vector --processes 5 --messages 50 --seed 7 --trace out
  ordercast simulate --ordering fifo --faults "loss:5%,crash:1@20ms" --trace out
  ordercast simulate --scenario tests/scenarios/reply_before_question.txt
"""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ordercast.cli.algorithm import add_algorithm_arguments, chosen
from ordercast.cli.faults import parsed_faults
from ordercast.cli.steps import steps
from ordercast.cli.words import counted, duration
from ordercast.errors import UsageError
from ordercast.oracle import told
from ordercast.protocols import catalog
from ordercast.simulator.faults import GRAMMAR, parse_faults
from ordercast.simulator.plan import Network, Plan, Traffic
from ordercast.simulator.recording import manifest_of, simulate_named
from ordercast.simulator.run import Ending
from ordercast.simulator.scenario import Block, Scenario, parse, render
from ordercast.trace.directory import TraceWriter
from ordercast.trace.event import Event
from ordercast.trace.manifest import Manifest

__all__ = ["act", "add_arguments"]

WAITING_SHOWN = 10
REFUSED = "refused: "
"""How a scenario tells of a command that cannot be; a file may foresee it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_algorithm_arguments(parser)
    parser.add_argument(
        "--threshold", type=int, metavar="K",
        help="how many must hold a message before a uniform dissemination counts on it",
    )  # fmt: skip
    parser.add_argument(
        "--processes", type=int, default=3, metavar="N", help="in the group (default: 3)"
    )
    parser.add_argument(
        "--messages", type=int, default=8, metavar="N", help="sent by each process (default: 8)"
    )
    parser.add_argument(
        "--payload", type=int, default=16, metavar="BYTES", help="in each message (default: 16)"
    )
    parser.add_argument(
        "--to", choices=("everyone", "one", "some"),
        help="broadcasts, unicasts, or random subsets (default: everyone, if the ordering can)",
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=int, default=0, help="the same seed gives the same run (default: 0)"
    )
    forms = "; ".join(f"{form}: {meaning}" for form, meaning in GRAMMAR.items())
    parser.add_argument(
        "--faults", default="", metavar="PLAN", help=forms.replace("%", "%%") + "; comma-separated"
    )
    parser.add_argument(
        "--scenario", type=Path, metavar="FILE", help="play a scenario file instead"
    )
    parser.add_argument("--trace", type=Path, metavar="DIR", help="write the trace here")
    parser.add_argument(
        "--format", choices=("jsonl", "parquet"), help="of the trace (default: jsonl)"
    )
    parser.add_argument("--story", action="store_true", help="tell every event on stdout")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")


def act(options: argparse.Namespace) -> int:
    if options.format is not None and options.trace is None:
        raise UsageError(f"--format {options.format} is about the trace: give it with --trace DIR")
    if options.scenario is not None:
        return _play(options)
    return _simulate(options)


def _play(options: argparse.Namespace) -> int:
    scenario = Scenario(judge=told)
    written = _blocks(options.scenario)
    blocks = scenario.play(written)
    print(render(blocks), end="")
    if options.trace is not None:
        trace = scenario.trace()
        with TraceWriter(options.trace, format=options.format or "jsonl") as writer:
            for event in trace.events:
                writer.write(event)
            writer.add_manifest(trace.manifest)
    for block, before in zip(blocks, written, strict=True):
        refused = next((line for line in block.output if line.startswith(REFUSED)), None)
        if refused is not None and refused not in before.output:
            raise UsageError(f"{options.scenario}: {block.command[:60]!r} was {refused}")
    return 0


def _blocks(file: Path) -> list[Block]:
    try:
        return parse(file.read_text())
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not a text"
        raise UsageError(f"--scenario {file} cannot be read: {why}") from None


def _simulate(options: argparse.Namespace) -> int:
    ordering, dissemination = chosen(options)
    network, crashes = parsed_faults(lambda plan: parse_faults(plan, Network()), options.faults)
    allowed = catalog.ORDERINGS[ordering].destinations
    options.to = options.to or ("one" if allowed == "one" else "everyone")
    if allowed not in ("any", options.to):
        raise UsageError(f"{ordering} sends to {allowed} only: leave out --to {options.to}")
    plan = Plan(
        size=options.processes,
        seed=options.seed,
        network=network,
        crashes=crashes,
        traffic=Traffic(options.messages, options.payload, destinations=options.to),
    )
    run = f"{ordering}-{dissemination}-n{plan.size}-m{options.messages}-s{plan.seed}"
    narrate = print if options.story else None
    tally = _Tally()
    if options.trace is None:
        ending = _run(plan, ordering, dissemination, run, tally.write, narrate, options.threshold)
    else:
        with TraceWriter(options.trace, format=options.format or "jsonl") as writer:

            def write(event: Event) -> None:
                tally.write(event)
                writer.write(event)

            ending = _run(plan, ordering, dissemination, run, write, narrate, options.threshold)
            writer.add_manifest(_manifest(options, plan, ordering, dissemination, run, ending))
    _print_summary(options, run, tally, ending)
    return 0


def _run(
    plan: Plan,
    ordering: str,
    dissemination: str,
    run: str,
    write: Callable[[Event], None],
    narrate: Callable[[str], None] | None,
    threshold: int | None,
) -> Ending:
    with steps() as progress:
        progress.begin(f"simulating {counted(plan.size, 'process')}")
        return simulate_named(
            *(plan, ordering, dissemination),
            threshold=threshold,
            run=run,
            write=write,
            narrate=narrate,
        )


def _manifest(
    options: argparse.Namespace,
    plan: Plan,
    ordering: str,
    dissemination: str,
    run: str,
    ending: Ending,
) -> Manifest:
    replay = [
        *("ordercast", "simulate", "--ordering", ordering, "--dissemination", dissemination),
        *("--processes", str(plan.size), "--messages", str(options.messages)),
        *("--payload", str(options.payload), "--to", options.to, "--seed", str(plan.seed)),
    ]
    if options.faults:
        replay += ["--faults", options.faults]
    if options.threshold is not None:
        replay += ["--threshold", str(options.threshold)]
    return manifest_of(
        *(plan, ending, run, ordering, dissemination),
        faults=options.faults,
        replay=shlex.join(replay),
    )


class _Tally:
    """Counts what passes by, so that the summary needs no second look at the trace."""

    def __init__(self) -> None:
        self.events = 0
        self.kinds: dict[str, int] = {}
        self.held = 0
        self.longest_us = 0
        self._arrived: dict[tuple[int, int, int], int] = {}

    def write(self, event: Event) -> None:
        self.events += 1
        self.kinds[event.kind] = self.kinds.get(event.kind, 0) + 1
        if event.kind not in ("receive", "deliver"):
            return
        key = (event.process, *event.message)
        if event.kind == "receive":
            self._arrived.setdefault(key, event.time_us or 0)
        elif (arrived := self._arrived.pop(key, None)) is not None:
            waited = (event.time_us or 0) - arrived
            self.held += waited > 0
            self.longest_us = max(self.longest_us, waited)


def _print_summary(options: argparse.Namespace, run: str, tally: _Tally, ending: Ending) -> None:
    summary: dict[str, Any] = {
        "run": run,
        "events": tally.events,
        "sent": tally.kinds.get("send", 0),
        "delivered": tally.kinds.get("deliver", 0),
        "held": tally.held,
        "longest_held_us": tally.longest_us,
        "crashed": tally.kinds.get("crash", 0),
        "virtual_us": ending.virtual_us,
        "quiesced": ending.quiesced,
        "trace": None if options.trace is None else str(options.trace),
    }
    if options.json:
        print(json.dumps(summary))
        return
    rest = "came to rest" if ending.quiesced else "did not come to rest"
    why = "" if ending.obstacle is None else f": {ending.obstacle}"
    came = "1 delivery" if summary["delivered"] == 1 else f"{summary['delivered']} deliveries"
    if tally.held:
        came += f", {tally.held} of them after a wait of up to {duration(tally.longest_us)}"
    print(
        f"{run}: {counted(summary['sent'], 'message')} sent, {came}; "
        f"{rest} after {duration(ending.virtual_us)} of virtual time{why}"
    )
    for process, held in ending.waiting[:WAITING_SHOWN]:
        print(f"p{process} still holds {held}")
    if len(ending.waiting) > WAITING_SHOWN:
        more = len(ending.waiting) - WAITING_SHOWN
        print(f"… and {more} more {'is' if more == 1 else 'are'} held")
    if options.trace is not None:
        print(
            f"trace: {options.trace} (judge it: ordercast verify {shlex.quote(str(options.trace))})"
        )
