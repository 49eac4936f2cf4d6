"""The members' logs of a run, each where its member wrote it, into one trace that can be judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from ordercast.errors import TraceError
from ordercast.trace.directory import MANIFEST
from ordercast.trace.manifest import Manifest
from ordercast.trace.parquet import LogWriter, arrow_schema
from ordercast.trace.spans import Head, Span, log_files, read_log

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

__all__ = ["Gathered", "gather", "is_to_be_gathered"]

ROWS_AT_ONCE = 1 << 20


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
                for table in _tables(head, spans):
                    writer.write(table)
                    events += len(table)
    lines = b"".join(manifest.to_json() + b"\n" for manifest in manifests.values())
    (directory / MANIFEST).write_bytes(lines)
    return Gathered(len(names), events)


def _tables(head: Head, spans: Sequence[Span]) -> Iterator[pa.Table]:
    position, start, rows = head.position, 0, 0
    for end, span in enumerate(spans, 1):
        rows += span.count
        if rows >= ROWS_AT_ONCE or end == len(spans):
            yield _table(head, spans[start:end], position)
            position, start, rows = position + rows, end, 0


def _table(head: Head, spans: Sequence[Span], position: int) -> pa.Table:
    """One row per message of each span."""
    import numpy as np
    import pyarrow as pa

    counts = np.array([span.count for span in spans], np.int64)
    total = int(counts.sum())
    place = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    of_span = np.repeat(np.arange(len(spans)), counts)

    def repeated(values: list[int | None]) -> tuple[np.ndarray, np.ndarray]:
        """The value of each row's span, and where there is none."""
        known = np.array([0 if value is None else value for value in values], np.int64)
        missing = np.array([value is None for value in values])
        return np.repeat(known, counts), np.repeat(missing, counts)

    origin, bare = repeated([span.origin for span in spans])
    number, _ = repeated([span.first for span in spans])
    control, free = repeated([span.control_bytes for span in spans])
    each = np.repeat(counts, counts)
    columns = {
        "run": pa.repeat(pa.scalar(head.run), total),
        "process": np.full(total, head.process, np.int32),
        "position": np.arange(position, position + total),
        "kind": pa.array([span.kind for span in spans]).take(of_span),
        "origin": pa.array(origin, mask=bare),
        "number": pa.array(number + place, mask=bare),
        "destinations": _destinations(spans, of_span),
        "time_us": np.repeat(np.array([span.time_us for span in spans], np.int64), counts),
        "bytes": _sizes(spans),
        "control_bytes": pa.array(control // each + (place < control % each), mask=free),
    }
    schema = arrow_schema()
    return pa.table(
        [pa.array(columns[field.name]).cast(field.type) for field in schema], schema=schema
    )


def _sizes(spans: Sequence[Span]) -> pa.Array:
    import pyarrow as pa

    sizes: list[int | None] = []
    for span in spans:
        sizes += span.sizes if isinstance(span.sizes, list) else [span.sizes] * span.count
    return pa.array(sizes, pa.int32())


def _destinations(spans: Sequence[Span], of_span: np.ndarray) -> pa.Array:
    import pyarrow as pa

    kind = pa.list_(pa.int32())
    if all(span.destinations is None for span in spans):
        return pa.nulls(len(of_span), kind)
    lists = pa.array([span.destinations for span in spans], kind)
    return lists.take(of_span)
