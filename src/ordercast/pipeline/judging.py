"""From the rows of whole runs to their verdicts, in one process: what a Spark task calls.

Arrow in, Arrow out; the checks are in `kernels`, the words in `sentences`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.errors import TraceError
from ordercast.pipeline.arrays import Rows, rows_of
from ordercast.pipeline.kernels import findings as f
from ordercast.pipeline.kernels.contradictions import (
    NUMBER_TWICE,
    POSITION_TWICE,
    UNKNOWN_PROCESS,
    contradictions,
)
from ordercast.pipeline.kernels.index import DELIVER, SEND
from ordercast.pipeline.kernels.kernel import WORTH_COMPILING, Bools, Ints
from ordercast.pipeline.kernels.run import PATIENCE, judge_runs
from ordercast.pipeline.rows import FLAWS
from ordercast.pipeline.sentences import WITNESS, Names
from ordercast.pipeline.witnesses import About, witnesses_of
from ordercast.trace.parquet import arrow_schema
from ordercast.trace.verdicts import PROPERTIES

__all__ = [
    "RUNS",
    "SEEN",
    "VERDICTS",
    "VIOLATIONS",
    "Judged",
    "judge_rows",
    "judge_table",
    "warm_up",
]

RUNS = pa.schema(
    {
        "run": pa.string(),
        "names": pa.list_(pa.string()),
        "size": pa.int32(),
        "quiesced": pa.bool_(),
        "complete": pa.bool_(),
    }
)
"""What must be known of a run beside its events. `size`: how many members the manifest names;
null without one, and then the members are those seen."""

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

_CELLS_MOST = 1 << 32
"""Messages × members of one run that one task can hold in memory, at nine bytes each."""


class Judged(NamedTuple):
    verdicts: pa.Table
    violations: pa.Table
    flaws: pa.Table
    """`rows.FLAWS`: rows that contradict others."""
    seen: pa.Table
    """`SEEN`"""


def judge_table(
    events: pa.Table, runs: pa.Table, properties: Collection[str] = PROPERTIES
) -> pa.Table:
    """The verdicts (`VERDICTS`) on whole runs, by run and then property.

    in: events, at least `COLUMNS`, sorted by run, process and position; runs: `RUNS`
    """
    return judge_rows(events, runs, properties).verdicts


def warm_up() -> None:
    """Compiles what `judge_rows` needs for many rows, unless that was done before."""
    if judge_runs.kept and contradictions.kept:
        return
    one = {"run": "", "names": ["p0"], "size": 1, "quiesced": True, "complete": True}
    nothing = arrow_schema().empty_table()
    _judge(nothing, pa.Table.from_pylist([one], RUNS), PROPERTIES, skip=False, rows=WORTH_COMPILING)


def judge_rows(
    events: pa.Table,
    runs: pa.Table,
    properties: Collection[str] = PROPERTIES,
    *,
    skip: bool = False,
) -> Judged:
    """The verdicts, the violations one by one as far as they are listed, and what was seen.

    Rows that contradict others are told of in `flaws`; with `skip` the rest is judged all the
    same, as a log that has holes there, and without it nothing is.
    """
    return _judge(events, runs, properties, skip=skip, rows=len(events))


def _judge(
    events: pa.Table, runs: pa.Table, properties: Collection[str], *, skip: bool, rows: int
) -> Judged:
    """`rows` says how many to be prepared for."""
    check, judge = contradictions.for_rows(rows), judge_runs.for_rows(rows)
    runs = runs.sort_by("run")
    names = runs.column("run").to_pylist()
    table = rows_of(events, names)
    size = pc.fill_null(runs.column("size"), -1).to_numpy().astype(np.int64)
    complete = _bools(runs.column("complete")).copy()
    wrong = check(
        table.run_start, size, table.process, table.position, table.kind, table.number,
        table.everyone, table.dest_start, table.dest,
    )  # fmt: skip
    flaws = FLAWS.empty_table()
    if wrong.any():
        flaws = _contradictions(table, names, size, wrong)
        if not skip:
            return Judged(
                VERDICTS.empty_table(), VIOLATIONS.empty_table(), flaws, SEEN.empty_table()
            )
        complete[np.searchsorted(table.run_start, np.flatnonzero(wrong), side="right") - 1] = False
        table = table.without(wrong != 0)
    _refuse_giants(table, size, names)
    asked = np.array([name in properties for name in PROPERTIES])
    counts, noted, hits, ways, exact = judge(
        table.run_start, size, _bools(runs.column("quiesced")), complete,
        table.process, table.kind, table.origin, table.number,
        table.everyone, table.dest_start, table.dest, asked, PATIENCE,
    )  # fmt: skip
    wanted = np.flatnonzero(asked)
    about = About(table, Names(runs.column("names")), complete, counts, exact)
    return Judged(
        verdicts=_verdicts(
            runs.column("run"), counts[:, wanted], witnesses_of(about, noted, ways, wanted), wanted
        ),
        violations=_violations(table, runs.column("run"), hits[np.isin(hits[:, 1], wanted)]),
        flaws=flaws,
        seen=_seen_runs(table, runs, complete),
    )


def _bools(column: pa.ChunkedArray) -> Bools:
    return np.asarray(column.to_numpy(), np.bool_)


def _contradictions(rows: Rows, names: list[str], size: Ints, wrong: Ints) -> pa.Table:
    told = []
    for row in np.flatnonzero(wrong).tolist():
        r = int(np.searchsorted(rows.run_start, row, side="right")) - 1
        process, members = rows.process[row], int(size[r])
        named = f"but its manifest names {members} process{'es' * (members != 1)}"
        if wrong[row] == POSITION_TWICE:
            words = f"two events of process {process} at position {rows.position[row]}"
        elif wrong[row] == NUMBER_TWICE:
            words = f"two send rows for {process}:{rows.number[row]}"
        elif wrong[row] == UNKNOWN_PROCESS:
            words = f"events of process {process}, {named}"
        else:
            farthest = rows.dest[rows.dest_start[row] : rows.dest_start[row + 1]].max()
            words = f"a message of process {process} for process {farthest}, {named}"
        told.append({"flaw": f"run {names[r]!r} has {words}", "run": names[r]})
    return pa.Table.from_pylist(told, FLAWS)


def _refuse_giants(rows: Rows, size: Ints, names: list[str]) -> None:
    """One sentence instead of a worker that runs out of memory."""
    sends = np.add.reduceat(
        np.append(rows.kind == SEND, False), rows.run_start[:-1], dtype=np.int64
    )
    for r in np.flatnonzero(sends * np.maximum(size, 1) > _CELLS_MOST).tolist():
        raise TraceError(
            f"run {names[r]!r} has {sends[r]} messages among {size[r]} members: "
            "more than one task can hold; judge a part of it"
        )


def _seen_runs(rows: Rows, runs: pa.Table, complete: Bools) -> pa.Table:
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


def _verdicts(runs: pa.ChunkedArray, counts: Ints, witness: pa.Array, wanted: Ints) -> pa.Table:
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


def _violations(rows: Rows, runs: pa.ChunkedArray, hits: Ints) -> pa.Table:
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
