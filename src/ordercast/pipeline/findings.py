"""What the verdicts on a trace say, all together.

It stays in Arrow: with a hundred thousand runs, nothing here is built run by run, but for what is
asked for one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.pipeline.judged import VERDICTS
from ordercast.trace.verdicts import (
    ORDERS,
    PROPERTIES,
    Judgement,
    Outcome,
    Summary,
    Tally,
    Verdict,
    Witness,
    worst,
)

__all__ = ["PLACES", "Findings", "place"]

SHOWN = 5
"""How many witnesses, or places of bad rows, a summary names."""
_AT_ONCE = 4096
PLACES = [("file", "ascending"), ("row", "ascending"), ("flaw", "ascending")]
"""The order of flaws: what has no place of its own comes last."""


@dataclass(frozen=True, slots=True)
class Findings:
    verdicts: pa.Table
    """`results.TABLES`, as are the others; by run and property."""
    runs: pa.Table
    flaws: pa.Table

    @classmethod
    def of(cls, verdicts: pa.Table, runs: pa.Table, flaws: pa.Table) -> Findings:
        """in: the same, in any order"""
        rank = pc.index_in(verdicts["property"], pa.array(PROPERTIES))
        by_run = [("run", "ascending"), ("rank", "ascending")]
        order = pc.sort_indices(pa.table({"run": verdicts["run"], "rank": rank}), by_run)
        return cls(verdicts.take(order), runs.sort_by("run"), flaws.sort_by(PLACES))

    @property
    def events(self) -> int:
        return pc.sum(self.runs["events"]).as_py() or 0

    @property
    def order_held(self) -> str:
        return min(self.runs["order_held"].unique().to_pylist(), key=ORDERS.index, default="async")

    @property
    def outcome(self) -> Outcome:
        return worst(self.runs["outcome"].unique().to_pylist())

    @property
    def places(self) -> Iterator[str]:
        """Where rows were left out, and why: single rows before what takes several to see."""
        for batch in self.flaws.to_batches(max_chunksize=_AT_ONCE):
            yield from map(place, batch.to_pylist())

    def rows(self) -> Iterator[dict[str, Any]]:
        """The verdicts as `Judgement.to_json` has them, a few at a time."""
        told = self.verdicts.select([*VERDICTS.names, "promised"])
        for batch in told.to_batches(max_chunksize=_AT_ONCE):
            yield from batch.to_pylist()

    def judgement(self) -> Judgement:
        """Everything, run by run: for few runs."""
        promised = zip(self.runs["run"].to_pylist(), self.runs["promised"].to_pylist(), strict=True)
        *columns, witness = (self.verdicts[name] for name in VERDICTS.names)
        return Judgement(
            runs=len(self.runs),
            events=self.events,
            verdicts=tuple(
                map(Verdict, *(one.to_pylist() for one in columns), _witnesses(witness))
            ),
            promises={run: tuple(names) for run, names in promised},
            skipped=tuple(sorted(set(self.places))),
        )

    def summary(self) -> Summary:
        promised = self.verdicts.filter(self.verdicts["promised"])
        lacking = promised.filter(pc.not_equal(promised["verdict"], "holds"))
        violated = pc.equal(lacking["verdict"], "violated")
        first = [lacking.filter(those).slice(0, SHOWN) for those in (violated, pc.invert(violated))]
        worst = pa.concat_tables(first).slice(0, SHOWN).select(VERDICTS.names)
        return Summary(
            runs=len(self.runs),
            events=self.events,
            order_held=self.order_held,
            outcome=self.outcome,
            promises=len(promised),
            tallies=self._tallies(),
            broken=len(lacking),
            worst=msgspec.convert(worst.to_pylist(), tuple[Verdict, ...]),
            skipped=len(self.flaws),
            places=tuple(islice(self.places, SHOWN)),
        )

    def _tallies(self) -> tuple[Tally, ...]:
        counted = self.verdicts.group_by(["property", "verdict"]).aggregate(
            [("run", "count"), ("checked", "sum"), ("violations", "sum")]
        )
        found: dict[str, dict[str, Any]] = {}
        for row in counted.to_pylist():
            tally = found.setdefault(
                row["property"],
                {"holds": 0, "violated": 0, "unknown": 0, "checked": 0, "violations": 0},
            )
            tally[row["verdict"]] = row["run_count"]
            tally["checked"] += row["checked_sum"]
            tally["violations"] += row["violations_sum"]
        return tuple(Tally(name, **found[name]) for name in PROPERTIES if name in found)


def _witnesses(column: pa.ChunkedArray) -> Iterator[Witness | None]:
    """in: `sentences.WITNESS`"""
    for chunk in column.chunks:
        process, messages, sentence = chunk.flatten()
        lengths = pc.fill_null(messages.value_lengths(), 0)
        each = iter(messages.flatten().to_pylist())
        rows = zip(process.to_pylist(), lengths.to_pylist(), sentence.to_pylist(), strict=True)
        for where, count, words in rows:
            yield None if words is None else Witness(where, tuple(islice(each, count)), words)


def place(flaw: Mapping[str, Any]) -> str:
    """A row of `rows.FLAWS` in words."""
    file, row = flaw["file"], flaw["row"]
    if file is None:
        return str(flaw["flaw"])
    word = "line" if str(file).endswith(".jsonl") else "row"
    where = f"{file}, {word} {row}" if row is not None else f"{file}"
    return f"{where}: {flaw['flaw']}"
