"""Records in any order into the logs of processes: sorted, numbered and joined on disk.

Logs of many processes come mixed up, ids are not numbers, and who got a message is known only at
the end. So records go into a temporary SQLite file, whose sorting and joining need no more memory
for a large log than for a small one.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from ordercast.trace.event import Event
from ordercast.trace.importers.base import Job, Log, Record, Where, natural

__all__ = ["IDS_IN_MANIFEST", "NOBODY", "Store", "gathered"]

IDS_IN_MANIFEST = 1000
NOBODY = "?"
"""The origin of messages that nobody is seen to send and that do not say whose they are."""
AT_ONCE = 10_000
LAST = 2**63 - 1

_SCHEMA = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA temp_store = FILE;
PRAGMA cache_size = -32768;
CREATE TABLE rows (
    seq INTEGER PRIMARY KEY, run INT, process INT, kind TEXT, file INT, line INT, message TEXT,
    place INT, origin INT, number INT, destinations TEXT, time_us INT, bytes INT);
"""
# A record without a process happened where its message was sent to.
_PLACE_ANYWHERE = """
UPDATE rows SET process = (
    SELECT json_extract(s.destinations, '$[0]') FROM rows s
    WHERE s.kind = 'send' AND s.run = rows.run AND s.message = rows.message)
WHERE process IS NULL
"""
_NUMBER = """
CREATE TABLE messages AS SELECT run, message, process AS origin, destinations, number AS own,
    COALESCE(number, row_number() OVER (PARTITION BY run, process ORDER BY place, seq)) AS number
FROM rows WHERE kind = 'send' ORDER BY run, process, place, seq
"""
# Behind those of the same origin that are known to be sent.
_NUMBER_ORPHANS = """
INSERT INTO messages
SELECT o.run, o.message, o.origin, NULL, o.number, COALESCE(o.number, o.nth + COALESCE(
    (SELECT max(number) FROM messages m WHERE m.run = o.run AND m.origin = o.origin), 0))
FROM (
    SELECT run, message, min(origin) AS origin, min(number) AS number,
        row_number() OVER (PARTITION BY run, min(origin) ORDER BY min(seq)) AS nth
    FROM rows WHERE kind IN ('receive', 'deliver')
        AND NOT EXISTS (SELECT 1 FROM rows s
            WHERE s.kind = 'send' AND s.run = rows.run AND s.message = rows.message)
    GROUP BY run, message) o
"""
_ADDRESS = """
CREATE TABLE receivers AS SELECT run, message, json_group_array(DISTINCT process) AS processes
FROM rows WHERE kind IN ('receive', 'deliver') GROUP BY run, message
"""
_EVENTS = """
SELECT r.run, p.position, r.kind, m.origin, m.number,
    CASE WHEN r.kind = 'send' THEN COALESCE(r.destinations, g.processes, '[]') END,
    r.destinations IS NOT NULL, r.time_us, r.bytes
FROM rows r JOIN processes p ON p.id = r.process
    LEFT JOIN messages m ON m.run = r.run AND m.message = r.message
    LEFT JOIN receivers g ON r.kind = 'send' AND g.run = r.run AND g.message = r.message
ORDER BY p.of_run, p.position, r.place, r.seq
"""


class Store:
    def __init__(self, job: Job) -> None:
        self._report = job.report
        self._db = sqlite3.connect(job.scratch / "records.sqlite", isolation_level=None)
        self._db.executescript(_SCHEMA + "BEGIN;")
        self._waiting: list[tuple[Any, ...]] = []
        self._seq = 0
        self._runs: dict[str, int] = {}
        self._names: dict[tuple[int, str], int] = {}
        self._logged: set[int] = set()
        self._files: dict[str, int] = {}
        self._position: dict[int, int] = {}

    @property
    def runs(self) -> tuple[str, ...]:
        return tuple(self._runs)

    def member(self, run: str, name: str) -> int:
        """A process whose log is here, however empty."""
        process = self._process(self._run(run), name)
        self._logged.add(process)
        return process

    def add(self, record: Record) -> None:
        run = self._run(record.run)
        process = None if record.process is None else self.member(record.run, record.process)
        origin = record.origin
        if record.message is not None and record.kind != "send" and origin is None:
            origin = NOBODY
        self._seq += 1
        self._waiting.append(
            (
                *(self._seq, run, process, record.kind),
                *(self._files.setdefault(record.where.file, len(self._files)), record.where.line),
                record.message,
                self._seq if record.place is None else record.place,
                None if origin in (None, NOBODY) else self._process(run, str(origin)),
                record.number,
                self._list(run, record.destinations),
                *(record.time_us, record.bytes),
            )
        )
        if len(self._waiting) >= AT_ONCE:
            self._flush()

    def arrange(self) -> None:
        """Give processes their indices and messages their numbers."""
        self._flush()
        self._db.execute("CREATE INDEX sent ON rows (run, message) WHERE kind = 'send'")
        self._drop_second_sends()
        self._db.execute(_PLACE_ANYWHERE)
        self._drop("process IS NULL", "{message!r} arrives, and nobody is seen to send it")
        self._adopt_orphans()
        self._db.execute(_NUMBER)
        self._db.execute(_NUMBER_ORPHANS)
        self._db.execute("CREATE UNIQUE INDEX numbered ON messages (run, message)")
        self._db.execute(_ADDRESS)
        self._db.execute("CREATE UNIQUE INDEX received ON receivers (run, message)")
        self._index_processes()

    def logs(self, to: str) -> Iterator[Log]:
        names = list(self._runs)
        rows = self._db.execute(_EVENTS)
        for (run, process), log in groupby(rows, key=lambda row: (row[0], row[1])):
            yield Log(names[run], process, self._events(names[run], process, log, to))
        self._db.close()

    def ids(self) -> Iterator[tuple[str, int, int, str]]:
        names = list(self._runs)
        for run, origin, number, text in self._db.execute(
            "SELECT m.run, p.position, m.number, m.message FROM messages m "
            "JOIN processes p ON p.id = m.origin ORDER BY 1, 2, 3"
        ):
            yield names[run], origin, number, text

    def new_ids(self) -> int:
        """How many messages have a number that their log does not have."""
        [count] = self._db.execute("SELECT count(*) FROM messages WHERE own IS NULL").fetchone()
        return int(count)

    def _events(
        self, run: str, process: int, log: Iterable[tuple[Any, ...]], to: str
    ) -> Iterator[Event]:
        members = self._report.processes[run]
        audience = self._audience(members, self._report.audience.get(run))
        for position, row in enumerate(log):
            _, _, kind, origin, number, receivers, given, time_us, size = row
            destinations: tuple[int, ...] | None = None
            if kind == "send" and (given or to == "receivers"):
                found = (self._position[one] for one in json.loads(receivers))
                destinations = tuple(sorted(found))
            elif kind == "send" and to == "others":
                destinations = tuple(one for one in range(len(members)) if one != process)
            elif kind == "send":
                destinations = audience
            origin = None if origin is None else self._position[origin]
            yield Event(
                run, process, position, kind, origin, number, destinations, time_us, size
            )

    @staticmethod
    def _audience(members: list[str], chosen: set[str] | None) -> tuple[int, ...] | None:
        if chosen is None or chosen >= set(members):
            return None
        return tuple(place for place, name in enumerate(members) if name in chosen)

    def _flush(self) -> None:
        marks = ", ".join("?" * 13)
        self._db.executemany(f"INSERT INTO rows VALUES ({marks})", self._waiting)  # noqa: S608
        self._waiting.clear()

    def _run(self, run: str) -> int:
        return self._runs.setdefault(run, len(self._runs))

    def _process(self, run: int, name: str) -> int:
        return self._names.setdefault((run, name), len(self._names))

    def _list(self, run: int, names: tuple[str, ...] | None) -> str | None:
        return None if names is None else json.dumps([self._process(run, name) for name in names])

    def _drop_second_sends(self) -> None:
        self._drop(
            "kind = 'send' AND EXISTS (SELECT 1 FROM rows s WHERE s.kind = 'send' "
            "AND s.run = rows.run AND s.message = rows.message AND s.seq < rows.seq)",
            "{message!r} is sent a second time",
        )

    def _drop(self, which: str, reason: str) -> None:
        """Refuse these rows, or leave them out."""
        files = list(self._files)
        found = f"FROM rows WHERE {which}"
        for file, line, message in self._db.execute(
            f"SELECT file, line, message {found} ORDER BY seq"  # noqa: S608
        ):
            self._report.unusable(Where(files[file], line), reason.format(message=message))
        self._db.execute(f"DELETE {found}")

    def _adopt_orphans(self) -> None:
        """What nobody is seen to send was sent by someone whose log is missing."""
        for run, name in enumerate(self._runs):
            orphans = (
                "run = ? AND kind IN ('receive', 'deliver') AND NOT EXISTS (SELECT 1 FROM rows s "
                "WHERE s.kind = 'send' AND s.run = rows.run AND s.message = rows.message)"
            )
            unknown = self._db.execute(
                f"SELECT count(DISTINCT message), sum(origin IS NULL) FROM rows WHERE {orphans}",  # noqa: S608
                [run],
            ).fetchone()
            if not unknown[0]:
                continue
            if unknown[1]:
                self._db.execute(
                    f"UPDATE rows SET origin = ? WHERE origin IS NULL AND {orphans}",  # noqa: S608
                    [self._process(run, NOBODY), run],
                )
                self._report.incomplete.add(name)
                self._report.note(
                    f"messages without a sender are given to a process named {NOBODY!r}, "
                    "whose log is missing"
                )

    def _index_processes(self) -> None:
        """In the natural order of their names; the unknown sender comes last."""
        self._db.execute("CREATE TABLE processes (id INTEGER PRIMARY KEY, of_run INT, position INT)")
        rows = []
        for of_run, (run_name, run) in enumerate(sorted(self._runs.items())):
            members = [(name, one) for (of, name), one in self._names.items() if of == run]
            members.sort(key=lambda member: (member[0] == NOBODY, natural(member[0])))
            self._report.processes[run_name] = [name for name, _ in members]
            self._position |= {one: position for position, (_, one) in enumerate(members)}
            rows += [(one, of_run, position) for position, (_, one) in enumerate(members)]
            silent = [name for name, one in members if one not in self._logged]
            if silent:
                self._report.incomplete.add(run_name)
                self._report.note(f"there is no log of {', '.join(silent)}")
        self._db.executemany("INSERT INTO processes VALUES (?, ?, ?)", rows)


def gathered(
    job: Job, records: Iterable[Record], *, store: Store | None = None, to: str = "receivers"
) -> Iterator[Log]:
    """The logs that these records make. `to`: whom messages are for that do not say it, if the
    user does not say it either."""
    store = Store(job) if store is None else store
    for record in records:
        store.add(record)
    for run in store.runs:
        for name in job.options.crashed:
            store.add(Record(run, name, "crash", Where("--crashed", 1), place=LAST))
    store.arrange()
    count = store.new_ids()
    if count > IDS_IN_MANIFEST:
        job.ids_beside(store.ids())
    elif count:
        job.report.ids |= {(run, origin, number): text for run, origin, number, text in store.ids()}
    yield from store.logs(job.options.to or to)
