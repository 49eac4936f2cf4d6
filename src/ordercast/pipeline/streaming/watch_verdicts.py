"""The verdicts on a run that still goes on: by the kernels of the batch judge, on what is kept, and
what was found before.

Which verdicts on the beginning of a run could be taken back? Each process's log is here from its
start up to some position, without a gap. Then a duplicate, a lacking predecessor, a crossed pair, a
cycle stay what they are whatever follows: both rows are there, in their order. What may still be
mended is what is not there yet: a delivery whose send has not come (no creation), and whatever is
owed (validity, the agreements). Those are unknown until the run has ended.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from ordercast.pipeline.judging import RUNS, judge_rows
from ordercast.pipeline.streaming.watch_log import Lengths, Log
from ordercast.pipeline.streaming.watch_memory import Carried, Memory
from ordercast.trace.manifest import Manifest
from ordercast.trace.verdicts import PROPERTIES, Verdict, Witness

__all__ = ["LIVENESS", "TOTAL", "Judged", "Known", "Rules", "judge_log", "sum_up"]

LIVENESS = ("validity", "agreement", "uniform_agreement")
TOTAL = ("total_pairwise", "total_acyclic", "total_gap_free")
_BY_LENGTHS = {"total_pairwise": "shared", "total_acyclic": "delivered", "synchronous": "met"}


@dataclass(frozen=True)
class Rules:
    """How runs are to be watched."""

    properties: Collection[str] = PROPERTIES
    keep: int = 2_000_000
    """Rows of a run, at most, that wait for what is still to come."""
    tidy: int = 1 << 14
    """From how many rows on it pays to look for what can be forgotten."""
    ended: bool = False
    """What is there is all that there will be."""
    quiesced: bool = False
    """Runs without a manifest have come to rest, once they have ended."""


class Known(NamedTuple):
    """What is known of a run beside its events."""

    run: str
    manifest: Manifest | None
    quiesced: bool
    ended: bool
    """Nothing more will come."""
    torn: bool = False
    """Rows were left out."""

    @property
    def members(self) -> int:
        """How many there are; only for a run that has a manifest."""
        assert self.manifest is not None
        return len(self.manifest.processes)

    @property
    def complete(self) -> bool:
        return not self.torn and (self.manifest is None or self.manifest.complete)

    def table(self, *, complete: bool) -> pa.Table:
        """`RUNS`"""
        names = self.manifest.processes if self.manifest else ()
        size = len(names) if self.manifest else None
        row = (self.run, names, size, self.quiesced, complete)
        return pa.Table.from_pylist([dict(zip(RUNS.names, row, strict=True))], RUNS)


class Judged(NamedTuple):
    verdicts: dict[str, Verdict]
    flaws: list[str]
    """Rows that contradict others, and were left out."""


def judge_log(log: Log, known: Known, properties: Collection[str]) -> Judged:
    """What the kernels say of these rows, as a run that may go on."""
    events = log.table.append_column(
        "run", pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(log), np.int32)), [known.run])
    )
    found = judge_rows(events, known.table(complete=known.complete), properties, skip=True)
    verdicts = _verdicts(found.verdicts)
    created = verdicts.get("no_creation")
    if created is not None and created.verdict == "violated" and not known.ended:
        # As in a log with holes: what has not come yet is one.
        holes = judge_rows(events, known.table(complete=False), ["no_creation"], skip=True)
        verdicts |= _verdicts(holes.verdicts)
    return Judged(verdicts, found.flaws["flaw"].to_pylist())


def _verdicts(table: pa.Table) -> dict[str, Verdict]:
    rows = msgspec.convert(table.to_pylist(), list[Verdict])
    return {verdict.property: verdict for verdict in rows}


def sum_up(now: dict[str, Verdict], memory: Memory, log: Log, known: Known) -> dict[str, Verdict]:
    """With what was found in rows that are gone.

    in: now: what `judge_log` says of the log
    """
    carried, found = memory.carried, {}
    for name, verdict in now.items():
        violations = verdict.violations + carried.violations.get(name, 0)
        witness = verdict.witness
        if violations and witness is not None and verdict.violations:
            witness = carried.smallest(name, witness, log.shown(name, witness))
        elif violations:
            witness = carried.witnesses.get(name)
        outcome = "violated" if violations else verdict.verdict
        if outcome == "holds" and name in LIVENESS and not known.ended:
            outcome = "unknown"
        since = memory.windowed.get(name)
        if outcome == "holds" and since is not None:
            outcome, witness = "unknown", _windowed(since)
        checked = verdict.checked + carried.checked.get(name, 0)
        found[name] = Verdict(known.run, name, outcome, checked, violations, witness)
    if memory.carried.lengths is not None:
        _count_by_lengths(found, memory.carried, log, known.members)
        _count_obligations(found, memory, log, known.members)
    return found


def _windowed(since: int) -> Witness:
    return Witness(
        -1, (), f"from event {since} on judged in windows: nothing was found, but some was not seen"
    )


def _count_by_lengths(found: dict[str, Verdict], carried: Carried, log: Log, members: int) -> None:
    """Neighbours in chains of which a part is gone."""
    assert carried.lengths is not None
    whole = log.lengths(members).plus(Lengths(*map(np.array, carried.lengths)))
    for name, chain in _BY_LENGTHS.items():
        if name in found:
            edges = int(np.maximum(getattr(whole, chain) - 1, 0).sum())
            found[name] = msgspec.structs.replace(found[name], checked=edges)


def _count_obligations(found: dict[str, Verdict], memory: Memory, log: Log, members: int) -> None:
    """What those who are up were due, and have done, in messages that are gone."""
    up = log.up(members)
    due = dict.fromkeys(LIVENESS, 0)
    for origin, to, count in memory.ledger.met():
        whom = range(members) if to is None else sorted(set(to))
        owed = sum(bool(up[process]) for process in whom)
        if up[origin]:
            due["validity"] += count * (1 if origin in whom else owed)
        for name in LIVENESS[1:]:
            due[name] += count * owed
    for name in LIVENESS:
        if name in found:
            checked = found[name].checked + due[name]
            found[name] = msgspec.structs.replace(found[name], checked=checked)
