"""A trace on disk: a directory with `manifest.jsonl` and `events.jsonl` or `events/*.parquet`,
or just one events file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Literal

from ordercast.errors import TraceError
from ordercast.trace.event import Event
from ordercast.trace.jsonl import encode_events, read_jsonl, write_jsonl
from ordercast.trace.manifest import Manifest
from ordercast.trace.parquet import read_parquet, require_pyarrow, write_parquet
from ordercast.trace.writing import named, naming

__all__ = [
    "Format",
    "Trace",
    "TraceWriter",
    "event_files",
    "read_events",
    "read_manifests",
    "require_file",
]

Format = Literal["jsonl", "parquet"]
MANIFEST = "manifest.jsonl"
_SUFFIXES = (".jsonl", ".parquet")
_PACKED = re.compile(
    r".*\.(jsonl|parquet)\.(gz|zst|zstd|bz2|xz|lz4|br|snappy|zip|z)", re.IGNORECASE
)


def event_files(path: Path) -> list[Path]:
    """Every events file of a trace, in a fixed order. What looks like one and would not be read is
    refused: without its events, the verdict would be on another trace."""
    if path.is_file():
        _refuse_packed(path, "unpack it")
        if path.suffix not in _SUFFIXES:
            raise TraceError(
                f"{path}: an events file ends in .jsonl or .parquet; rows of another kind, such as "
                "CSV, are taken with --format table, and other systems' logs with --format auto"
            )
        return [path]
    if not path.is_dir():
        if path.exists():
            raise TraceError(f"{path}: neither a file nor a directory")
        raise TraceError(f"{path}: there is no such file or directory")
    files = _files(path)
    for file in sorted(path.glob("events.*")):
        _refuse_packed(file, "unpack it, or move it away" if files else "unpack it")
    if not files:
        raise TraceError(
            f"{path}: not a trace: it has neither events.jsonl nor events/*.parquet in it, and no "
            f"logs of members{_elsewhere(path)}"
        )
    return files


def _files(path: Path) -> list[Path]:
    single, parts = path / "events.jsonl", path / "events"
    found = []
    for file in sorted(parts.iterdir()) if parts.is_dir() else ():
        if _is_hidden(file.name):
            continue
        if file.suffix in _SUFFIXES:
            found.append(file)
        elif file.is_dir():
            _refuse_nested(file, parts)
        else:
            _refuse_packed(file, "unpack it, or move it away")
    found.sort(key=lambda file: file.suffix)
    return [single, *found] if single.exists() or single.is_symlink() else found


def _is_hidden(name: str) -> bool:
    """As Spark and Arrow see it: what is not finished, or is about the other files."""
    return name[0] in "._"


def _refuse_packed(file: Path, way_out: str) -> None:
    if _PACKED.fullmatch(file.name):
        raise TraceError(f"{file}: it is compressed, so its events are not read: {way_out}")


def _refuse_nested(directory: Path, parts: Path) -> None:
    for folder, folders, names in os.walk(directory):
        folders[:] = sorted(name for name in folders if not _is_hidden(name))
        for name in sorted(name for name in names if not _is_hidden(name)):
            if Path(name).suffix in _SUFFIXES or _PACKED.fullmatch(name):
                raise TraceError(
                    f"{Path(folder, name)}: it is in a directory of its own, so its events are not "
                    f"read: move it to {parts}, or away"
                )


def require_file(file: Path) -> None:
    """Raises a `TraceError` for what only has the name of an events file."""
    if file.is_dir():
        raise TraceError(
            f"{file}: it is a directory, and not a file of events: move what is in it to "
            f"{file.parent}, or move it away"
        )
    if not file.is_file():
        raise TraceError(f"{file}: it is not a file that can be read: move it away")


def _elsewhere(path: Path) -> str:
    """What to do with files that are not where they belong."""
    if any(path.glob("*.parquet")) or any(path.glob("*.csv")):
        return (
            f"; put Parquet files with a trace's columns into {path / 'events'}, or let --format "
            "table read what lies there"
        )
    if traces := sorted(filter(_is_trace, path.glob("*/")), key=_by_number):
        found = traces[0].name if len(traces) == 1 else f"{traces[0].name} to {traces[-1].name}"
        return (
            f"; below it are traces of their own, as of a replica's generations ({found}): name "
            f"one, such as {traces[-1]}"
        )
    return ""


def _is_trace(path: Path) -> bool:
    kinds = "*-[0-9][0-9][0-9][0-9].spans", "events.jsonl", "events/*.parquet", "events/*.jsonl"
    return any(any(path.glob(kind)) for kind in kinds)


def _by_number(path: Path) -> tuple[int, str]:
    """The tenth after the ninth."""
    return int(path.name) if path.name.isdecimal() else -1, path.name


def read_events(path: Path) -> Iterator[Event]:
    for file in event_files(path):
        require_file(file)
        yield from read_jsonl(file) if file.suffix == ".jsonl" else read_parquet(file)


def read_manifests(path: Path) -> list[Manifest]:
    """The runs' manifests; none for a bare events file."""
    file = path / MANIFEST
    if not path.is_dir() or not (file.exists() or file.is_symlink()):
        for packed in filter(lambda one: _PACKED.fullmatch(one.name), path.glob(f"{MANIFEST}.*")):
            raise TraceError(f"{packed}: it is compressed, so it is not read: unpack it")
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
    (Parquet); the manifests are written on close, when it is known how the runs ended.

    Left by an exception before any manifest was added, it takes back what it has written, for
    nobody could tell it from a whole trace; and so it does if it cannot write all of it."""

    def __init__(self, directory: Path, *, format: Format = "jsonl") -> None:
        if format == "parquet":
            require_pyarrow()  # now, and not when all the events are there
        if directory.exists() and not directory.is_dir():
            raise TraceError(f"{directory}: it is a file: name a directory to write the trace to")
        self._made = not directory.exists()
        directory.mkdir(parents=True, exist_ok=True)
        if any((directory / name).exists() for name in (MANIFEST, "events.jsonl", "events")):
            raise TraceError(
                f"{directory}: there is a trace here already: choose another directory"
            )
        self.directory = directory
        self._manifests: list[Manifest] = []
        self._rows: list[Event] = []
        self._own = directory / "events.jsonl"
        if format == "parquet":
            self._own = directory / "events" / "part-0.parquet"
        with naming(self._own):
            self._file = self._own.open("xb") if format == "jsonl" else None

    def write(self, event: Event) -> None:
        if self._file is None:
            self._rows.append(event)
            return
        try:
            write_jsonl(event, self._file)
        except OSError as error:
            raise named(error, self._own) from None

    def write_all(self, events: Iterable[Event]) -> None:
        """The same for many, in half the time."""
        if self._file is not None:
            with naming(self._own):
                self._file.write(encode_events(events))
        else:
            self._rows.extend(events)

    def add_manifest(self, manifest: Manifest) -> None:
        """Of a run whose events are all here: whoever has them elsewhere may need them no more."""
        if self._file is not None:
            with naming(self._own):
                self._file.flush()
        self._manifests.append(manifest)

    def close(self) -> None:
        try:
            with naming(self._own):
                if self._file is not None:
                    self._file.close()
                else:
                    self._own.parent.mkdir()
                    write_parquet(self._rows, self._own)
            with naming(self.directory / MANIFEST):
                lines = b"".join(manifest.to_json() + b"\n" for manifest in self._manifests)
                (self.directory / MANIFEST).write_bytes(lines)
        except BaseException:
            self._take_back()
            raise

    def _take_back(self) -> None:
        if self._file is not None:
            with suppress(OSError):  # what it could not write, it tries once more
                self._file.close()
        for file in (self._own, self.directory / MANIFEST):
            file.unlink(missing_ok=True)
        if self._file is None:
            with suppress(OSError):
                self._own.parent.rmdir()
        if self._made:
            with suppress(OSError):  # there is something of somebody else's in it
                self.directory.rmdir()

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None or self._manifests:
            self.close()
        else:
            self._take_back()


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
