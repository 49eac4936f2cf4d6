"""Runs of a sweep, simulated, and their events as one table."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ordercast.errors import OrdercastError
from ordercast.simulator.recording import simulate_named
from ordercast.sweep.configuration import Configuration
from ordercast.trace.event import Event
from ordercast.trace.parquet import arrow_schema

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Simulated", "events_of"]

_SCHEMA = arrow_schema()
_WITHOUT_RUN = pa.schema([_SCHEMA.field(name) for name in _SCHEMA.names if name != "run"])


class Simulated:
    """One run that is over."""

    def __init__(self, configuration: Configuration, seed: int) -> None:
        self.configuration = configuration
        self.seed = seed
        self.name = configuration.run(seed)
        events: list[Event] = []
        try:
            self.ending = simulate_named(
                *(configuration.plan(seed), configuration.ordering, configuration.dissemination),
                threshold=configuration.threshold,
                run=self.name,
                write=events.append,
            )
        except Exception as error:
            raise OrdercastError(
                f"{self.name} broke off: {type(error).__name__}: {error}; "
                f"see it again: {configuration.replay(seed)}"
            ) from error
        self.columns = _columns(events)
        """The events as they came; without the run's name, which is the same in all of them."""

    def manifest(self) -> str:
        return self.configuration.manifest(self.seed, self.ending).to_json().decode()


def events_of(runs: Sequence[Simulated]) -> tuple[pa.Table, NDArray[np.int64]]:
    """All events (`trace.parquet.arrow_schema`) by process and position in the order of the runs;
    and for each event the number of its run."""
    number = np.repeat(np.arange(len(runs)), [run.columns.num_rows for run in runs])
    table = pa.Table.from_batches([run.columns for run in runs])
    # Rows came in the order of time, so each process's rows are in its own order already.
    process = table["process"].to_numpy()
    order = np.argsort(number * (process.max(initial=0) + 1) + process, kind="stable")
    names = pa.array([run.name for run in runs], pa.string()).take(pa.array(number))
    return table.take(pa.array(order)).add_column(0, _SCHEMA.field("run"), names), number


def _columns(events: Sequence[Event]) -> pa.RecordBatch:
    arrays = [pa.array(list(map(attrgetter(one.name), events)), one.type) for one in _WITHOUT_RUN]
    return pa.RecordBatch.from_arrays(arrays, schema=_WITHOUT_RUN)
