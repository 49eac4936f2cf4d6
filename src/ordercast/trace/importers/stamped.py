"""Events with vector clocks, on disk, to be found by host and own entry."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ordercast.trace.importers.base import Where
from ordercast.trace.importers.clocks import Clock

__all__ = ["Stamped", "StampedEvents"]

REMEMBERED = 1 << 12
_SCHEMA = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE events (
    run TEXT, host TEXT, own INT, clock TEXT, event TEXT, time_us INT, file TEXT, line INT);
CREATE INDEX place ON events (run, host, own);
CREATE TABLE heard (run TEXT, host TEXT, own INT, PRIMARY KEY (run, host, own)) WITHOUT ROWID;
CREATE TABLE silent (run TEXT, host TEXT, own INT, PRIMARY KEY (run, host, own)) WITHOUT ROWID;
BEGIN;
"""


class Stamped(NamedTuple):
    """An event of the log, as its parser finds it."""

    run: str
    host: str
    clock: Clock
    event: str
    time_us: int | None
    where: Where


class StampedEvents:
    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.executescript(_SCHEMA)
        self.find = lru_cache(REMEMBERED)(self._find)

    def add(self, one: Stamped) -> None:
        own, clock = one.clock[one.host], json.dumps(one.clock)
        self._db.execute(
            "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (one.run, one.host, own, clock, one.event, one.time_us, *one.where),
        )

    def runs(self) -> list[str]:
        return [run for (run,) in self._db.execute("SELECT DISTINCT run FROM events ORDER BY 1")]

    def log(self, run: str) -> Iterator[Stamped]:
        """Host by host, each in the order of its own entries."""
        found = self._db.execute("SELECT * FROM events WHERE run = ? ORDER BY 2, 3, rowid", [run])
        yield from map(_stamped, found)

    def _find(self, run: str, host: str, own: int) -> Stamped | None:
        row = self._db.execute(
            "SELECT * FROM events WHERE run = ? AND host = ? AND own = ? LIMIT 1", [run, host, own]
        ).fetchone()
        return None if row is None else _stamped(row)

    def hear(self, run: str, host: str, own: int) -> None:
        """Someone has heard from this event: it was a send."""
        self._db.execute("INSERT OR IGNORE INTO heard VALUES (?, ?, ?)", [run, host, own])

    def keep_silent(self, event: Stamped) -> None:
        """This event heard nothing; if nobody hears from it either, it may have been anything."""
        place = event.run, event.host, event.clock[event.host]
        self._db.execute("INSERT OR IGNORE INTO silent VALUES (?, ?, ?)", place)

    def heard_events(self, run: str) -> Iterator[Stamped]:
        found = self._db.execute(
            "SELECT e.* FROM heard h JOIN events e ON e.rowid = (SELECT min(rowid) FROM events f "
            "WHERE f.run = h.run AND f.host = h.host AND f.own = h.own) WHERE h.run = ?",
            [run],
        )
        yield from map(_stamped, found)

    def silent(self, run: str) -> int:
        [count] = self._db.execute(
            "SELECT count(*) FROM silent s WHERE run = ? AND NOT EXISTS (SELECT 1 FROM heard h "
            "WHERE h.run = s.run AND h.host = s.host AND h.own = s.own)",
            [run],
        ).fetchone()
        return int(count)

    def close(self) -> None:
        self._db.close()


def _stamped(row: tuple[Any, ...]) -> Stamped:
    run, host, _, clock, event, time_us, file, line = row
    return Stamped(run, host, json.loads(clock), event, time_us, Where(file, line))
