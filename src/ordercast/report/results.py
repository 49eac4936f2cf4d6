"""The tables of `verify --output`, as far as a page needs them: counted in Arrow, run by run only
for the few runs that are drawn."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ordercast.errors import SetupError, TraceError
from ordercast.report.costs import Cost, Spread
from ordercast.report.digest import SEVERITY, Digest, RunLine, Share
from ordercast.report.sample import Judged
from ordercast.trace.jsonl import UNREADABLE
from ordercast.trace.verdicts import ORDERS, Verdict

__all__ = ["Results", "read_results"]


class _Part(Struct):
    number: int
    tables: tuple[str, ...]


class _Record(Struct):
    parts: tuple[_Part, ...]


@dataclass(frozen=True, slots=True)
class Results:
    digest: Digest
    _tables: dict[str, Any]

    def judged(self, count: int) -> list[Judged]:
        """The worst runs."""
        runs = [line.name for line in self.digest.lines[:count]]
        verdicts: dict[str, list[Verdict]] = {run: [] for run in runs}
        promises: dict[str, list[str]] = {run: [] for run in runs}
        for row in self._of("verdicts", runs):
            promised = row.pop("promised")
            verdict = msgspec.convert(row, Verdict)
            verdicts[verdict.run].append(verdict)
            if promised:
                promises[verdict.run].append(verdict.property)
        return [Judged(run, verdicts[run], promises[run]) for run in runs]

    def costs(self, run: str) -> list[Cost]:
        names = {row["run"]: row["names"] for row in self._of("runs", [run])}[run] or []
        rows = sorted(
            self._of("costs", [run]), key=lambda row: (row["process"], row["class"] or "")
        )
        several = len({row["class"] for row in rows}) > 1
        found = []
        for row in rows:
            process = row["process"]
            name = names[process] if process < len(names) else f"p{process}"
            found.append(
                Cost(
                    process=process,
                    name=f"{name} {row['class'] or ''}".strip() if several else name,
                    deliveries=row["deliveries"],
                    latency_us=_spread(row, "latency"),
                    held_us=_spread(row, "held"),
                    depth_max=row["depth_max"],
                    copies=row["copies"],
                    control_bytes=row["control_bytes"],
                )
            )
        return found

    def _of(self, table: str, runs: Collection[str]) -> list[dict[str, Any]]:
        import pyarrow as pa
        import pyarrow.compute as pc

        rows = self._tables[table]
        found: list[dict[str, Any]] = rows.filter(
            pc.is_in(rows["run"], pa.array(list(runs), pa.string()))
        ).to_pylist()
        return found


def read_results(path: Path, *, lines: int) -> Results:
    """`lines` is how many runs the page lists."""
    tables = {name: _table(path, name) for name in ("verdicts", "runs", "costs")}
    return Results(_digest(tables["verdicts"], tables["runs"], lines), tables)


def _table(path: Path, name: str) -> Any:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise SetupError("result tables need pyarrow: pip install 'ordercast[judge]'") from None
    try:
        record = msgspec.json.decode((path / "results.json").read_bytes(), type=_Record)
    except (OSError, *UNREADABLE):
        raise TraceError(f"{path}: there are no results of verify --output here") from None
    files = [
        path / name / f"part-{part.number:04}.parquet"
        for part in record.parts
        if name in part.tables
    ]
    try:
        return pa.concat_tables([pq.read_table(file) for file in files])
    except (OSError, ValueError) as error:
        raise TraceError(f"{path}: the table {name!r} cannot be read: {error}") from None


def _digest(verdicts: Any, runs: Any, lines: int) -> Digest:
    import pyarrow as pa
    import pyarrow.compute as pc

    counted = verdicts.group_by(["property", "verdict", "promised"]).aggregate(
        [("run", "count"), ("checked", "sum"), ("violations", "sum")]
    )
    shares = tuple(
        Share(
            r["property"],
            r["verdict"],
            r["promised"],
            r["run_count"],
            r["checked_sum"],
            r["violations_sum"],
        )
        for r in counted.sort_by("property").to_pylist()
    )
    severity = pc.index_in(runs["outcome"], pa.array(list(SEVERITY)))
    ranked = runs.select(["run", "outcome", "order_held", "events"]).append_column(
        "severity", severity
    )
    worst = pc.select_k_unstable(
        ranked, min(lines, len(ranked)), [("severity", "ascending"), ("run", "ascending")]
    )
    held = runs["order_held"].unique().to_pylist()
    return Digest(
        runs=len(runs),
        events=pc.sum(runs["events"]).as_py() or 0,
        order_held=min(held, key=ORDERS.index, default=ORDERS[0]),
        shares=shares,
        told=_told(verdicts),
        outcomes={
            row["values"]: row["counts"] for row in pc.value_counts(runs["outcome"]).to_pylist()
        },
        promises=_promises(runs),
        lines=tuple(
            RunLine(row["run"], row["outcome"], row["order_held"], row["events"])
            for row in ranked.take(worst).to_pylist()
        ),
    )


def _promises(runs: Any) -> dict[frozenset[str], int]:
    """Lists cannot be grouped by, and their text can."""
    import pyarrow.compute as pc

    found: dict[frozenset[str], int] = {}
    for row in pc.value_counts(pc.binary_join(runs["promised"], ",")).to_pylist():
        names = frozenset(filter(None, (row["values"] or "").split(",")))
        found[names] = found.get(names, 0) + row["counts"]
    return found


def _told(verdicts: Any) -> dict[str, Verdict]:
    import pyarrow.compute as pc

    told: dict[str, Verdict] = {}
    for outcome in ("unknown", "violated"):
        lacking = verdicts.filter(pc.equal(verdicts["verdict"], outcome))
        for name in lacking["property"].unique().to_pylist():
            rows = lacking.filter(pc.equal(lacking["property"], name))
            first = rows.filter(pc.equal(rows["run"], pc.min(rows["run"]))).slice(0, 1)
            [verdict] = msgspec.convert(first.drop_columns(["promised"]).to_pylist(), list[Verdict])
            if verdict.witness is not None:
                told[name] = verdict
    return told


def _spread(row: dict[str, Any], name: str) -> Spread | None:
    found = [row[f"{name}_{word}_us"] for word in ("p50", "p90", "p99", "max")]
    return None if None in found else Spread(*found)
