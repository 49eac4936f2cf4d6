"""What every importer takes and gives: a job in, processes' logs out, and a report beside them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ordercast.errors import TraceError, UsageError
from ordercast.trace.event import Event, Kind
from ordercast.trace.manifest import Manifest
from ordercast.trace.verdicts import Verdict

__all__ = [
    "TOO_LARGE",
    "Importer",
    "Job",
    "Log",
    "Options",
    "Portion",
    "Record",
    "Report",
    "Where",
    "compiled",
    "natural",
]

Addressees = Literal["receivers", "others", "everyone"]
PLACES_SHOWN = 5
TOO_LARGE = "a position, time, number or size that is negative or too large"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the user may say about a log. Each format heeds some of it; see `Importer.options`."""

    run: str | None = None
    quiesced: bool = False
    skip_bad_rows: bool = False
    order: str | None = None
    to: Addressees | None = None
    crashed: tuple[str, ...] = ()
    parser: str | None = None
    delimiter: str | None = None
    send: str | None = None
    receive: str | None = None
    level: str = "network"
    map: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    preset: str | None = None
    time_unit: str | None = None
    process_pattern: str | None = None
    dependencies: Path | None = None


class Where(NamedTuple):
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}, {'row' if self.file.endswith('.parquet') else 'line'} {self.line}"


class Portion(NamedTuple):
    """A part of a file, for a task of its own: the lines that begin in a range of bytes, or a range
    of row groups."""

    start: int
    stop: int
    before: int
    """How many lines or rows come before it, so that its own have their right numbers."""


class Record(NamedTuple):
    """One thing that a log says happened, with the log's own names."""

    run: str
    process: str | None
    """None: whoever the message is for, if that is only one."""
    kind: Kind
    where: Where
    message: str | None = None
    place: int | None = None
    """In the process's own order; as it comes, if None."""
    origin: str | None = None
    number: int | None = None
    """If the log has numbers of its own."""
    destinations: tuple[str, ...] | None = None
    time_us: int | None = None
    bytes: int | None = None
    finer: int = 0
    """Which comes first at the same place: of a clock in microseconds, what is below them."""
    span: str | None = None
    """The log's own name for what it tells of, if it may tell of the same thing again."""
    content: int | None = None
    """A digest of all that is told of it: the same if it is only told again."""
    link: int = 0
    """Which of the links of the span it comes of, from 0."""

    @property
    def fits(self) -> bool:
        """Into the columns of a trace."""
        number = 1 if self.number is None else self.number
        counters = (self.place or 0, self.time_us or 0, number - 1)
        return min(counters) >= 0 and max(counters) < 2**63 - 1 and 0 <= (self.bytes or 0) < 2**31


class Log(NamedTuple):
    """The events of one process, in its own order."""

    run: str
    process: int
    events: Iterator[Event]


@dataclass(slots=True)
class Report:
    """What there is to say about an import, besides the events."""

    skip_bad_rows: bool = False
    processes: dict[str, list[str]] = field(default_factory=dict)
    """The names of each run, in index order; whole once the logs have been read."""
    incomplete: set[str] = field(default_factory=set)
    """Runs whose logs have holes."""
    notes: list[str] = field(default_factory=list)
    """What was assumed, and what could not be told; goes into the manifest."""
    bad: int = 0
    places: list[str] = field(default_factory=list)
    """Where the first few unusable rows are, and why."""
    promises: dict[str, list[str]] = field(default_factory=dict)
    """For runs of which only some properties can be told."""
    verdicts: list[Verdict] = field(default_factory=list)
    """On properties that only this format has."""
    ids: dict[tuple[str, int, int], str] = field(default_factory=dict)
    """The messages' own ids, if they are few; otherwise they are in a file beside the trace."""
    audience: dict[str, set[str]] = field(default_factory=dict)
    """Whom broadcasts are for, in runs where not everyone can show what it has delivered."""
    clock: str | None = None
    """What `time_us` is, and what it was good for."""
    by_position: bool = False
    """Does the log say each event's place itself? Then no two of a process should be equal."""

    def unusable(self, where: Where, reason: str) -> None:
        """Refuses the row, or counts it."""
        if not self.skip_bad_rows:
            raise TraceError(f"{where}: {reason}")
        self.bad += 1
        if len(self.places) < PLACES_SHOWN:
            self.places.append(f"{where}: {reason}")

    def note(self, words: str) -> None:
        if words not in self.notes:
            self.notes.append(words)

    def manifests(self, format: str, options: Options, files: Sequence[Path]) -> Iterator[Manifest]:
        for run, names in self.processes.items():
            imported: dict[str, Any] = {"format": format, "files": [file.name for file in files]}
            if self.notes:
                imported["notes"] = self.notes
            if self.bad:
                imported["left_out"] = self.bad
            extra: dict[str, Any] = {"imported": imported}
            if self.clock is not None:
                extra["clock"] = self.clock
            if run in self.promises and options.order is None:
                extra["promises"] = self.promises[run]
            ids = {f"{o}:{n}": text for (name, o, n), text in self.ids.items() if name == run}
            yield Manifest(
                run,
                tuple(names),
                quiesced=options.quiesced,
                complete=run not in self.incomplete and not self.bad,
                order=options.order,
                extra=extra | ({"messages": ids} if ids else {}),
            )


@dataclass(frozen=True, slots=True)
class Job:
    files: tuple[Path, ...]
    options: Options
    report: Report
    scratch: Path
    """A directory for what does not fit into memory."""
    advance: Callable[[int], None] = lambda _: None
    """Told how many bytes have been read."""
    arranged: Callable[[float], None] = lambda _: None
    """Told which share is done of what there is to do when all has been read."""
    ids_beside: Callable[[Iterator[tuple[str, int, int, str]]], None] = lambda _: None
    """Takes the messages' own ids if they are many."""
    portion: Portion | None = None
    """Of the only file, if not all of it is to be read."""
    run: str = field(init=False)
    """Its name, where the log has none: as the user says, or the file's, or the directory's."""

    def __post_init__(self) -> None:
        first = self.files[0]
        own = first.stem if len(self.files) == 1 else first.resolve().parent.name
        object.__setattr__(self, "run", self.options.run or own)


@dataclass(frozen=True, slots=True)
class Importer:
    """One row of the table of formats."""

    name: str
    summary: str
    options: tuple[str, ...]
    """Those of `Options` that it heeds, besides the ones that all of them do."""
    looks: Callable[[Path, list[str]], bool]
    """Could this be it, by the file's name and its first lines?"""
    read: Callable[[Job], Generator[Log, None, None]]
    records: Callable[[Job, Path], Iterator[Record]] | None = None
    """What one file says by itself, if nothing but joining the records of all is left to do."""
    conclude: Callable[[Report, Collection[str]], None] = lambda *_: None
    """Told which kinds of records there were."""
    run_each: bool = False
    """Is each of several files a run of its own?"""
    as_it_comes: bool = False
    """Is everything written as it is read, with nothing to be done then?"""


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """A key that puts p2 before p10."""
    parts = re.findall(r"\d+|\D+", name)
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts)


def compiled(pattern: str, option: str, *, needs: Sequence[str] = ()) -> re.Pattern[str]:
    """A regular expression of the user's; groups may be named as in JavaScript."""
    try:
        expression = re.compile(re.sub(r"\(\?<(?=[A-Za-z_])", "(?P<", pattern), re.MULTILINE)
    except re.error as error:
        raise UsageError(f"{option} {pattern!r} is not a regular expression: {error}") from None
    for name in needs:
        if name not in expression.groupindex:
            raise UsageError(f"{option} {pattern!r} has no group named {name}: write (?<{name}>…)")
    return expression
