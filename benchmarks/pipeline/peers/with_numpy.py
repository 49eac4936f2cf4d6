"""numpy in one process: arrays of places, one per process."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.pipeline.peers import CHECKS, Found, event_files, members

__all__ = ["check"]

NOWHERE = np.iinfo(np.int32).max


class _Log(NamedTuple):
    """One process's sends and deliveries in their order."""

    sends: np.ndarray
    """Which rows are that. The others are deliveries."""
    origin: np.ndarray
    number: np.ndarray


def check(trace: Path) -> Found:
    logs = _logs(trace)
    size = len(logs)
    sent = np.array([int(log.sends.sum()) for log in logs])
    start = np.concatenate(([0], np.cumsum(sent)))
    later, earlier = _dependencies(logs, sent, start)
    found = dict.fromkeys(CHECKS, 0)
    receivers = np.zeros(start[-1], np.int32)
    for log in logs:
        origin, number = log.origin[~log.sends], log.number[~log.sends]
        known = (number >= 1) & (number <= sent[origin])
        found["no_creation"] += int((~known).sum())
        message = (start[origin] + number - 1)[known]
        times = np.bincount(message, minlength=start[-1])
        found["no_duplication"] += int((times > 1).sum())
        receivers += times > 0
        place = np.full(start[-1], NOWHERE, np.int32)
        place[message] = np.arange(len(message), dtype=np.int32)
        found["fifo"] += _falls(place, start)
        found["causal"] += int((place[later] < place[earlier]).sum())
    found["agreement"] = int(((receivers > 0) & (receivers < size)).sum())
    return found


def _logs(trace: Path) -> list[_Log]:
    logs: dict[int, list[_Log]] = {p: [] for p in range(members(trace))}
    for file in event_files(trace):
        names = ["process", "kind", "origin", "number"]
        table = pq.read_table(file, columns=names, read_dictionary=["kind"])
        kind = table["kind"].unify_dictionaries().combine_chunks()
        sends, deliveries = (_is(kind, word) for word in ("send", "deliver"))
        process = table["process"].to_numpy()
        origin, number = table["origin"].to_numpy(), table["number"].to_numpy()
        edges = [0, *(np.flatnonzero(np.diff(process)) + 1).tolist(), len(process)]
        for low, high in pairwise(edges):
            kept = low + np.flatnonzero((sends | deliveries)[low:high])
            logs[int(process[low])].append(_Log(sends[kept], origin[kept], number[kept]))
    return [_Log(*map(np.concatenate, zip(*parts, strict=True))) for parts in logs.values()]


def _is(kind: pa.DictionaryArray, word: str) -> np.ndarray:
    words = kind.dictionary.to_pylist()
    return kind.indices.to_numpy() == (words.index(word) if word in words else -1)


def _dependencies(
    logs: list[_Log], sent: np.ndarray, start: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs: a message, and one that its sender had delivered since its previous send, the last of
    its origin."""
    later, earlier = [], []
    for process, log in enumerate(logs):
        turn = np.cumsum(log.sends)[~log.sends]
        last = np.zeros((sent[process] + 1, len(logs)), np.int64)
        last[turn, log.origin[~log.sends]] = log.number[~log.sends]
        turns, origins = np.nonzero(last[:-1])
        number = last[turns, origins]
        real = number <= sent[origins]
        later.append((start[process] + turns)[real].astype(np.int32))
        earlier.append((start[origins] + number - 1)[real].astype(np.int32))
    return np.concatenate(later), np.concatenate(earlier)


def _falls(place: np.ndarray, start: np.ndarray) -> int:
    """How many messages come before an earlier one of their origin."""
    falls = 0
    for low, high in pairwise(start.tolist()):
        places = place[low:high]
        here = places[places != NOWHERE]
        falls += int((here[1:] < here[:-1]).sum())
    return falls
