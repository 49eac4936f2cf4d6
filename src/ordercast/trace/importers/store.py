"""Records in any order into the logs of processes: sorted, numbered and joined on disk.

Logs of many processes come mixed up, ids are not numbers, and who got a message is known only at
the end. So records go into a temporary SQLite file, whose sorting and joining need no more memory
for a large log than for a small one.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

from ordercast.errors import TraceError, UsageError
from ordercast.trace.event import Event
from ordercast.trace.importers.base import TOO_LARGE, Job, Log, Record, Where, natural
from ordercast.trace.importers.queries import (
    ADDRESS,
    ADOPT,
    EVENTS,
    FORGET_REPEATED,
    IDS,
    INDEX_SENDS,
    INDEX_SPANS,
    INSERT,
    NEW_IDS,
    NOWHERE,
    NUMBER,
    NUMBER_ORPHANS,
    ORPHANS_OF_NOBODY,
    PLACE,
    PLACED,
    SCHEMA,
    SECOND_SENDS,
    TOLD_OTHERWISE,
)

__all__ = [
    "AT_ONCE",
    "IDS_IN_MANIFEST",
    "LAST",
    "NOBODY",
    "NOBODY_NOTE",
    "TIED_NOTE",
    "Store",
    "full_disks_told",
    "gathered",
    "told_again",
    "told_otherwise",
]

IDS_IN_MANIFEST = 1000
NOBODY = "?"
"""The origin of messages that nobody is seen to send and that do not say whose they are."""
NOBODY_NOTE = (
    f"messages without a sender are given to a process named {NOBODY!r}, whose log is missing"
)
TIED_NOTE = "rows of one process have the same position: these are in the order of the lines"
AT_ONCE = 10_000
LAST = 2**63 - 2
_SORTING = "/var/tmp"  # noqa: S108
"""Where SQLite sorts, if the environment does not say."""


def told_again(count: int) -> str:
    return f"spans that are exported again, unchanged: {count}; each is taken once"


def told_otherwise(span: str) -> str:
    return f"the span {span} is exported a second time, and is not the same as before"


@contextmanager
def full_disks_told(scratch: Path) -> Iterator[None]:
    """Within it, what SQLite says where there is no room for a store becomes one sentence."""
    try:
        yield
    except sqlite3.OperationalError as error:
        # The lower byte is what it is about; the rest says during what.
        code = error.sqlite_errorcode & 0xFF
        if code not in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN):
            raise
        # Sorting takes room as well, and not where the store is.
        sorting = Path(os.environ.get("SQLITE_TMPDIR") or os.environ.get("TMPDIR") or _SORTING)
        temporary = [Path(tempfile.gettempdir()), *([sorting] if sorting.is_dir() else [])]
        places = temporary if _is_under(scratch, temporary[0]) else [scratch.parent, *temporary]
        where = min(places, key=lambda one: shutil.disk_usage(one).free)
        way_out = "set TMPDIR to a directory with more of it"
        if where not in temporary:
            way_out = "write the trace to another disk"
        why = "no room is left" if code == sqlite3.SQLITE_FULL else f"SQLite says '{error}'"
        raise TraceError(
            f"{where}: {why} where the log is put in order: make room there, or {way_out}"
        ) from None


def _is_under(scratch: Path, directory: Path) -> bool:
    """And on the same disk."""
    inside = scratch.resolve().is_relative_to(directory.resolve())
    return inside and scratch.stat().st_dev == directory.stat().st_dev


class Store:
    """`whole`: the log shows everything that happened, so what nobody sends was made up. `before`:
    which share of the work is done between reading the log and putting it in order."""

    def __init__(self, job: Job, *, whole: bool = False, before: float = 0.0) -> None:
        self._report = job.report
        self._arranged, self._before, self._written = job.arranged, before, 0
        self._whole = whole
        self._db = sqlite3.connect(job.scratch / "records.sqlite", isolation_level=None)
        self._db.executescript(SCHEMA)
        self._waiting: list[tuple[Any, ...]] = []
        self._seq = 0
        self._runs: dict[str, int] = {}
        self._names: dict[tuple[int, str], int] = {}
        self._logged: set[int] = set()
        self._files: dict[str, int] = {}
        self._position: dict[int, int] = {}
        self._tied = False

    @property
    def runs(self) -> tuple[str, ...]:
        return tuple(self._runs)

    def member(self, run: str, name: str) -> int:
        """A process whose log is here, however empty."""
        process = self._process(self._run(run), name)
        self._logged.add(process)
        return process

    def mention(self, run: str, name: str) -> None:
        """A process that there is, whether or not its log is here."""
        self._process(self._run(run), name)

    def knows(self, run: str, name: str) -> bool:
        return (self._run(run), name) in self._names

    def add(self, record: Record) -> None:
        if not record.fits:
            self._report.unusable(record.where, TOO_LARGE)
            return
        run = self._run(record.run)
        process = None if record.process is None else self.member(record.run, record.process)
        origin = None if record.origin is None else self._process(run, record.origin)
        self._seq += 1
        self._waiting.append(
            (
                *(self._seq, run, process, record.kind),
                *(self._files.setdefault(record.where.file, len(self._files)), record.where.line),
                record.message,
                self._seq if record.place is None else record.place,
                origin,
                record.number,
                self._list(run, record.destinations),
                *(record.time_us, record.bytes, record.finer),
                *(record.span, record.content, record.link),
            )
        )
        if len(self._waiting) >= AT_ONCE:
            self._flush()

    def arrange(self) -> None:
        """Give processes their indices and messages their numbers."""
        self._flush()
        self._forget_repeated()
        self._db.execute(INDEX_SENDS)
        self._drop(SECOND_SENDS, "{message!r} is sent a second time")
        if self._db.execute(PLACE).rowcount:
            self._logged |= {process for (process,) in self._db.execute(PLACED)}
        self._drop(NOWHERE, "{message!r} arrives, and nobody is seen to send it")
        self._adopt_orphans()
        self._db.execute(NUMBER)
        self._db.execute(NUMBER_ORPHANS)
        self._db.executescript(ADDRESS)
        self._index_processes()

    def logs(self, to: str) -> Iterator[Log]:
        names = list(self._runs)
        rows = self._db.execute(EVENTS)
        for (run, process), log in groupby(rows, key=lambda row: (row[0], row[1])):
            yield Log(names[run], process, self._events(names[run], process, log, to))
        if self._report.by_position and self._tied:
            self._report.note(TIED_NOTE)

    def close(self) -> None:
        self._db.close()

    def ids(self) -> Iterator[tuple[str, int, int, str]]:
        names = list(self._runs)
        for run, origin, number, text in self._db.execute(IDS):
            yield names[run], origin, number, text

    def new_ids(self) -> int:
        """How many messages have a number that their log does not have."""
        [count] = self._db.execute(NEW_IDS).fetchone()
        return int(count)

    def _events(
        self, run: str, process: int, log: Iterable[tuple[Any, ...]], to: str
    ) -> Iterator[Event]:
        members = self._report.processes[run]
        audience = self._audience(members, self._report.audience.get(run))
        last: int | None = None
        for position, row in enumerate(log):
            _, _, kind, origin, number, receivers, given, time_us, size, place = row
            self._tied |= place == last
            last = place
            self._tell_written()
            destinations: tuple[int, ...] | None = None
            if kind == "send" and (given or to == "receivers"):
                found = (self._position[one] for one in json.loads(receivers))
                destinations = tuple(sorted(found))
            elif kind == "send" and to == "others":
                destinations = tuple(one for one in range(len(members)) if one != process)
            elif kind == "send":
                destinations = audience
            origin = None if origin is None else self._position[origin]
            yield Event(run, process, position, kind, origin, number, destinations, time_us, size)

    def _tell_written(self) -> None:
        self._written += 1
        if self._written % AT_ONCE == 0:
            self._arranged(self._before + (1 - self._before) * self._written / self._seq)

    @staticmethod
    def _audience(members: list[str], chosen: set[str] | None) -> tuple[int, ...] | None:
        if chosen is None or chosen >= set(members):
            return None
        return tuple(place for place, name in enumerate(members) if name in chosen)

    def _flush(self) -> None:
        self._db.executemany(INSERT, self._waiting)
        self._waiting.clear()

    def _run(self, run: str) -> int:
        return self._runs.setdefault(run, len(self._runs))

    def _process(self, run: int, name: str) -> int:
        return self._names.setdefault((run, name), len(self._names))

    def _list(self, run: int, names: tuple[str, ...] | None) -> str | None:
        return None if names is None else json.dumps([self._process(run, name) for name in names])

    def _drop(self, which: str, reason: str) -> None:
        """Refuse these rows, or leave them out."""
        files = list(self._files)
        for seq, file, line, message in self._db.execute(which).fetchall():
            self._report.unusable(Where(files[file], line), reason.format(message=message))
            self._db.execute("DELETE FROM rows WHERE seq = ?", [seq])

    def _forget_repeated(self) -> None:
        """What is told twice in the same words happened once."""
        self._db.execute(INDEX_SPANS)
        files = list(self._files)
        for seq, file, line, span, link in self._db.execute(TOLD_OTHERWISE).fetchall():
            if link == 0:
                self._report.unusable(Where(files[file], line), told_otherwise(span))
            self._db.execute("DELETE FROM rows WHERE seq = ?", [seq])
        repeated = sum(link == 0 for (link,) in self._db.execute(FORGET_REPEATED))
        if repeated:
            self._report.note(told_again(repeated))

    def _adopt_orphans(self) -> None:
        """What nobody is seen to send was sent by someone whose log is missing."""
        for (run,) in self._db.execute(ORPHANS_OF_NOBODY).fetchall():
            self._db.execute(ADOPT, [self._process(run, NOBODY), run])
            if self._whole:
                continue
            self._report.incomplete.add(self.runs[run])
            self._report.note(NOBODY_NOTE)

    def _index_processes(self) -> None:
        """In the natural order of their names; the unknown sender comes last, if it is a member."""
        rows = []
        for of_run, (run_name, run) in enumerate(sorted(self._runs.items())):
            members = [(name, one) for (of, name), one in self._names.items() if of == run]
            members.sort(key=lambda member: (member[0] == NOBODY, natural(member[0])))
            self._position |= {one: position for position, (_, one) in enumerate(members)}
            rows += [(one, of_run, position) for position, (_, one) in enumerate(members)]
            if self._whole and members[-1][0] == NOBODY:
                members.pop()
            self._report.processes[run_name] = [name for name, _ in members]
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
    try:
        yield from _logs(job, records, store, to)
    finally:
        store.close()


def _logs(job: Job, records: Iterable[Record], store: Store, to: str) -> Iterator[Log]:
    for record in records:
        store.add(record)
    for name in job.options.crashed:
        runs = [run for run in store.runs if store.knows(run, name)]
        if not runs:
            raise UsageError(f"--crashed {name}: there is no process of that name")
        for run in runs:
            store.add(Record(run, name, "crash", Where("--crashed", 1), place=LAST))
    store.arrange()
    count = store.new_ids()
    if count > IDS_IN_MANIFEST:
        job.ids_beside(store.ids())
    elif count:
        job.report.ids |= {(run, origin, number): text for run, origin, number, text in store.ids()}
    yield from store.logs(job.options.to or to)
