"""The members' logs of a run, each where its member wrote it, into one trace that can be judged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from msgspec import Struct

from ordercast.errors import TraceError
from ordercast.trace.directory import MANIFEST
from ordercast.trace.manifest import Manifest
from ordercast.trace.parquet import LogWriter
from ordercast.trace.spans import excerpts_in, log_files, read_log
from ordercast.trace.unrolled import tables_of

__all__ = ["Gathered", "gather", "is_to_be_gathered"]


class Gathered(Struct, frozen=True):
    logs: int
    events: int


def is_to_be_gathered(directory: Path) -> bool:
    """Are there logs here that are newer than the trace, if there is any?"""
    logs = log_files(directory) if directory.is_dir() else []
    if not logs:
        return False
    manifest = directory / MANIFEST
    return not manifest.is_file() or any(
        log.stat().st_mtime_ns > manifest.stat().st_mtime_ns for log in logs
    )


def gather(directory: Path) -> Gathered:
    """Write `events/*.parquet` and `manifest.jsonl` beside the logs. The logs stay."""
    names = sorted({file.name.rsplit("-", 1)[0] for file in log_files(directory)})
    (directory / "events").mkdir(exist_ok=True)
    manifests: dict[str, Manifest] = {}
    payloads: dict[str, dict[str, str]] = {}
    owners: dict[tuple[str, int], str] = {}
    events = 0
    for name in names:
        target = directory / "events" / f"{name}.parquet"
        with LogWriter(target) as writer:
            for file in log_files(directory, name):
                head, spans = read_log(file)
                if owners.setdefault((head.run, head.process), name) != name:
                    raise TraceError(
                        f"{file}: process {head.process} of run {head.run!r} is also in the log "
                        f"of {owners[head.run, head.process]!r}"
                    )
                if head.manifest is not None:
                    manifests[head.run] = Manifest.from_json(head.manifest, where=str(file))
                payloads.setdefault(head.run, {}).update(excerpts_in(spans))
                for table in tables_of(head, spans, position=head.position):
                    writer.write(table)
                    events += len(table)
    for run, texts in payloads.items():
        if texts and run in manifests:
            extra = manifests[run].extra | {"payloads": texts}
            manifests[run] = replace(manifests[run], extra=extra)
    lines = b"".join(manifest.to_json() + b"\n" for manifest in manifests.values())
    (directory / MANIFEST).write_bytes(lines)
    return Gathered(len(names), events)
