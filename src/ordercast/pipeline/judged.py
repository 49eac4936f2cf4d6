"""What comes out of judging some runs, as tables."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ordercast.pipeline.arrays import Rows
from ordercast.pipeline.kernels import findings as f
from ordercast.pipeline.kernels.index import DELIVER, SEND
from ordercast.pipeline.kernels.kernel import Bools, Ints
from ordercast.pipeline.sentences import WITNESS
from ordercast.trace.verdicts import PROPERTIES

__all__ = [
    "SEEN",
    "VERDICTS",
    "VIOLATIONS",
    "Judged",
    "seen_runs",
    "verdict_table",
    "violation_table",
]

VERDICTS = pa.schema(
    {
        "run": pa.string(),
        "property": pa.string(),
        "verdict": pa.string(),
        "checked": pa.int64(),
        "violations": pa.int64(),
        "witness": WITNESS,
    }
)
VIOLATIONS = pa.schema(
    {
        "run": pa.string(),
        "property": pa.string(),
        "process": pa.int32(),
        "position": pa.int64(),
        "origin": pa.int32(),
        "number": pa.int64(),
    }
)
"""`position` is null where something was not done at all."""

SEEN = pa.schema(
    {
        "run": pa.string(),
        "names": pa.list_(pa.string()),
        "quiesced": pa.bool_(),
        "complete": pa.bool_(),
        "events": pa.int64(),
        "messages": pa.int64(),
        "deliveries": pa.int64(),
    }
)
"""What was judged, run by run."""


class Judged(NamedTuple):
    verdicts: pa.Table
    violations: pa.Table
    flaws: pa.Table
    """`rows.FLAWS`: rows that contradict others."""
    seen: pa.Table
    """`SEEN`"""


def seen_runs(rows: Rows, runs: pa.Table, complete: Bools) -> pa.Table:
    before = [np.concatenate(([0], np.cumsum(rows.kind == kind))) for kind in (SEND, DELIVER)]
    sends, deliveries = (np.diff(count[rows.run_start]) for count in before)
    columns = [
        runs.column("run"),
        runs.column("names"),
        runs.column("quiesced"),
        pa.array(complete),
        pa.array(np.diff(rows.run_start)),
        pa.array(sends),
        pa.array(deliveries),
    ]
    return pa.Table.from_arrays(columns, schema=SEEN)


def verdict_table(runs: pa.ChunkedArray, counts: Ints, witness: pa.Array, wanted: Ints) -> pa.Table:
    size = len(counts) * len(wanted)
    run = runs.take(pa.array(np.repeat(np.arange(len(counts)), len(wanted))))
    which = pa.array(np.tile(np.arange(len(wanted)), len(counts)))
    property_names = pa.array([PROPERTIES[p] for p in wanted]).take(which)
    flat = counts.reshape(size, 3)
    outcome = np.where(flat[:, f.VIOLATIONS] > 0, 1, np.where(flat[:, f.DOUBTS] > 0, 2, 0))
    verdict = pa.array(["holds", "violated", "unknown"]).take(pa.array(outcome))
    columns = [
        run,
        property_names,
        verdict,
        pa.array(flat[:, f.CHECKED]),
        pa.array(flat[:, f.VIOLATIONS]),
        witness,
    ]
    return pa.Table.from_arrays(columns, schema=VERDICTS)


def violation_table(rows: Rows, runs: pa.ChunkedArray, hits: Ints) -> pa.Table:
    """in: run, property, process, row of the deed or -1, a row that tells of the message"""
    deed, about = hits[:, 3], hits[:, 4]
    positions = rows.position[np.maximum(deed, 0)] if len(hits) else deed
    columns = [
        runs.take(pa.array(hits[:, 0])),
        pa.array(PROPERTIES).take(pa.array(hits[:, 1])),
        pa.array(hits[:, 2].astype(np.int32)),
        pa.array(positions, mask=deed < 0),
        pa.array(rows.origin[about]),
        pa.array(rows.number[about]),
    ]
    return pa.Table.from_arrays(columns, schema=VIOLATIONS)
