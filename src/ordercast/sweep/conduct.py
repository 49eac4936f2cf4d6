"""A whole sweep: what is done already, what is left to do, and the table of it all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.sweep.block import WORK_MAX, Block, Results, cut, work_off
from ordercast.sweep.configuration import Configuration
from ordercast.sweep.store import Store
from ordercast.sweep.tally import Row, Tally, to_table

__all__ = ["Perform", "conduct"]

Perform = Callable[[Callable[[Block], Results], Sequence[Block]], Iterable[Results]]
"""Does the work of every block, and hands over the results as they come."""


def conduct(
    configurations: Sequence[Configuration],
    seeds: range,
    *,
    perform: Perform,
    output: Path | None = None,
    traces: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
    work_max: int = WORK_MAX,
) -> list[Row]:
    """One row per configuration, over all seeds.

    What is in `output` already is not simulated again. `progress` hears how many runs are done,
    and how many there are.
    """
    ledger = _Ledger(configurations, seeds)
    total = len(configurations) * len(seeds)
    with nullcontext() if output is None else Store(output, traces=traces) as store:
        for runs in () if store is None else store.done():
            ledger.add(runs)
        progress(ledger.done, total)
        for results in perform(partial(work_off, traces=traces), cut(ledger.left(), work_max)):
            if store is not None:
                store.add(results)
            ledger.add(pq.read_table(pa.BufferReader(results.runs)))
            progress(ledger.done, total)
        rows = ledger.rows()
        if store is not None:
            store.finish(to_table(rows))
    return rows


class _Ledger:
    """Which of the runs that were asked for are done, and their sums."""

    def __init__(self, configurations: Sequence[Configuration], seeds: range) -> None:
        self._seeds = seeds
        self._tallies = {one.key: Tally(one) for one in configurations}
        self._done: dict[str, set[int]] = {key: set() for key in self._tallies}

    @property
    def done(self) -> int:
        return sum(map(len, self._done.values()))

    def add(self, runs: pa.Table) -> None:
        """Counts each run once; what was not asked for is left aside."""
        wanted: dict[str, list[int]] = {}
        keys, seeds = runs["configuration"].to_pylist(), runs["seed"].to_pylist()
        for place, (key, seed) in enumerate(zip(keys, seeds, strict=True)):
            if key in self._done and seed in self._seeds and seed not in self._done[key]:
                self._done[key].add(seed)
                wanted.setdefault(key, []).append(place)
        for key, places in wanted.items():
            self._tallies[key].add(runs.take(pa.array(places)))

    def left(self) -> list[tuple[Configuration, list[int]]]:
        return [
            (tally.configuration, [seed for seed in self._seeds if seed not in self._done[key]])
            for key, tally in self._tallies.items()
        ]

    def rows(self) -> list[Row]:
        return [tally.row() for tally in self._tallies.values()]
