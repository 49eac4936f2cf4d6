"""The members' logs into one trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from ordercast.protocols import catalog
from ordercast.runtime.faults import Happening, Parting
from ordercast.runtime.plan import Plan
from ordercast.trace import Event, Manifest, TraceWriter
from ordercast.trace.spans import EXCERPTS_MAX, excerpts_in, log_files, read_log, rows_of

__all__ = ["Tally", "collect", "manifest_of"]


class Tally(Struct, frozen=True):
    sent: int
    delivered: int
    payloads: dict[str, str]
    """How messages begin; only the first ones."""


def collect(
    logs: Path,
    writer: TraceWriter,
    *,
    run: str,
    process: int,
    crashed: bool,
    ends_us: Sequence[int] = (),
) -> Tally:
    """Copy one member's log; if it crashed, add the row that it could not write itself.

    A member learns that it has crashed when it is back, if ever. `ends_us`, when its launcher saw
    its lives end, is nearer to the moment.
    """
    position = last_us = 0
    counts = Counter[str]()
    payloads: dict[str, str] = {}
    for file in log_files(logs, f"p{process}"):
        if not file.stat().st_size:
            continue  # no room on the disk even for how it begins, as the member has said
        head, spans = read_log(file)
        position = head.position
        payloads |= excerpts_in(spans, at_most=EXCERPTS_MAX - len(payloads))
        for span in spans:
            if span.kind == "crash":
                span.time_us = _end_since(last_us, ends_us, otherwise=span.time_us)
            writer.write_all(rows_of(span, run=run, process=process, position=position))
            position += span.count
            last_us = span.time_us
            counts[span.kind] += span.count
    if crashed:
        end_us = _end_since(last_us, ends_us, otherwise=last_us)
        writer.write(Event(run, process, position, "crash", time_us=end_us))
    return Tally(counts["send"], counts["deliver"], payloads)


def _end_since(last_us: int, ends_us: Sequence[int], *, otherwise: int) -> int:
    """Of the life that did something at `last_us`: a later one may have ended before it did any."""
    return next((end_us for end_us in ends_us if end_us >= last_us), otherwise)


def manifest_of(
    plan: Plan,
    *,
    quiesced: bool,
    crashed: Collection[int],
    happened: Collection[Happening],
    undelivered: str | None = None,
    partings: Collection[Parting] = (),
    payloads: Mapping[str, str] | None = None,
) -> Manifest:
    promises = catalog.promises(plan.ordering, plan.dissemination, crashes=bool(crashed))
    extra = {
        "seed": plan.seed,
        "weather": str(plan.weather),
        "faults": str(plan.faults) or None,
        "happened": [msgspec.to_builtins(happening) for happening in happened] or None,
        "undelivered": undelivered,
        "partitions": [msgspec.to_builtins(parting) for parting in partings] or None,
        "payloads": payloads or None,
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
