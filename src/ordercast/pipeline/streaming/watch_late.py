"""Rows about messages that were forgotten: second deliveries, mostly."""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.index import DELIVER, SEND
from ordercast.pipeline.kernels.kernel import Bools
from ordercast.pipeline.streaming.watch_log import Log
from ordercast.pipeline.streaming.watch_memory import Memory
from ordercast.pipeline.streaming.watch_verdicts import TOTAL
from ordercast.trace.verdicts import Witness

__all__ = ["sent_again", "set_aside"]


def sent_again(run: str, log: Log, memory: Memory) -> list[str]:
    """What is wrong with rows that send a message that was sent, and is gone."""
    ranges = memory.ledger.gone(log)
    sends = np.flatnonzero((ranges >= 0) & (log.kind == SEND)).tolist()
    return [
        f"run {run!r} has two send rows for {log.origin[row]}:{log.number[row]}"
        for row in sends
        if memory.ledger.ranges[int(log.origin[row])][ranges[row]].finished
    ]


def set_aside(log: Log, memory: Memory) -> Bools:
    """Which rows are about messages that are gone; what they violate is noted."""
    ranges = memory.ledger.gone(log)
    manifest = memory.described()
    names = manifest.processes if manifest else ()
    for row in np.flatnonzero((ranges >= 0) & (log.kind == DELIVER)).tolist():
        process, position, origin, number = (
            int(column[row]) for column in (log.process, log.position, log.origin, log.number)
        )
        known = memory.ledger.ranges[origin][ranges[row]]
        pair = (process, origin, number)
        if not known.finished or pair in memory.ledger.twice:
            continue  # nobody remembers, or it was told
        message = f"{origin}:{number}"
        who = names[process] if process < len(names) else f"p{process}"
        if known.to is None or process in known.to or pair in memory.ledger.strays:
            memory.ledger.twice.add(pair)
            again = f"{who} delivered {message} twice (again at position {position})"
            _note(memory, "no_duplication", Witness(process, (message,), again), position)
            continue
        memory.ledger.strays.add(pair)
        forged = f"{who} delivered {message}, which is not addressed to it"
        _note(memory, "no_creation", Witness(process, (message,), forged), position)
        for name in ("no_duplication", "no_creation"):
            memory.carried.checked[name] = memory.carried.checked.get(name, 0) + 1
        for name in (*TOTAL, "synchronous"):  # it has a place in this process's order, too
            memory.windowed.setdefault(name, memory.events)
    return ranges >= 0


def _note(memory: Memory, name: str, witness: Witness, position: int) -> None:
    carried = memory.carried
    carried.violations[name] = carried.violations.get(name, 0) + 1
    carried.note(name, witness, position)
