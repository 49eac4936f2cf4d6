"""Which messages of a run can be forgotten, because nothing that follows can change what they are.

A message is finished once it is sent and everyone that it is for has delivered it. It must be kept
all the same while it stands behind one that is not: in the chain of some process, then, it may come
to be crossed, or knotted, with one that is still under way. So:

    keep  every message that is unfinished
    keep  what a process delivered after one whose sending is not known yet        (causal order)
    keep  what a process sent after it had sent or delivered one that is kept      (causal order)
    keep  what a process delivered after it had delivered one that is kept         (total orders)
    keep  what a process delivered after it had sent or delivered one that is kept (synchronous)

until nothing is added. Any set of messages may be dropped with all of their rows, and what is found
in the rest is true; with this choice nothing is missed either. What a run has violated already need
not be looked for again: its rule can be left out, and only its count suffers.
"""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.index import SEND
from ordercast.pipeline.kernels.kernel import Bools, Ints
from ordercast.pipeline.streaming.watch_log import Log

__all__ = ["finished", "oldest"]

_ROUNDS = 64
"""Where things overlap without end, looking for one is given up."""


def finished(log: Log, members: int, *, total: bool, synchronous: bool) -> Bools:
    """For each message, can it be forgotten? `total` and `synchronous`: by all the rules."""
    sends = np.flatnonzero(log.kind == SEND)
    deliveries = np.flatnonzero(log.first)
    starts = np.searchsorted(log.process, np.arange(members))
    kept = log.unfinished(members)
    unsent = kept.copy()
    unsent[log.message[sends]] = False
    kept[_after(deliveries, _first(deliveries, unsent, log, starts), log)] = True
    for _ in range(_ROUNDS):
        before = int(kept.sum())
        sent = _first(sends, kept, log, starts)
        delivered = _first(deliveries, kept, log, starts)
        either = np.minimum(sent, delivered)
        kept[_after(sends, either, log)] = True
        if synchronous:
            kept[_after(deliveries, either, log)] = True
        elif total:
            kept[_after(deliveries, delivered, log)] = True
        if int(kept.sum()) == before:
            return ~kept
    return np.zeros(len(kept), np.bool_)


def oldest(log: Log) -> Bools:
    """The messages that have something to do with the first half of any process's rows."""
    start, end = (np.searchsorted(log.process, log.process, side=s) for s in ("left", "right"))
    early = np.arange(len(log)) < (start + end) / 2
    found = np.zeros(log.messages, np.bool_)
    found[log.message[early & (log.message >= 0)]] = True
    return found


def _first(rows: Ints, kept: Bools, log: Log, starts: Ints) -> Ints:
    """For each member the first of these rows that is about a message that is kept."""
    about = np.append(rows[kept[log.message[rows]]], len(log))
    at = np.searchsorted(about, starts)
    first = about[np.minimum(at, len(about) - 1)]
    ends = np.append(starts[1:], len(log))
    return np.where(first < ends, first, len(log))


def _after(rows: Ints, bound: Ints, log: Log) -> Ints:
    """The messages of those rows that come after their process's bound."""
    return log.message[rows[rows > bound[log.process[rows]]]]
