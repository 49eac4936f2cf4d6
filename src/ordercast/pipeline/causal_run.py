"""Causal order within one run, on Arrow and numpy: what a Spark task calls for each run.

    for each process p, and each n addressed to it that it delivered:
        for each m before n (clock[n] counts it), addressed to p, m != n:
            p delivered m later than n  -> an inversion
            p never delivered m         -> an omission

Counts make both cheap: the latest delivery among the first c messages of an origin is a running
maximum, the first omission of an origin is one number, and n is checked once per origin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ordercast.pipeline.clocks import Bools, Ints, closure, direct_knowledge

__all__ = ["check_run"]

NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class _Run:
    """One run's messages, numbered by (origin, send position), and who met them when."""

    origins: Ints
    start: Ints
    chain: Ints
    number: Ints
    sent_at: Ints
    owed_process: Ints
    owed_message: Ints
    """Who is addressed by what, sorted by process."""
    process: Ints
    position: Ints
    message: Ints
    """Every delivery of a known message, sorted by (process, position)."""

    def delivered(self, process: int) -> tuple[Ints, Ints]:
        mine = slice(*np.searchsorted(self.process, [process, process + 1]))
        return self.position[mine], self.message[mine]

    def first_delivery(self, process: int) -> Ints:
        """For each message its first position at a process, or NEVER."""
        position, message = self.delivered(process)
        at = np.full(len(self.number), NEVER)
        at[message[::-1]] = position[::-1]  # of several, the one assigned last is the first
        return at

    def addressed(self, process: int) -> Bools:
        mine = slice(*np.searchsorted(self.owed_process, [process, process + 1]))
        owed = np.zeros(len(self.number), np.bool_)
        owed[self.owed_message[mine]] = True
        return owed


def check_run(table: pa.Table, *, complete: bool) -> dict[str, Any]:
    """The run's `checked`, `violations` and `doubts`, and its witness (or None).

    Columns in: process, position, origin, number, addressed (null on a deliver row).
    """
    run = _load(table)
    heard = [run.delivered(int(origin)) for origin in run.origins]
    clock = closure(direct_knowledge(run.start, run.sent_at, heard), run.start)
    counts = np.ascontiguousarray(clock.T)
    checked = violations = doubts = 0
    witness: dict[str, Any] | None = None
    doubt: dict[str, Any] | None = None
    for process in np.unique(run.process).tolist():
        at, owed = run.first_delivery(process), run.addressed(process)
        facts = np.flatnonzero(owed & (at != NEVER))
        late, missing = _broken(run, counts, at, owed, facts)
        violating = late | missing if complete else late
        doubtful = missing & ~violating
        checked += len(facts)
        violations += int(violating.sum())
        doubts += int(doubtful.sum())
        if witness is None and violating.any():
            n = _earliest(facts[violating], at)
            witness = _witness(run, clock[n], process, n, at, owed, omissions=complete)
        if doubt is None and doubtful.any():
            n = _earliest(facts[doubtful], at)
            doubt = _witness(run, clock[n], process, n, at, owed, omissions=True)
    counted = {"checked": checked, "violations": violations, "doubts": doubts}
    return counted | {"witness": witness if violations else doubt}


def _load(table: pa.Table) -> _Run:
    lists = table.column("addressed").combine_chunks()
    sent = np.asarray(lists.is_valid())
    process, position, origin, number = (
        table.column(name).to_numpy().astype(np.int64)
        for name in ("process", "position", "origin", "number")
    )
    order = np.lexsort((position[sent], origin[sent]))
    s_origin, s_number = origin[sent][order], number[sent][order]
    origins, start = np.unique(s_origin, return_index=True)
    start = np.append(start, len(s_origin))
    message = _find(s_origin, s_number, origin[~sent], number[~sent])
    known = message >= 0
    d_process, d_position, message = process[~sent][known], position[~sent][known], message[known]
    by_process = np.lexsort((d_position, d_process))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    owed_process = lists.flatten().to_numpy().astype(np.int64)
    owed_message = np.repeat(rank, np.asarray(lists.filter(lists.is_valid()).value_lengths()))
    by_member = np.argsort(owed_process, kind="stable")
    return _Run(
        origins=origins,
        start=start,
        chain=np.repeat(np.arange(len(origins)), np.diff(start)),
        number=s_number,
        sent_at=position[sent][order],
        owed_process=owed_process[by_member],
        owed_message=owed_message[by_member],
        process=d_process[by_process],
        position=d_position[by_process],
        message=message[by_process],
    )


def _find(s_origin: Ints, s_number: Ints, origin: Ints, number: Ints) -> Ints:
    """For each (origin, number) its index among the sends, or -1."""
    if not len(s_origin):
        return np.full(len(origin), -1)
    numbers = np.unique(s_number)
    width = len(numbers)
    origins = np.unique(s_origin)
    keys = np.searchsorted(origins, s_origin) * width + np.searchsorted(numbers, s_number)
    order = np.argsort(keys)
    row = np.minimum(np.searchsorted(origins, origin), len(origins) - 1)
    column = np.minimum(np.searchsorted(numbers, number), width - 1)
    wanted = row * width + column
    found = order[np.minimum(np.searchsorted(keys[order], wanted), len(order) - 1)]
    same = (s_origin[found] == origin) & (s_number[found] == number)
    return np.where(same, found, -1)


def _broken(run: _Run, counts: Ints, at: Ints, owed: Bools, facts: Ints) -> tuple[Bools, Bools]:
    """For each fact of one process: is a predecessor late? is one missing?"""
    late = np.zeros(len(facts), np.bool_)
    missing = np.zeros(len(facts), np.bool_)
    when = at[facts]
    for k, (begin, end) in enumerate(zip(run.start[:-1], run.start[1:], strict=True)):
        count = counts[k][facts]
        never = np.flatnonzero(owed[begin:end] & (at[begin:end] == NEVER))
        if never.size:
            missing |= count > never[0]
        delivered = np.where(owed[begin:end] & (at[begin:end] != NEVER), at[begin:end], -1)
        latest = np.concatenate(([-1], np.maximum.accumulate(delivered)))
        late |= latest[count] > when
    return late, missing


def _earliest(facts: Ints, at: Ints) -> int:
    return int(facts[np.argmin(at[facts])])


def _witness(
    run: _Run, clock: Ints, process: int, n: int, at: Ints, owed: Bools, *, omissions: bool
) -> dict[str, Any]:
    """Why p should not have delivered n yet: the m that is easiest to follow."""
    index = np.arange(len(at))
    past = owed & (index - run.start[run.chain] < clock[run.chain]) & (at > at[n])
    if not omissions:
        past &= at != NEVER
    sender = int(run.origins[run.chain[n]])
    sent = (run.chain == run.chain[n]) & (index < n)
    heard = run.first_delivery(sender) < run.sent_at[n]
    direct = past & (sent | heard)
    candidates = np.flatnonzero(direct if direct.any() else past)
    m = int(candidates[np.lexsort((run.number[candidates], run.chain[candidates]))[0]])
    return {
        "process": process,
        "position": int(at[n]),
        "origin": int(run.origins[run.chain[m]]),
        "number": int(run.number[m]),
        "other": sender,
        "later": int(run.number[n]),
        "link": "sent" if sent[m] else "delivered" if heard[m] else "indirect",
        "missing": bool(at[m] == NEVER),
    }
