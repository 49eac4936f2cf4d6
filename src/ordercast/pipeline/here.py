"""A trace judged in the memory of this process. Neither Spark nor Java has to be there."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ordercast.errors import TraceError
from ordercast.pipeline.described import describe
from ordercast.pipeline.findings import Findings
from ordercast.pipeline.options import Options
from ordercast.pipeline.rows import FLAWS, load
from ordercast.pipeline.saying import JUDGED, lost, once, said
from ordercast.pipeline.source import Source
from ordercast.trace.directory import Trace
from ordercast.trace.parquet import to_table
from ordercast.trace.verdicts import PROPERTIES, Verdict

__all__ = ["Here", "judge_here", "judge_run"]


def judge_here(source: Source, options: Options) -> Here:
    """A trace on disk."""
    events, bad = load([*source.lines, *(group.piece for group in source.groups)])
    found = said(events, source.described, bad, options)
    return Here([*lost(source), *found])


def judge_run(run: Trace) -> tuple[Verdict, ...]:
    """A run that is in memory already, as the oracle judges it, but of any size. Its rows were
    checked when they were made; only what takes several to see can be wrong with them."""
    options = Options(PROPERTIES, listed=False)
    rows = to_table(run.events), describe([run.manifest]), FLAWS.empty_table()
    here = Here(list(said(*rows, options)))
    found = Findings.of(*(here.collect(name) for name in ("verdicts", "runs", "flaws")))
    if (flaw := next(found.places, None)) is not None:
        raise TraceError(f"run {run.manifest.run!r}: {flaw}")
    return found.judgement().verdicts


class Here:
    """What was found, as `Results` has it."""

    def __init__(self, ready: Sequence[tuple[str, pa.Table]]) -> None:
        """in: tables' names, and rows of theirs"""
        self._ready = ready

    def collect(self, name: str) -> pa.Table:
        tables = [table for one, table in self._ready if one == name]
        found = pa.concat_tables([JUDGED[name].empty_table(), *tables])
        return once(found) if name == "flaws" else found

    def release(self) -> None:
        """Nothing is held."""
