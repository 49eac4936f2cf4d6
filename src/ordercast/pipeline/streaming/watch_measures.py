"""How a run is doing: what came since the last look, and how long messages took."""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.index import RECEIVE, SEND
from ordercast.pipeline.kernels.kernel import Bools, Ints
from ordercast.pipeline.streaming.watch_log import Log
from ordercast.trace.news import Quantiles

__all__ = ["delays"]


def delays(log: Log, fresh: Bools) -> tuple[Quantiles | None, Quantiles | None]:
    """Of the deliveries among the fresh rows: the time since the message was sent, and since this
    process received it, in microseconds. None where no clock or no `receive` row tells."""
    mine = np.flatnonzero(fresh & log.first & (log.time_us >= 0))
    sent = np.full(log.messages, -1)
    sends = np.flatnonzero(log.kind == SEND)
    sent[log.message[sends]] = log.time_us[sends]
    latency = _since(log.time_us[mine], sent[log.message[mine]])
    received = np.flatnonzero(log.kind == RECEIVE)
    if not len(received):
        return latency, None
    keys, at = np.unique(_pairs(log, received), return_index=True)  # the first copy counts
    place = np.minimum(np.searchsorted(keys, _pairs(log, mine)), len(keys) - 1)
    matches = keys[place] == _pairs(log, mine)
    arrived = np.where(matches, log.time_us[received[at]][place], -1)
    return latency, _since(log.time_us[mine], arrived)


def _pairs(log: Log, rows: Ints) -> Ints:
    return log.process[rows] * log.messages + log.message[rows]


def _since(now: Ints, then: Ints) -> Quantiles | None:
    known = then >= 0
    if not known.any():
        return None
    # Clocks of different machines differ: no delay is less than none.
    waits = np.maximum(now[known] - then[known], 0)
    half, most = np.quantile(waits, (0.5, 0.99), method="lower")
    return Quantiles(int(half), int(most))
