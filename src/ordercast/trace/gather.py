"""The members' logs of a run, each where its member wrote it, into one trace that can be judged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
from msgspec import Struct

from ordercast.errors import TraceError
from ordercast.trace.directory import MANIFEST
from ordercast.trace.manifest import Manifest
from ordercast.trace.parquet import LogWriter
from ordercast.trace.spans import excerpts_in, log_files, read_log
from ordercast.trace.unrolled import tables_of
from ordercast.trace.writing import appearing

__all__ = ["Gathered", "gather", "is_to_be_gathered"]

RECORD = ".gathered.json"
"""What the logs were when they were read. Whoever reads traces passes over such names."""


class Gathered(Struct, frozen=True):
    logs: int
    events: int


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


def gather(directory: Path) -> Gathered:
    """Write `events/*.parquet` and `manifest.jsonl` beside the logs. The logs stay."""
    (directory / RECORD).unlink(missing_ok=True)  # until all is written
    files = log_files(directory)
    made_of = {file.name: _State.of(file) for file in files}  # members may write on meanwhile
    logs: dict[str, list[Path]] = {}
    for file in files:
        logs.setdefault(file.name.rsplit("-", 1)[0], []).append(file)
    (directory / "events").mkdir(exist_ok=True)
    manifests: dict[str, Manifest] = {}
    payloads: dict[str, dict[str, str]] = {}
    owners: dict[tuple[str, int], str] = {}
    with_holes: set[str] = set()
    events = 0
    for name, parts in logs.items():
        target = directory / "events" / f"{name}.parquet"
        with LogWriter(target) as writer:
            position = 0
            for file in parts:
                head, spans = read_log(file)
                if owners.setdefault((head.run, head.process), name) != name:
                    raise TraceError(
                        f"{file}: process {head.process} of run {head.run!r} is also in the log "
                        f"of {owners[head.run, head.process]!r}"
                    )
                if head.manifest is not None:
                    manifests[head.run] = Manifest.from_json(head.manifest, where=str(file))
                if head.position != position:
                    with_holes.add(head.run)
                position = head.position + sum(span.count for span in spans)
                payloads.setdefault(head.run, {}).update(excerpts_in(spans))
                for table in tables_of(head, spans, position=head.position):
                    writer.write(table)
                    events += len(table)
    for run, texts in payloads.items():
        if texts and run in manifests:
            extra = manifests[run].extra | {"payloads": texts}
            manifests[run] = replace(manifests[run], extra=extra)
    for run in with_holes & manifests.keys():
        manifests[run] = replace(manifests[run], complete=False)
    lines = b"".join(manifest.to_json() + b"\n" for manifest in manifests.values())
    (directory / MANIFEST).write_bytes(lines)
    with appearing(directory / RECORD) as record:
        record.write_bytes(msgspec.json.encode(made_of))
    return Gathered(len(logs), events)


def _record(directory: Path) -> dict[str, _State]:
    """None of the logs, if nobody can tell: then they are gathered again."""
    try:
        return msgspec.json.decode((directory / RECORD).read_bytes(), type=dict[str, _State])
    except (FileNotFoundError, msgspec.DecodeError):
        return {}
