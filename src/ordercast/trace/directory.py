"""A trace on disk: a directory with `manifest.jsonl` and `events.jsonl` or `events/*.parquet`,
or just one events file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Literal

from ordercast.errors import TraceError
from ordercast.trace.event import Event
from ordercast.trace.jsonl import encode_events, read_jsonl, write_jsonl
from ordercast.trace.manifest import Manifest
from ordercast.trace.parquet import read_parquet, require_pyarrow, write_parquet

__all__ = [
    "Format",
    "Trace",
    "TraceWriter",
    "event_files",
    "read_events",
    "read_manifests",
]

Format = Literal["jsonl", "parquet"]
MANIFEST = "manifest.jsonl"


def event_files(path: Path) -> list[Path]:
    """Every events file of a trace, in a fixed order."""
    if path.is_file():
        if path.suffix not in (".jsonl", ".parquet"):
            raise TraceError(
                f"{path}: an events file ends in .jsonl or .parquet; rows of another kind, such as "
                "CSV, are taken with --format table, and other systems' logs with --format auto"
            )
        return [path]
    if not path.is_dir():
        if path.exists():
            raise TraceError(f"{path}: neither a file nor a directory")
        raise TraceError(f"{path}: there is no such file or directory")
    files = [path / "events.jsonl"] if (path / "events.jsonl").is_file() else []
    files += sorted((path / "events").glob("*.jsonl")) + sorted((path / "events").glob("*.parquet"))
    if not files:
        raise TraceError(
            f"{path}: not a trace: it has neither events.jsonl nor events/*.parquet in it, and no "
            f"logs of members{_elsewhere(path)}"
        )
    return files


def _elsewhere(path: Path) -> str:
    """What to do with files that are not where they belong."""
    if any(path.glob("*.parquet")) or any(path.glob("*.csv")):
        return (
            f"; put Parquet files with a trace's columns into {path / 'events'}, or let --format "
            "table read what lies there"
        )
    return ""


def read_events(path: Path) -> Iterator[Event]:
    for file in event_files(path):
        yield from read_jsonl(file) if file.suffix == ".jsonl" else read_parquet(file)


def read_manifests(path: Path) -> list[Manifest]:
    """The runs' manifests; none for a bare events file."""
    file = path / MANIFEST
    if not path.is_dir() or not (file.exists() or file.is_symlink()):
        return []
    if not file.is_file():
        raise TraceError(f"{file}: not a file: without the manifest much would be unknown")
    manifests: dict[str, Manifest] = {}
    with file.open("rb") as lines:
        for row, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            where = f"{file}, line {row}"
            manifest = Manifest.from_json(line, where=where)
            if manifest.run in manifests:
                raise TraceError(f"{where}: run {manifest.run!r} has a manifest line already")
            manifests[manifest.run] = manifest
    return list(manifests.values())


class TraceWriter:
    """Writes a trace directory. Events go to disk as they come (JSON lines) or at the end
    (Parquet); the manifests are written on close, when it is known how the runs ended."""

    def __init__(self, directory: Path, *, format: Format = "jsonl") -> None:
        if format == "parquet":
            require_pyarrow()  # now, and not when all the events are there
        directory.mkdir(parents=True, exist_ok=True)
        if any((directory / name).exists() for name in (MANIFEST, "events.jsonl", "events")):
            raise TraceError(
                f"{directory}: there is a trace here already: choose another directory"
            )
        self.directory = directory
        self._manifests: list[Manifest] = []
        self._rows: list[Event] = []
        self._file = (directory / "events.jsonl").open("xb") if format == "jsonl" else None

    def write(self, event: Event) -> None:
        if self._file is not None:
            write_jsonl(event, self._file)
        else:
            self._rows.append(event)

    def write_all(self, events: Iterable[Event]) -> None:
        """The same for many, in half the time."""
        if self._file is not None:
            self._file.write(encode_events(events))
        else:
            self._rows.extend(events)

    def add_manifest(self, manifest: Manifest) -> None:
        self._manifests.append(manifest)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        else:
            (self.directory / "events").mkdir()
            write_parquet(self._rows, self.directory / "events" / "part-0.parquet")
        lines = b"".join(manifest.to_json() + b"\n" for manifest in self._manifests)
        (self.directory / MANIFEST).write_bytes(lines)

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class Trace:
    """One small run in memory: for the oracle, for drawing, for tests."""

    manifest: Manifest
    members: tuple[int, ...]
    """Every process of the run. Without a manifest, the members are those seen."""
    events: tuple[Event, ...]
    """Each process's events together, in its own order."""
    described: bool = True
    """Is there a manifest, so that nobody else can have been a member?"""

    @classmethod
    def load(cls, path: Path, *, quiesced: bool = False) -> list[Trace]:
        """Every run of a trace on disk, by name. `quiesced` is for runs without a manifest, and for
        those whose manifests do not say."""
        manifests = {
            one.run: replace(one, quiesced=quiesced, silent=False) if one.silent else one
            for one in read_manifests(path)
        }
        events: dict[str, list[Event]] = {run: [] for run in manifests}
        for event in read_events(path):
            events.setdefault(event.run, []).append(event)
        return [
            cls.of(manifests[run], rows)
            if run in manifests
            else cls.bare(run, rows, quiesced=quiesced)
            for run, rows in sorted(events.items())
        ]

    @classmethod
    def of(cls, manifest: Manifest, events: Iterable[Event]) -> Trace:
        rows = tuple(sorted(events, key=lambda event: (event.process, event.position)))
        return cls(manifest, tuple(range(len(manifest.processes))), rows)

    @classmethod
    def bare(cls, run: str, events: Iterable[Event], *, quiesced: bool = False) -> Trace:
        """A run that nobody wrote a manifest for, nor names: its processes may be any numbers."""
        rows = list(events)
        seen = tuple(sorted({event.process for event in rows}))
        trace = cls.of(Manifest(run, (), quiesced=quiesced), rows)
        return replace(trace, members=seen, described=False)
