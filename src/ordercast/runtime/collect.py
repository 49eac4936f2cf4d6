"""The members' logs into one trace."""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path

from msgspec import Struct

from ordercast.protocols import catalog
from ordercast.runtime.plan import Plan
from ordercast.trace import Event, Manifest, TraceWriter
from ordercast.trace.jsonl import decode_event

__all__ = ["Tally", "collect", "manifest_of", "read_log"]


class Tally(Struct, frozen=True):
    sent: int
    delivered: int


def collect(log: Path, writer: TraceWriter, *, run: str, process: int, crashed: bool) -> Tally:
    """Copy one member's log; if it crashed, add the row that it could not write itself."""
    events = read_log(log) if log.exists() else []
    if crashed:
        now_us = time.time_ns() // 1000
        events.append(Event(run, process, len(events), "crash", time_us=now_us))
    for event in events:
        writer.write(event)
    kinds = [event.kind for event in events]
    return Tally(kinds.count("send"), kinds.count("deliver"))


def read_log(log: Path) -> list[Event]:
    """The whole lines of a log whose writer may have been killed in the middle of the last one.

    Leaving out a torn line leaves no hole: a member writes down what it does before anyone
    else can know of it, so what is torn has not happened.
    """
    *lines, _torn = log.read_bytes().split(b"\n")
    return [decode_event(line, where=f"{log}, line {row}") for row, line in enumerate(lines, 1)]


def manifest_of(plan: Plan, *, quiesced: bool, crashed: Collection[int]) -> Manifest:
    promises = catalog.promises(plan.ordering, plan.dissemination, crashes=bool(crashed))
    extra = {
        "seed": plan.seed,
        "weather": str(plan.weather),
        "promises": list(promises),
        "command": plan.command,
    }
    return Manifest(
        plan.run,
        tuple(f"p{process}" for process in range(plan.processes)),
        quiesced=quiesced,
        order=plan.ordering,
        dissemination=plan.dissemination,
        extra={key: value for key, value in extra.items() if value is not None},
    )
