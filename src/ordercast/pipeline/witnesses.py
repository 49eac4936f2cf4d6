"""What the kernels note of runs, as witnesses with their words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ordercast.pipeline.arrays import Rows
from ordercast.pipeline.kernels import findings as f
from ordercast.pipeline.kernels.kernel import Bools, Ints
from ordercast.pipeline.sentences import WITNESS, Names, Seen, Steps, cycles, witnesses
from ordercast.trace.verdicts import PROPERTIES

__all__ = ["About", "witnesses_of"]

_OF_TWO_MESSAGES = (f.FIFO, f.CAUSAL, f.TOTAL_PAIRWISE, f.TOTAL_GAP_FREE)


class About(NamedTuple):
    """What a witness is of, beside its numbers."""

    rows: Rows
    names: Names
    complete: Bools
    counts: Ints
    exact: Bools


def witnesses_of(about: About, noted: Ints, ways: Ints, wanted: Ints) -> pa.Array:
    """Run by run, for each property that is wanted its witness, or null. See `judge_runs`."""
    found, places = [pa.array([], WITNESS)], [np.empty(0, np.int64)]
    properties = noted.shape[1]
    for p in wanted.tolist():
        runs = np.flatnonzero(noted[:, p, f.PROCESS] >= 0)
        if len(runs):
            seen = _seen(about, p, runs, noted[runs, p].T)
            found.append(witnesses(PROPERTIES[p], seen, about.names))
            places.append(runs * properties + p)
    if len(ways):
        cycle = ways[:, 0] * properties + ways[:, 1]
        steps = _steps(about.rows, ways, np.flatnonzero(np.diff(cycle, prepend=-1)))
        found.append(cycles(steps, about.names))
        places.append(cycle[steps.start])
    which = np.full(noted.shape[0] * properties, -1)
    which[np.concatenate(places)] = np.arange(sum(map(len, places)))
    which = which.reshape(-1, properties)[:, wanted].ravel()
    return pa.concat_arrays(found).take(pa.array(which, mask=which < 0))


def _seen(about: About, p: int, runs: Ints, fields: Ints) -> Seen:
    rows = about.rows
    # A row that is -1 finds some position or other, which this property's sentence has no use for.
    message, later = fields[f.MESSAGE], fields[f.LATER]
    both = p in _OF_TWO_MESSAGES
    return Seen(
        run=runs,
        process=fields[f.PROCESS],
        origin=rows.origin[message],
        number=rows.number[message],
        after=rows.origin[later] if both else None,
        later=rows.number[later] if both else None,
        by=fields[f.OTHER],
        link=fields[f.LINK],
        missing=fields[f.MISSING] == 1,
        earlier=rows.position[fields[f.EARLIER]],
        position=rows.position[fields[f.ROW]],
        unknown=about.counts[runs, p, f.VIOLATIONS] == 0,
        complete=about.complete[runs],
        exact=about.exact[runs],
    )


def _steps(rows: Rows, ways: Ints, start: Ints) -> Steps:
    run, p, row, member = ways.T
    return Steps(start, run, rows.origin[row], rows.number[row], member, p == f.SYNCHRONOUS)
