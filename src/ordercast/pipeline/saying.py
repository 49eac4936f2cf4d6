"""What there is to say about some runs, as rows of the result tables.

Arrow in, Arrow out: tasks of Spark's call it, so what a run held and promised is known wherever its
verdicts are; and whoever judges `here`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.pipeline.described import with_bare, with_holes
from ordercast.pipeline.judged import SEEN, VERDICTS, VIOLATIONS, Judged
from ordercast.pipeline.judging import judge_rows
from ordercast.pipeline.kernels.kernel import Bools
from ordercast.pipeline.options import Options
from ordercast.pipeline.rows import FLAWS
from ordercast.pipeline.source import Source
from ordercast.trace.manifest import Manifest
from ordercast.trace.verdicts import ORDERS, PROPERTIES, promised

__all__ = ["JUDGED", "lost", "once", "said", "tables_of"]

JUDGED = {
    "verdicts": VERDICTS.append(pa.field("promised", pa.bool_())),
    "violations": VIOLATIONS,
    "runs": pa.schema(
        [
            *SEEN,
            pa.field("order_held", pa.string()),
            pa.field("promised", pa.list_(pa.string())),
            pa.field("outcome", pa.string()),
            pa.field("manifest", pa.string()),
        ]
    ),
    "flaws": FLAWS,
}
"""The tables that judging fills, and their columns; others are measured (`costs`)."""
_OUTCOMES = pa.array(["holds", "violated", "unknown"])
_BY_DEFAULT = promised(Manifest("", ()), PROPERTIES)


def said(
    events: pa.Table, described: pa.Table, bad: pa.Table, options: Options
) -> Iterator[tuple[str, pa.Table]]:
    """Everything there is to say about some runs. `described` may name runs without events."""
    bad = once(bad)
    if len(bad):
        yield "flaws", bad
        if not options.skip:
            return
    runs = with_bare(described, events, quiesced=options.quiesced)
    runs = with_holes(runs, bad, torn=options.torn)
    judged = judge_rows(events, runs, options.properties, skip=options.skip)
    yield from tables_of(judged, runs, options)


def tables_of(judged: Judged, runs: pa.Table, options: Options) -> list[tuple[str, pa.Table]]:
    """The same of runs that are judged already."""
    tables = _concluded(judged, runs, options.properties, options.demanded, options.excused)
    return [(name, one) for name, one in tables.items() if name != "violations" or options.listed]


def lost(source: Source) -> list[tuple[str, pa.Table]]:
    """Files of which nothing can be read."""
    files = [{"file": file, "flaw": words} for file, words in source.unreadable]
    return [("flaws", pa.Table.from_pylist(files, FLAWS))] if files else []


def _concluded(
    judged: Judged,
    described: pa.Table,
    properties: Collection[str],
    demanded: Collection[str] | None,
    excused: Collection[str] = (),
) -> dict[str, pa.Table]:
    """What was judged, as rows of the tables; those that have none are left out.

    in: described: `DESCRIBED`, in any order; `demanded` is what must hold whatever was promised,
    and `excused` what of that need not be known
    """
    runs = described.take(pc.index_in(judged.seen["run"], described["run"].combine_chunks()))
    wanted = [name for name in PROPERTIES if name in properties]
    binding = _binding(runs["promises"], wanted, demanded)
    told = pc.index_in(judged.verdicts["verdict"], _OUTCOMES).to_numpy().reshape(binding.shape)
    binding &= ~((told == 2) & np.isin(wanted, list(excused)))
    broken, doubtful = (((told == code) & binding).any(axis=1) for code in (1, 2))
    new = {
        "order_held": pa.array(ORDERS).take(pa.array(_rungs(told == 0, wanted))),
        "promised": _lists(binding, wanted),
        "outcome": _OUTCOMES.take(pa.array(np.where(broken, 1, np.where(doubtful, 2, 0)))),
        "manifest": runs["manifest"],
    }
    tables = {
        "flaws": judged.flaws,
        "verdicts": judged.verdicts.append_column("promised", pa.array(binding.ravel())),
        "violations": judged.violations,
        "runs": pa.table([*judged.seen.columns, *new.values()], schema=JUDGED["runs"]),
    }
    return {name: table for name, table in tables.items() if len(table)}


def _binding(
    promises: pa.ChunkedArray, wanted: list[str], demanded: Collection[str] | None
) -> Bools:
    """run × property: must it hold?"""
    size = len(promises)
    if demanded is not None:
        return np.tile(np.array([name in demanded for name in wanted], np.bool_), (size, 1))
    silent = np.asarray(promises.is_null().to_numpy(), np.bool_)
    binding = np.outer(silent, [name in _BY_DEFAULT for name in wanted])
    lengths = pc.fill_null(pc.list_value_length(promises), 0).to_numpy()
    names = pc.list_flatten(promises)
    codes = pc.fill_null(pc.index_in(names, pa.array(wanted, pa.string())), -1).to_numpy()
    binding[np.repeat(np.arange(size), lengths)[codes >= 0], codes[codes >= 0]] = True
    return binding


def _rungs(holds: Bools, wanted: list[str]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """For each run how far up the ladder it held; what was not judged is no gap in it."""
    held = np.ones(len(holds), np.bool_)
    height = np.zeros(len(holds), np.int64)
    for rung, name in enumerate(ORDERS):
        if name in wanted:
            held = held & holds[:, wanted.index(name)]
            height[held] = rung
    return height


def _lists(binding: Bools, wanted: list[str]) -> pa.Array:
    ends = np.concatenate(([0], np.cumsum(binding.sum(axis=1)))).astype(np.int32)
    names = pa.array(wanted, pa.string()).take(pa.array(np.nonzero(binding)[1]))
    return pa.ListArray.from_arrays(pa.array(ends), names)


def once(flaws: pa.Table) -> pa.Table:
    """Row groups at the ends of items are read twice, and so are their flaws. What has no place of
    its own was found by comparing rows, and only once."""
    placed = flaws["file"].is_valid()
    first = flaws.filter(placed).group_by(FLAWS.names).aggregate([]).select(FLAWS.names)
    return pa.concat_tables([first, flaws.filter(pc.invert(placed))])
