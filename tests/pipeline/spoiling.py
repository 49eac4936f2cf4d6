"""Faults for a run that has none."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa

Log = list[dict[str, Any]]


def spoilt(events: pa.Table, random: Random) -> pa.Table:
    """With one to five faults. Positions leave gaps."""
    logs: list[Log] = []
    for row in events.to_pylist():
        while len(logs) <= row["process"]:
            logs.append([])
        logs[row["process"]].append(row)
    for _ in range(random.choice([1, 1, 2, 3, 5])):
        random.choice(FAULTS)(logs, random.randrange(len(logs)), random) if logs else None
    rows = [
        {**row, "process": p, "position": 2 * i + 1}
        for p, log in enumerate(logs)
        for i, row in enumerate(log)
    ]
    return pa.Table.from_pylist(rows, events.schema)


def _rows(log: Log, kind: str) -> list[int]:
    return [i for i, row in enumerate(log) if row["kind"] == kind]


def _swap_neighbours(logs: list[Log], p: int, random: Random) -> None:
    those = _rows(logs[p], "deliver")
    if len(those) > 1:
        i = random.randrange(len(those) - 1)
        a, b = those[i : i + 2]
        logs[p][a], logs[p][b] = logs[p][b], logs[p][a]


def _deliver_late(logs: list[Log], p: int, random: Random) -> None:
    those = _rows(logs[p], "deliver")
    if len(those) > 1:
        early, late = sorted(random.sample(those, 2))
        logs[p].insert(late, logs[p].pop(early))


def _deliver_early(logs: list[Log], p: int, random: Random) -> None:
    those = _rows(logs[p], "deliver")
    if len(those) > 1:
        early, late = sorted(random.sample(those, 2))
        logs[p].insert(early, logs[p].pop(late))


def _omit(logs: list[Log], p: int, random: Random) -> None:
    those = _rows(logs[p], "deliver")
    if those:
        logs[p].pop(random.choice(those))


def _omit_some(logs: list[Log], p: int, random: Random) -> None:
    """A few of one origin in a row."""
    those = _rows(logs[p], "deliver")
    if those:
        first = logs[p][random.choice(those)]
        origin, low, high = first["origin"], first["number"], first["number"] + random.randint(1, 4)
        logs[p] = [
            row
            for row in logs[p]
            if (row["kind"], row["origin"]) != ("deliver", origin)
            or not low <= row["number"] < high
        ]


def _repeat(logs: list[Log], p: int, random: Random) -> None:
    those = _rows(logs[p], "deliver")
    if those:
        row = random.choice(those)
        logs[p].insert(random.randint(row + 1, len(logs[p])), dict(logs[p][row]))


def _forge(logs: list[Log], p: int, random: Random) -> None:
    those = _rows(logs[p], "deliver")
    if those:
        row = dict(logs[p][random.choice(those)])
        row["number"] = random.choice([10**9, row["number"] + 1000, row["number"]])
        row["origin"] = random.randrange(len(logs))
        logs[p].insert(random.randint(0, len(logs[p])), row)


def _send_to_some(logs: list[Log], p: int, random: Random) -> None:
    those = _rows(logs[p], "send")
    if those:
        some = random.sample(range(len(logs)), random.randint(0, len(logs)))
        logs[p][random.choice(those)]["destinations"] = some


def _send_later(logs: list[Log], p: int, random: Random) -> None:
    """Perhaps after its own delivery, or after the next message."""
    those = _rows(logs[p], "send")
    if those:
        at = random.choice(those)
        logs[p].insert(at + random.randint(1, 3), logs[p].pop(at))


def _lose_send(logs: list[Log], p: int, random: Random) -> None:
    those = _rows(logs[p], "send")
    if those:
        logs[p].pop(random.choice(those))


def _skip_numbers(logs: list[Log], p: int, random: Random) -> None:
    """From some message on, all of an origin's have higher numbers."""
    those = _rows(logs[p], "send")
    if those:
        first = logs[p][random.choice(those)]["number"]
        for row in (row for log in logs for row in log):
            if row["origin"] == p and row["number"] >= first:
                row["number"] += 3


FAULTS: list[Callable[[list[Log], int, Random], None]] = [
    _swap_neighbours,
    _deliver_late,
    _deliver_early,
    _omit,
    _omit_some,
    _repeat,
    _forge,
    _send_to_some,
    _send_later,
    _lose_send,
    _skip_numbers,
]
