"""Jepsen histories of broadcast workloads, in EDN.

Each client's session is a process. It sends when it invokes `:broadcast` (or `:add`), unless the
operation failed for certain, and has delivered what its reads show; see `sightings.py`. A client
whose last operation ended in `:info` has crashed. Those that never read owe nothing.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from ordercast.trace.importers.base import Importer, Job, Log, Record, Where
from ordercast.trace.importers.edn import EdnSet, read_edn
from ordercast.trace.importers.lines import numbered_lines
from ordercast.trace.importers.sightings import Sightings
from ordercast.trace.importers.store import Store, gathered

__all__ = ["JEPSEN"]

BROADCASTS = ("broadcast", "add")


def read(job: Job) -> Generator[Log, None, None]:
    job.report.note(
        "deliveries are what reads show for the first time; what is new together is taken in the "
        "order of the broadcasts"
    )
    store = Store(job, whole=True)
    yield from gathered(job, _records(job, store), store=store, to="everyone")


def _records(job: Job, store: Store) -> Iterator[Record]:
    for file in job.files:
        run = job.run if len(job.files) == 1 else file.stem
        yield from _History(job, store, run).records(file)


class _History:
    def __init__(self, job: Job, store: Store, run: str) -> None:
        self._job, self._store, self._run = job, store, run
        self._sightings = Sightings(job.report)
        self._open: dict[str, Record] = {}
        """The broadcast that a client has invoked and not completed."""
        self._ended: dict[str, tuple[Where, bool]] = {}
        """Where each client's last operation ended, and whether in a crash."""
        self._readers: set[str] = set()
        self._place = 0

    def records(self, file: Path) -> Iterator[Record]:
        # Whoever holds an error of the EDN reader holds its lines too, and they would stay open.
        with closing(numbered_lines(self._job, file, blank=True)) as lines:
            yield from self._ops(file, (text + "\n" for _, text in lines))
        yield from self._open.values()
        for client, (where, crashed) in self._ended.items():
            if crashed:
                yield Record(self._run, client, "crash", where, place=self._place + 1)
        self._job.report.audience[self._run] = self._readers

    def _ops(self, file: Path, lines: Iterable[str]) -> Iterator[Record]:
        def refuse(line: int, reason: str) -> None:
            self._job.report.unusable(Where(str(file), line), reason)

        for line, op in read_edn(lines, name=str(file), refuse=refuse):
            self._place += 1
            where = Where(str(file), line)
            if not isinstance(op, dict) or not {"type", "f", "process"} <= op.keys():
                expected = "expected an operation with :type, :f and :process"
                self._job.report.unusable(where, f"{expected}, and found {op!r:.60}")
            elif isinstance(op["process"], int):
                yield from self._op(where, f"c{op['process']}", op)

    def _op(self, where: Where, client: str, op: dict[str, Any]) -> Iterator[Record]:
        self._store.member(self._run, client)
        stage, time = op["type"], op.get("time")
        time_us = time // 1000 if isinstance(time, int) and time >= 0 else None
        if stage != "invoke":
            self._ended[client] = (where, stage == "info")
        if op["f"] in BROADCASTS:
            if stage == "invoke":
                message = str(op.get("value"))
                self._sightings.broadcast(message)
                self._open[client] = Record(
                    self._run, client, "send", where, message, self._place, time_us=time_us
                )
            elif (sent := self._open.pop(client, None)) is not None and stage != "fail":
                yield sent
        elif op["f"] == "read" and stage == "ok":
            yield from self._read(where, client, op.get("value"), time_us)

    def _read(self, where: Where, client: str, value: Any, time_us: int | None) -> Iterator[Record]:
        if not isinstance(value, tuple | EdnSet):
            self._job.report.unusable(where, f"a read of {value!r:.60}, not of many values")
            return
        self._readers.add(client)
        found = self._sightings.read(self._run, client, [*map(str, value)], where, time_us)
        for record in found:
            yield record._replace(place=self._place)


def looks(file: Path, head: list[str]) -> bool:
    text = " ".join(head)
    return text.startswith(("{", "[", "(", "#", ";")) and ":process " in text and ":type " in text


JEPSEN = Importer(
    "jepsen",
    "Jepsen histories of broadcast workloads, EDN",
    ("to", "crashed"),
    looks,
    read,
    run_each=True,
)
