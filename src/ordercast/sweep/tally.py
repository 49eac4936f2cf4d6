"""All runs of a configuration as one row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from ordercast.sweep.configuration import Configuration
from ordercast.sweep.histogram import Histogram
from ordercast.trace.verdicts import ORDERS, PROPERTIES, Outcome, worst

__all__ = ["Counts", "Failure", "Row", "Spread", "Tally", "outcome", "to_table"]


class Counts(Struct, frozen=True):
    """In how many runs a property held, and in how many it did not."""

    holds: int
    violated: int
    unknown: int


class Spread(Struct, frozen=True):
    """Percentiles, each off by less than 2 %, and the exact maximum; nulls if nothing was there."""

    p50: int | None
    p90: int | None
    p99: int | None
    max: int | None


class Failure(Struct, frozen=True):
    """The smallest seed with which a promise was broken."""

    seed: int
    property: str
    sentence: str
    replay: str


class Row(Struct, frozen=True):
    """What a sweep says of one configuration. The field order is the column order."""

    key: str
    ordering: str
    dissemination: str
    processes: int
    messages: int
    payload: int
    to: str
    faults: str
    threshold: int | None
    runs: int
    quiesced: int
    empty: int
    """Runs in which nothing was delivered: what holds in them holds of nothing."""
    promises: tuple[str, ...]
    outcome: Outcome
    """Of what was promised, over all runs."""
    failed: int
    """Runs in which a promise was broken."""
    failure: Failure | None
    order_held: str
    """The weakest over the runs."""
    verdicts: dict[str, Counts]
    sent: int
    delivered: int
    copies_per_broadcast: float | None
    control_bytes_per_broadcast: float | None
    latency_us: Spread
    hold_us: Spread
    held_max: int


class Tally:
    """Adds up runs, in any order and any portions."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self._sums = dict.fromkeys(_SUMMED, 0)
        self._counts = {name: dict.fromkeys(Counts.__struct_fields__, 0) for name in PROPERTIES}
        self._latency, self._hold = Histogram(), Histogram()
        self._held_max = 0
        self._rung = len(ORDERS) - 1
        self._first: tuple[int, str, str] | None = None

    def add(self, runs: pa.Table) -> None:
        """in: some runs of this configuration, as in `block.Results`"""
        self._sums["runs"] += runs.num_rows
        self._sums["failed"] += runs.num_rows - runs["broken"].null_count
        self._sums["empty"] += pc.sum(pc.equal(runs["delivered"], 0)).as_py() or 0
        for name in _SUMMED[3:]:
            self._sums[name] += pc.sum(runs[name]).as_py() or 0
        for name, counts in self._counts.items():
            for found in pc.value_counts(runs[name]).to_pylist():
                counts[found["values"]] += found["counts"]
        self._held_max = max(self._held_max, pc.max(runs["held_max"]).as_py() or 0)
        _add(self._latency, runs, "latency")
        _add(self._hold, runs, "hold")
        self._rung = min(self._rung, _rung(runs))
        broken = runs.filter(pc.is_valid(runs["broken"])).select(["seed", "broken", "sentence"])
        if broken.num_rows:
            first = broken.sort_by("seed").slice(0, 1).to_pylist()[0]
            found = (first["seed"], first["broken"], first["sentence"])
            self._first = found if self._first is None else min(self._first, found)

    def row(self) -> Row:
        one, sums = self.configuration, self._sums
        counts = {name: Counts(**self._counts[name]) for name in PROPERTIES}
        return Row(
            key=one.key,
            ordering=one.ordering,
            dissemination=one.dissemination,
            processes=one.processes,
            messages=one.messages,
            payload=one.payload,
            to=one.to,
            faults=one.faults,
            threshold=one.threshold,
            runs=sums["runs"],
            quiesced=sums["quiesced"],
            empty=sums["empty"],
            promises=one.promises,
            outcome=_worst(counts[name] for name in one.promises),
            failed=sums["failed"],
            failure=None
            if self._first is None
            else Failure(*self._first, replay=one.replay(self._first[0])),
            order_held=ORDERS[self._rung],
            verdicts=counts,
            sent=sums["sent"],
            delivered=sums["delivered"],
            copies_per_broadcast=_share(sums["received"], sums["sent"]),
            control_bytes_per_broadcast=_share(sums["control_bytes"], sums["sent"]),
            latency_us=_spread(self._latency),
            hold_us=_spread(self._hold),
            held_max=self._held_max,
        )


def outcome(rows: Iterable[Row]) -> Outcome:
    """Violated if a promise was broken anywhere, unknown if one could not be judged."""
    return worst(row.outcome for row in rows)


def to_table(rows: Iterable[Row]) -> pa.Table:
    return pa.Table.from_pylist([msgspec.to_builtins(row) for row in rows], _SCHEMA)


_SUMMED = ("runs", "failed", "empty", "quiesced", "sent", "delivered", "received", "control_bytes")


def _add(histogram: Histogram, runs: pa.Table, name: str) -> None:
    lists = (runs[f"{name}_{what}"].combine_chunks() for what in ("buckets", "counts"))
    buckets, counts = (column.flatten().to_numpy() for column in lists)
    histogram.add(buckets, counts, pc.max(runs[f"{name}_us_max"]).as_py())


def _rung(runs: pa.Table) -> int:
    """How far up the ladder of orders all these runs come."""
    for rung, order in enumerate(ORDERS[1:]):
        if not pc.all(pc.equal(runs[order], "holds"), min_count=0).as_py():
            return rung
    return len(ORDERS) - 1


def _worst(counts: Iterable[Counts]) -> Outcome:
    found = list(counts)
    if any(one.violated for one in found):
        return "violated"
    return "unknown" if any(one.unknown for one in found) else "holds"


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _spread(histogram: Histogram) -> Spread:
    p50, p90, p99 = map(histogram.percentile, (50, 90, 99))
    return Spread(p50, p90, p99, histogram.largest)


_COUNTS = pa.struct(dict.fromkeys(Counts.__struct_fields__, pa.int64()))
_SPREAD = pa.struct(dict.fromkeys(Spread.__struct_fields__, pa.int64()))
_TYPES: dict[str, Any] = {
    **dict.fromkeys(("key", "ordering", "dissemination", "to", "faults"), pa.string()),
    **dict.fromkeys(("outcome", "order_held"), pa.string()),
    "promises": pa.list_(pa.string()),
    "failure": pa.struct(
        {
            "seed": pa.int64(),
            "property": pa.string(),
            "sentence": pa.string(),
            "replay": pa.string(),
        }
    ),
    "verdicts": pa.struct(dict.fromkeys(PROPERTIES, _COUNTS)),
    "copies_per_broadcast": pa.float64(),
    "control_bytes_per_broadcast": pa.float64(),
    "latency_us": _SPREAD,
    "hold_us": _SPREAD,
}
_SCHEMA = pa.schema({name: _TYPES.get(name, pa.int64()) for name in Row.__struct_fields__})
