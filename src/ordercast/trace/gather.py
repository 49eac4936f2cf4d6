"""The members' logs of a run, each where its member wrote it, into one trace that can be judged."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable, Container, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec
from msgspec import Struct

from ordercast.errors import TraceError
from ordercast.trace.directory import MANIFEST, read_manifests
from ordercast.trace.manifest import Manifest
from ordercast.trace.parquet import LogWriter
from ordercast.trace.spans import excerpts_in, log_files, read_log
from ordercast.trace.unrolled import tables_of
from ordercast.trace.writing import appearing

__all__ = ["Gathered", "gather", "gathered", "home_of", "is_to_be_gathered", "undisturbed"]

RECORD = ".gathered.json"
"""What the logs were when they were read. Whoever reads traces passes over such names."""
_CLOSED = (errno.EROFS, errno.EACCES, errno.EPERM)
_LOOKS = 1000
"""For a moment in which no member writes: some milliseconds, or tens of them."""
_elsewhere: dict[Path, _Elsewhere] = {}
"""What was gathered where something may be written, and is gone with this process."""


class Gathered(Struct, frozen=True):
    logs: int
    events: int


class _Elsewhere(NamedTuple):
    place: TemporaryDirectory[str]
    home: Path
    """Where the logs are."""


class _State(Struct, frozen=True):
    size: int
    mtime_ns: int

    @classmethod
    def of(cls, log: Path) -> _State:
        found = log.stat()
        return cls(found.st_size, found.st_mtime_ns)


def is_to_be_gathered(directory: Path) -> bool:
    """Are there logs here that the trace, if there is any, was not made of as they are now? A log
    that is gone stays in the trace as it was."""
    logs = log_files(directory) if directory.is_dir() else []
    if not logs:
        return False
    made_of = _record(directory) if (directory / MANIFEST).is_file() else {}
    return any(made_of.get(log.name) != _State.of(log) for log in logs)


def gathered(directory: Path, tell: Callable[[Gathered], None] | None = None) -> Path:
    """Where the trace is: here, with the logs that are here put together, if there are any. Where
    nothing may be written, as in an archive, elsewhere, for as long as this process runs."""
    if not is_to_be_gathered(directory):
        return directory
    place = directory
    try:
        with _alone(directory):
            if not is_to_be_gathered(directory):  # any more: another command has done it
                return directory
            found = gather(directory)
    except OSError as error:
        if error.errno not in _CLOSED:
            raise
        elsewhere = TemporaryDirectory(prefix="ordercast-gathered-")
        place = Path(elsewhere.name)
        _elsewhere[place] = _Elsewhere(elsewhere, directory)
        found = gather(directory, place)
    if tell is not None:
        tell(found)
    return place


def home_of(trace: Path) -> Path | None:
    """Where the logs of what was `gathered` elsewhere are. None of a trace that is at home."""
    return _elsewhere[trace].home if trace in _elsewhere else None


def gather(directory: Path, place: Path | None = None) -> Gathered:
    """Write `events/*.parquet` and `manifest.jsonl` beside the logs, or to another place. The logs
    stay."""
    place = directory if place is None else place
    (place / RECORD).unlink(missing_ok=True)  # until all is written
    states, at_once = _moment(directory)  # members may write on meanwhile
    logs: dict[str, list[Path]] = {}
    for file in states:
        logs.setdefault(file.name.rsplit("-", 1)[0], []).append(file)
    (place / "events").mkdir(exist_ok=True)
    manifests = _known(directory)
    if place != directory:
        _link_others(directory / "events", place / "events", logs)
    payloads: dict[str, dict[str, str]] = {}
    owners: dict[tuple[str, int], str] = {}
    with_holes: set[str] = set()
    events = 0
    # They appear together, when all are whole: somebody may be reading those of before.
    with _alone(place / "events"), ExitStack() as whole:
        for name, parts in logs.items():
            fresh = whole.enter_context(appearing(place / "events" / f"{name}.parquet"))
            with LogWriter(fresh) as writer:
                position = 0
                for file in parts:
                    head, spans = read_log(file, size=states[file].size)
                    if owners.setdefault((head.run, head.process), name) != name:
                        raise TraceError(
                            f"{file}: process {head.process} of run {head.run!r} is also in the "
                            f"log of {owners[head.run, head.process]!r}"
                        )
                    if head.manifest is not None:
                        manifests[head.run] = Manifest.from_json(head.manifest, where=str(file))
                    if head.position != position or not at_once:
                        with_holes.add(head.run)
                    position = head.position + sum(span.count for span in spans)
                    payloads.setdefault(head.run, {}).update(excerpts_in(spans))
                    for table in tables_of(head, spans, position=head.position):
                        writer.write(table)
                        events += len(table)
            # Of logs that are as they were, the file is too, whoever was gathered beside them.
            changed = max(states[file].mtime_ns for file in parts)
            os.utime(fresh, ns=(changed, changed))
        for run, texts in payloads.items():
            if texts and run in manifests:
                extra = manifests[run].extra | {"payloads": texts}
                manifests[run] = replace(manifests[run], extra=extra)
        for run in with_holes & manifests.keys():
            manifests[run] = replace(manifests[run], complete=False)
        lines = b"".join(manifest.to_json() + b"\n" for manifest in manifests.values())
        whole.enter_context(appearing(place / MANIFEST)).write_bytes(lines)
    read = {file.name: state for file, state in states.items()}
    with appearing(place / RECORD) as record:
        record.write_bytes(msgspec.json.encode(read))
    return Gathered(len(logs), events)


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Two commands would write the same files: the second waits, mostly for less than a second.
    Where there are no such locks, it does not."""
    with _locked(directory, fcntl.LOCK_EX):
        yield


@contextmanager
def undisturbed(trace: Path) -> Iterator[None]:
    """Within it, nobody puts other events and manifests in the place of those that are there."""
    if not (trace / "events").is_dir():
        yield
        return
    with _locked(trace / "events", fcntl.LOCK_SH):
        yield


@contextmanager
def _locked(directory: Path, how: int) -> Iterator[None]:
    lock = os.open(directory, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(lock, how)
        yield
    finally:
        os.close(lock)


def _moment(directory: Path) -> tuple[dict[Path, _State], bool]:
    """The logs as all of them were at one moment: nothing changed from one look to the next. A
    message is in its sender's log before anyone can deliver it, so then no send is missing; of logs
    that were read one after the other, some would be. False if no such moment was found."""
    before: dict[Path, _State] = {}
    for _ in range(_LOOKS):
        found = {file: _State.of(file) for file in log_files(directory)}
        if found == before:
            return found, True
        before = found
    return before, False


def _known(directory: Path) -> dict[str, Manifest]:
    """By run: what was gathered of logs that are gone stays as it was, if it can be read."""
    with suppress(TraceError):
        return {manifest.run: manifest for manifest in read_manifests(directory)}
    return {}


def _link_others(found: Path, place: Path, logs: Container[str]) -> None:
    for file in found.glob("*.parquet"):
        if file.stem not in logs:
            (place / file.name).symlink_to(file.resolve())


def _record(directory: Path) -> dict[str, _State]:
    """None of the logs, if nobody can tell: then they are gathered again."""
    try:
        return msgspec.json.decode((directory / RECORD).read_bytes(), type=dict[str, _State])
    except (FileNotFoundError, msgspec.DecodeError):
        return {}
