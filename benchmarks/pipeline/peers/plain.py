"""Plain Python: dicts and loops over the rows, twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.pipeline.peers import CHECKS, Found, event_files, members

__all__ = ["check"]

Row = tuple[int, str, int, int]
Needs = dict[tuple[int, int], dict[int, int]]


def check(trace: Path) -> Found:
    size = members(trace)
    needs = _needs(trace, size)
    found = dict.fromkeys(CHECKS, 0)
    delivered: list[set[tuple[int, int]]] = [set() for _ in range(size)]
    last = [[0] * size for _ in range(size)]
    for process, kind, origin, number in _rows(trace):
        if kind != "deliver":
            continue
        message = (origin, number)
        mine, latest = delivered[process], last[process]
        if message in mine:
            found["no_duplication"] += 1
        mine.add(message)
        needed = needs.get(message)
        if needed is None:
            found["no_creation"] += 1
            continue
        if number < latest[origin]:
            found["fifo"] += 1
        for other, least in needed.items():
            if latest[other] < least:
                found["causal"] += 1
        latest[origin] = number
    for message in set().union(*delivered):
        for mine in delivered:
            if message not in mine:
                found["agreement"] += 1
    return found


def _needs(trace: Path, size: int) -> Needs:
    """For each message, the last of each origin that its sender delivered since the one before."""
    needs: Needs = {}
    news: list[dict[int, int]] = [{} for _ in range(size)]
    for process, kind, origin, number in _rows(trace):
        if kind == "deliver":
            news[process][origin] = number
        elif kind == "send":
            needs[origin, number] = news[process]
            news[process] = {}
    return needs


def _rows(trace: Path) -> Iterator[Row]:
    for file in event_files(trace):
        with pq.ParquetFile(file) as opened:
            for batch in opened.iter_batches(columns=["process", "kind", "origin", "number"]):
                yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
