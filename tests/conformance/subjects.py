"""What the conformance suite runs: every combination of the catalog, in every kind of trouble."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from ordercast.oracle import judge
from ordercast.protocols import catalog
from ordercast.protocols.stack import Stack
from ordercast.simulator.faults import parse_faults
from ordercast.simulator.plan import Network, Plan, Traffic
from ordercast.simulator.run import simulate
from ordercast.trace.directory import Trace
from ordercast.trace.event import Event
from ordercast.trace.manifest import Manifest

COMBINATIONS = catalog.combinations()

TROUBLE = {
    "calm": "",
    "fifo links": "fifo",
    "slow and fast": "delay:0ms..200ms",
    "loss": "loss:30%",
    "duplication": "duplicate:50%",
    "partition that heals": "partition:0|1,2@2ms+80ms",
    "everything": "loss:10%, duplicate:20%, delay:0ms..60ms, partition:0,1|2@10ms+30ms",
    "a crash": "crash:0@15ms",
    "a crash in mid-broadcast": "crash:1#4, delay:0ms..50ms",
    "a sender dies after one copy": "crash:0#1, loss:20%",
    "two crashes of five": "crash:4#5, crash:2@25ms, loss:10%, delay:0ms..60ms",
}


def traffic_kinds(ordering: str, dissemination: str) -> list[str]:
    entries = catalog.ORDERINGS[ordering], catalog.DISSEMINATIONS[dissemination]
    allowed = {entry.destinations for entry in entries}
    if "one" in allowed:
        return ["one"]
    return ["everyone"] if "everyone" in allowed else ["everyone", "one", "some"]


def run_once(
    build: Callable[[int, int], Stack],
    *,
    seed: int,
    faults: str = "",
    size: int | None = None,
    messages: int = 4,
    destinations: str = "everyone",
    run: str = "r",
    promises: tuple[str, ...] | None = None,
) -> Trace:
    network, crashes = parse_faults(faults, Network())
    # Fewer than half may crash: two crashes need five processes.
    size = size or (5 if len(crashes) == 2 else Random(seed).randint(3, 5))
    traffic = Traffic(messages, 8, destinations=destinations)  # type: ignore[arg-type]
    events: list[Event] = []
    ending = simulate(
        Plan(size, seed, network, crashes, traffic, until_us=20_000_000),
        build=build,
        run=run,
        write=events.append,
    )
    extra = {} if promises is None else {"promises": list(promises)}
    names = tuple(f"p{process}" for process in range(size))
    return Trace.of(Manifest(run, names, quiesced=ending.quiesced, extra=extra), events)


def broken_promises(trace: Trace, promises: tuple[str, ...]) -> list[str]:
    return [
        f"{verdict.property} {verdict.verdict}: {verdict.witness and verdict.witness.sentence}"
        for verdict in judge(trace, promises)
        if verdict.verdict != "holds"
    ]


def replay(ordering: str, dissemination: str, seed: int, faults: str, to: str, size: int) -> str:
    return (
        f"ordercast simulate --ordering {ordering} --dissemination {dissemination} "
        f"--processes {size} --messages 4 --payload 8 --to {to} --seed {seed} "
        f"--faults '{faults}' --story"
    )
