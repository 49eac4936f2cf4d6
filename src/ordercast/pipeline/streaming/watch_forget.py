"""Rows of a run that need not be kept, and what of them must not be forgotten."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ordercast.pipeline.kernels.kernel import Bools
from ordercast.pipeline.streaming.watch_log import Lengths, Log
from ordercast.pipeline.streaming.watch_memory import Memory
from ordercast.pipeline.streaming.watch_prune import finished, oldest
from ordercast.pipeline.streaming.watch_verdicts import LIVENESS, TOTAL, Known, Rules, judge_log
from ordercast.trace.verdicts import Verdict

__all__ = ["forget"]

LEDGER_MOST = 1 << 14
"""Ranges of messages that are remembered one by one."""


def forget(log: Log, known: Known, now: dict[str, Verdict], memory: Memory, rules: Rules) -> Log:
    """What is left; the same log if nothing was dropped.

    in: now: the verdicts on this log alone
    """
    crowded = len(log) > rules.keep
    worth_it = crowded or len(log) >= max(rules.tidy, 2 * memory.left)
    if not worth_it or (known.manifest is None and not crowded):
        return log
    if known.manifest is None:  # somebody else may still turn up: nothing is known to be finished
        drop, done = oldest(log), np.zeros(log.messages, np.bool_)
        _in_windows(memory, rules.properties)
    else:
        drop, done = _chosen(log, known.members, now, memory, rules, crowded=crowded)
    memory.left = len(log)
    if not drop.any():
        return log
    left = _without(log, drop)
    _carry(log, left, known, now, memory)
    memory.ledger.add(log, drop, done)
    if len(memory.ledger) > LEDGER_MOST:
        memory.ledger.coarsen()
        _in_windows(memory, ("no_duplication", "no_creation", *LIVENESS))
    memory.left = len(left)
    return left


def _chosen(
    log: Log, members: int, now: dict[str, Verdict], memory: Memory, rules: Rules, *, crowded: bool
) -> tuple[Bools, Bools]:
    """The messages to drop, and those that were delivered by everyone they were for."""
    gone = memory.carried.violations
    held = {name for name in now if not now[name].violations and not gone.get(name)}
    drop = finished(
        log,
        members,
        total=not crowded or not held.isdisjoint(TOTAL),
        synchronous=not crowded or "synchronous" in held,
    )
    if not crowded or _rows_left(log, drop) <= rules.keep // 2:
        return drop, drop
    _in_windows(memory, rules.properties)
    return drop | oldest(log), ~log.unfinished(members)


def _rows_left(log: Log, drop: Bools) -> int:
    about = log.message[log.message >= 0]
    return len(about) - int(drop[about].sum())


def _in_windows(memory: Memory, properties: Collection[str]) -> None:
    for name in properties:
        memory.windowed.setdefault(name, memory.events)


def _without(log: Log, drop: Bools) -> Log:
    stays = log.bare()
    about = log.message >= 0
    stays[about] = ~drop[log.message[about]]
    left = log.only(stays)
    return Log.of([left.table, log.anchors(left)])[0]


def _carry(log: Log, left: Log, known: Known, now: dict[str, Verdict], memory: Memory) -> None:
    """What was found before, less what will be found again."""
    carried = memory.carried
    again = judge_log(left, known, tuple(now)).verdicts
    for name, verdict in now.items():
        gone = verdict.violations - again[name].violations
        carried.violations[name] = carried.violations.get(name, 0) + max(gone, 0)
        witness = verdict.witness
        if verdict.violations and witness is not None and witness != again[name].witness:
            carried.note(name, witness, log.shown(name, witness))
        if name not in LIVENESS:  # those are counted by who is up in the end
            checked = verdict.checked - again[name].checked
            carried.checked[name] = carried.checked.get(name, 0) + max(checked, 0)
    if known.manifest is None:
        return
    lengths = log.lengths(known.members).without(left.lengths(known.members))
    if carried.lengths is not None:
        lengths = lengths.plus(Lengths(*map(np.array, carried.lengths)))
    shared, delivered, met = (one.tolist() for one in lengths)
    carried.lengths = (shared, delivered, met)
