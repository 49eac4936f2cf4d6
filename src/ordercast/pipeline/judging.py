"""From the rows of whole runs to their verdicts, in one process: what a Spark task calls.

Arrow in, Arrow out; the checks are in `kernels`, the words in `sentences`.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.pipeline.arrays import Rows, rows_of
from ordercast.pipeline.judged import (
    SEEN,
    VERDICTS,
    VIOLATIONS,
    Judged,
    seen_runs,
    verdict_table,
    violation_table,
)
from ordercast.pipeline.kernels.contradictions import (
    NUMBER_TWICE,
    POSITION_TWICE,
    UNKNOWN_PROCESS,
    contradictions,
)
from ordercast.pipeline.kernels.index import SEND
from ordercast.pipeline.kernels.kernel import WORTH_COMPILING, Bools, Ints
from ordercast.pipeline.kernels.run import CELLS, PATIENCE, judge_runs
from ordercast.pipeline.rows import FLAWS
from ordercast.pipeline.sentences import Names
from ordercast.pipeline.witnesses import About, witnesses_of
from ordercast.trace.parquet import arrow_schema
from ordercast.trace.verdicts import PROPERTIES

__all__ = ["RUNS", "Judged", "judge_rows", "judge_table", "warm_up"]

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


def judge_table(
    events: pa.Table, runs: pa.Table, properties: Collection[str] = PROPERTIES
) -> pa.Table:
    """The verdicts (`VERDICTS`) on whole runs, by run and then property.

    in: events, at least `COLUMNS`, sorted by run, process and position; runs: `RUNS`
    """
    return judge_rows(events, runs, properties).verdicts


def patience(rows: int) -> str | None:
    """What to tell who waits for so many rows to be judged, if something is compiled first."""
    if rows < WORTH_COMPILING or judge_runs.kept:
        return None
    if judge_runs.keeps:
        return "the checks are compiled first, once on this machine: half a minute"
    return (
        "the checks are compiled first, which takes half a minute each time: there is no place to "
        "keep them (set NUMBA_CACHE_DIR to a directory)"
    )


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
    check = contradictions.heeding_signals(rows)
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
    judge = judge_runs.heeding_signals(max(rows, _cells(table, size)))
    asked = np.array([name in properties for name in PROPERTIES])
    counts, noted, hits, ways, exact = judge(
        table.run_start, size, _bools(runs.column("quiesced")), complete,
        table.process, table.kind, table.origin, table.number,
        table.everyone, table.dest_start, table.dest, asked, PATIENCE, np.array(CELLS),
    )  # fmt: skip
    wanted = np.flatnonzero(asked)
    about = About(table, Names(runs.column("names")), complete, counts, exact)
    return Judged(
        verdicts=verdict_table(
            runs.column("run"), counts[:, wanted], witnesses_of(about, noted, ways, wanted), wanted
        ),
        violations=violation_table(table, runs.column("run"), hits[np.isin(hits[:, 1], wanted)]),
        flaws=flaws,
        seen=seen_runs(table, runs, complete),
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


def _cells(rows: Rows, size: Ints) -> int:
    """Messages × members of all runs: few rows may be work for long, among many members."""
    sends = np.add.reduceat(
        np.append(rows.kind == SEND, False), rows.run_start[:-1], dtype=np.int64
    )
    return int((sends * np.maximum(size, 1)).sum())
