"""Spans as rows, whole columns at a time: a row per message of each span. Needs pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ordercast.trace.parquet import arrow_schema
from ordercast.trace.spans import Head, Span

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

__all__ = ["tables_of"]

ROWS_AT_ONCE = 1 << 20


def tables_of(head: Head, spans: Sequence[Span], *, position: int) -> Iterator[pa.Table]:
    """The rows of spans whose first one has this position, a million or so at a time."""
    start, rows = 0, 0
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
