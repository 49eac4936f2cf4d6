"""Runs in which messages are for some members only, in whatever order, and both ways to judge them:
whole, and in blocks of a few rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from ordercast.pipeline import alone, engine
from ordercast.pipeline.blocks import judge_blocks, judging, logs_of, sketches
from ordercast.pipeline.judged import Judged
from ordercast.pipeline.source import inspect
from ordercast.trace.event import Event
from ordercast.trace.manifest import Manifest
from ordercast.trace.parquet import to_table
from ordercast.trace.verdicts import PROPERTIES

from .broadcasts import each

Row = tuple[str, int | None, int | None, tuple[int, ...] | None]
LOGS = list[list[Row]]


@dataclass
class Multicast:
    """A group in which nothing is under way for long."""

    random: Random
    size: int
    order: str
    """none, fifo, nearly or total"""
    some: float
    """Which part of the messages is for some only."""
    lag: int
    """How many messages may wait for a process, about."""
    repeats: float = 0.0
    strays: float = 0.0
    """How often a process delivers what is not for it."""
    logs: LOGS = field(init=False)

    def __post_init__(self) -> None:
        self.logs = [[] for _ in range(self.size)]
        self.waiting: list[list[tuple[int, int]]] = [[] for _ in range(self.size)]
        self.sent = [0] * self.size
        self.down: set[int] = set()

    def send(self, p: int) -> None:
        self.sent[p] += 1 if self.random.random() < 0.9 else 2
        readers = None
        if self.random.random() < self.some:
            readers = tuple(self.random.sample(range(self.size), self.random.randint(1, self.size)))
        message = p, self.sent[p]
        self.logs[p].append(("send", *message, readers))
        for q in range(self.size):
            if readers is None or q in readers or self.random.random() < self.strays:
                self.waiting[q].append(message)

    def deliver(self, p: int) -> bool:
        mine = self.waiting[p]
        if not mine:
            return False
        at = min(self.random.randrange(self.lag), len(mine) - 1)
        if self.order == "total" or (self.order == "nearly" and self.random.random() < 0.95):
            at = 0
        elif self.order == "fifo":
            at = [origin for origin, _ in mine].index(mine[at][0])
        message = mine.pop(at)
        for _ in range(1 + (self.random.random() < self.repeats)):
            self.logs[p].append(("deliver", *message, None))
        return True

    def crash(self, p: int) -> None:
        self.down.add(p)
        self.logs[p].append(("crash", None, None, None))

    def step(self, p: int) -> None:
        if self.random.random() < 0.3:
            self.send(p)
        elif self.random.random() < 0.02:
            self.logs[p].append(("join", None, None, None))
        while self.random.random() < 0.3 and self.deliver(p):
            pass
        for q in set(range(self.size)) - self.down:
            while len(self.waiting[q]) > 2 * self.lag:
                self.deliver(q)


def multicast(seed: int, *, steps: int = 900, size: int | None = None) -> pa.Table:
    return table_of(logs_of_multicast(seed, steps=steps, size=size))


def logs_of_multicast(seed: int, *, steps: int, size: int | None = None) -> LOGS:
    random = Random(seed)
    group = Multicast(
        random,
        size=size or random.randint(2, 5),
        order=random.choice(["none", "fifo", "nearly", "total"]),
        some=random.choice([0.2, 0.5, 0.8, 1.0]),
        lag=random.choice([1, 3, 5]),
        repeats=random.choice([0.0, 0.0, 0.02]),
        strays=random.choice([0.0, 0.0, 0.02]),
    )
    fragile = random.random() < 0.3
    for _ in range(steps):
        p = random.randrange(group.size)
        if p in group.down:
            continue
        if fragile and random.random() < 0.003 and len(group.down) < group.size - 1:
            group.crash(p)
        else:
            group.step(p)
    for p in range(group.size):
        last = random.random() < 0.2  # it does not come to the end
        while p not in group.down and not last and group.deliver(p):
            pass
    return group.logs


SPOILT = ("skip", "late", "again", "astray", "forge", "fill in")


def spoil(logs: LOGS, random: Random) -> str:
    """One message is made to reach far; returns how."""
    p, at = random.choice(
        [(p, i) for p, log in enumerate(logs) for i, row in enumerate(log) if row[0] == "deliver"]
    )
    log, row = logs[p], logs[p][at]
    later = random.choice([random.randint(at, len(log)), len(log) - (len(log) - at) // 8])
    if log[-1][0] == "crash":
        later = min(later, len(log) - 1)
    how = random.choice(SPOILT)
    if how == "skip":
        log[:] = [other for other in log if other != row]
    elif how == "late":
        log.insert(max(later - 1, at), log.pop(at))
    elif how == "again":
        log.insert(later, row)
    elif how == "astray":
        q = random.choice([q for q in range(len(logs)) if q != p])
        up = len(logs[q]) - (logs[q][-1:] == [("crash", None, None, None)])
        logs[q].insert(max(up - random.randrange(1 + up // 2), 0), row)
    elif how == "forge":
        log.insert(later, ("deliver", row[1], 10**9 + random.randrange(3), None))
    else:
        numbers = {other[2] for other in logs[row[1]] if other[0] == "send"}
        gaps = set(range(1, max(numbers))) - numbers
        if gaps:
            log.insert(later, ("deliver", row[1], random.choice(sorted(gaps)), None))
    return how


def steady(many: int) -> LOGS:
    """Three processes that take turns at sending to the two others, in one order."""
    logs: LOGS = [[] for _ in range(3)]
    for i in range(many):
        p = i % 3
        message = p, i // 3 + 1
        others = tuple(q for q in range(3) if q != p)
        logs[p].append(("send", *message, others))
        for q in others:
            logs[q].append(("deliver", *message, None))
    return logs


def place(logs: LOGS, process: int, message: tuple[int, int]) -> int:
    return logs[process].index(("deliver", *message, None))


def table_of(logs: Sequence[Sequence[Row]]) -> pa.Table:
    return to_table(
        Event("r", p, position, kind, origin, number, destinations=readers)  # type: ignore[arg-type]
        for p, log in enumerate(logs)
        for position, (kind, origin, number, readers) in enumerate(log)
    )


def in_blocks(path: Path, manifest: Manifest) -> Judged:
    """Raises `Unhealthy` if that cannot be done."""
    pieces = [group.piece for group in inspect(path).groups]
    logs = logs_of(pieces, len(manifest.processes), each, 1)
    return judge_blocks(logs, manifest, PROPERTIES, each, 1)


def only_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of thousands of rows are huge, and nobody gathers them."""
    monkeypatch.setattr(engine, "HUGE_ROWS", 1000)
    monkeypatch.setattr(alone, "_TASKS_PER_CORE", 1)
    monkeypatch.setattr(judging, "BLOCK_ROWS", 2000)
    monkeypatch.setattr(sketches, "EVERY", 32)
    monkeypatch.setattr("ordercast.pipeline.huge.apart.APART_MOST", 10)
    monkeypatch.setattr(engine, "_judge_items", None)
