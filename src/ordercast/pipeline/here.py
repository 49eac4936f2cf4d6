"""A trace judged in the memory of this process. Neither Spark nor Java has to be there."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ordercast.pipeline.options import Options
from ordercast.pipeline.rows import load
from ordercast.pipeline.saying import JUDGED, lost, once, said
from ordercast.pipeline.source import Source

__all__ = ["Here", "judge_here"]


def judge_here(source: Source, options: Options) -> Here:
    """A trace on disk."""
    events, bad = load([*source.lines, *(group.piece for group in source.groups)])
    found = said(events, source.described, bad, options)
    return Here([*lost(source), *found])


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
