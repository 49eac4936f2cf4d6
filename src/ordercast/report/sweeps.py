"""The page of a sweep: what each algorithm costs against group size and loss rate, side by side."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ordercast.errors import SetupError, TraceError
from ordercast.report.facts import Fact
from ordercast.report.plots import Line, Plot, line_plot
from ordercast.report.sheet import template
from ordercast.report.summary import Headline, Standing
from ordercast.report.words import count, span
from ordercast.trace.verdicts import TOTAL, Outcome

__all__ = ["Configuration", "is_sweep", "read_sweep", "render_sweep"]

TABLE = Path("sweep") / "configurations.parquet"
ROWS_MAX = 300
SECTIONS_MAX = 4
_LOSS = re.compile(r"(?:^|,\s*)loss:(\d+(?:\.\d+)?)%")


class Spread(Struct, frozen=True):
    p50: int | None
    p99: int | None


class Held(Struct, frozen=True):
    holds: int
    """In how many runs."""


class Failure(Struct, frozen=True):
    property: str
    sentence: str
    replay: str


class Configuration(Struct, frozen=True):
    """A row of the table, as far as the page needs it."""

    ordering: str
    dissemination: str
    processes: int
    to: str
    faults: str
    runs: int
    outcome: Outcome
    failed: int
    failure: Failure | None
    order_held: str
    copies_per_broadcast: float | None
    control_bytes_per_broadcast: float | None
    latency_us: Spread
    hold_us: Spread
    held_max: int
    empty: int = 0
    """Runs in which nothing was delivered."""
    verdicts: dict[str, Held] = {}
    """By property; tables from before do not have them."""

    @property
    def orders_held(self) -> str:
        """As the table on the terminal says it."""
        held = {name for name, counts in self.verdicts.items() if counts.holds == self.runs}
        return f"{self.order_held} + total" if set(TOTAL) <= held else self.order_held

    @property
    def standing(self) -> Standing:
        return "empty" if self.outcome == "holds" and self.empty == self.runs else self.outcome

    @property
    def loss(self) -> float:
        """In per cent."""
        found = _LOSS.search(self.faults)
        return float(found[1]) if found else 0.0

    @property
    def other_faults(self) -> str:
        return _LOSS.sub("", self.faults).strip(", ")


@dataclass(frozen=True, slots=True)
class Section:
    heading: str
    plots: list[Plot]


_MEASURES: tuple[tuple[str, Callable[[Configuration], float | None], bool], ...] = (
    ("Latency, median", lambda row: row.latency_us.p50, True),
    ("Latency, 99th percentile", lambda row: row.latency_us.p99, True),
    ("Time held, 99th percentile", lambda row: row.hold_us.p99, True),
    ("Most held at once", lambda row: row.held_max, False),
    ("Copies of a message", lambda row: row.copies_per_broadcast, False),
    ("Control bytes of a message", lambda row: row.control_bytes_per_broadcast, False),
)


def is_sweep(path: Path) -> bool:
    return (path / TABLE).is_file()


def read_sweep(path: Path) -> list[Configuration]:
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise SetupError("a sweep's table needs pyarrow: pip install 'ordercast[judge]'") from None
    try:
        there = pq.read_schema(path / TABLE).names
        columns = [name for name in Configuration.__struct_fields__ if name in there]
        rows: list[dict[str, Any]] = pq.read_table(path / TABLE, columns=columns).to_pylist()
        return msgspec.convert(rows, list[Configuration])
    except (OSError, ValueError) as error:
        raise TraceError(f"{path / TABLE}: not the table of a sweep: {error}") from None


def render_sweep(rows: Sequence[Configuration]) -> str:
    sections = [*_by_size(rows), *_by_loss(rows)]
    failures = [row for row in rows if row.failure is not None]
    top = _headline(rows)
    return template("sweep.html").render(
        title=top.text,
        eyebrow="sweep",
        headline=top,
        facts=[
            Fact("Configurations", f"{len(rows):,}"),
            Fact("Runs", f"{sum(row.runs for row in rows):,}"),
            Fact("Algorithms", f"{len({_name(row, rows) for row in rows}):,}"),
        ],
        sections=sections,
        failures=failures[:SECTIONS_MAX],
        more_failures=max(len(failures) - SECTIONS_MAX, 0),
        rows=rows[:ROWS_MAX],
        addressed=len({row.to for row in rows}) > 1,
        more_rows=max(len(rows) - ROWS_MAX, 0),
        words=span,
        script=None,
    )


def _headline(rows: Sequence[Configuration]) -> Headline:
    outcomes = [row.outcome for row in rows]
    detail = (
        f"{count(sum(row.runs for row in rows), 'run')} of {count(len(rows), 'configuration')}."
    )
    if "violated" in outcomes:
        broken = count(outcomes.count("violated"), "configuration")
        return Headline(f"Promises were broken in {broken}", detail, "violated")
    if "unknown" in outcomes:
        unsettled = count(outcomes.count("unknown"), "configuration")
        return Headline(f"Promises could not be settled in {unsettled}", detail, "unknown")
    empty = sum(row.empty for row in rows)
    if all(row.standing == "empty" for row in rows):
        held = "Every promise held, but there was nothing to check"
        return Headline(held, f"{detail} Nothing was delivered in any of them.", "empty")
    if empty:
        detail += f" Nothing was delivered in {empty:,} of them, so there was nothing to check."
    return Headline("Every promise held in every run", detail, "holds")


def _by_size(rows: Sequence[Configuration]) -> Iterator[Section]:
    """One section for each fault plan, the calm one first."""
    plans = {row.faults: (row.loss, row.faults) for row in rows}
    for faults in sorted(plans, key=plans.__getitem__)[:SECTIONS_MAX]:
        some = [row for row in rows if row.faults == faults]
        if len({row.processes for row in some}) > 1:
            under = f", under {faults}" if faults else ", without faults"
            plots = list(_plots(some, rows, lambda row: row.processes, lambda x: f"{x:g}"))
            yield Section(f"Against the size of the group{under}", plots)


def _by_loss(rows: Sequence[Configuration]) -> Iterator[Section]:
    """One section for each group size, the largest first."""
    for size in sorted({row.processes for row in rows}, reverse=True)[:SECTIONS_MAX]:
        for other in sorted({row.other_faults for row in rows}):
            some = [r for r in rows if r.processes == size and r.other_faults == other]
            if len({row.loss for row in some}) > 1:
                under = f", under {other}" if other else ""
                plots = list(_plots(some, rows, lambda row: row.loss, lambda x: f"{x:g} %"))
                yield Section(f"Against the share of packets lost, {size} processes{under}", plots)


def _plots(
    some: Sequence[Configuration],
    rows: Sequence[Configuration],
    across: Callable[[Configuration], float],
    x_words: Callable[[float], str],
) -> Iterator[Plot]:
    names = list(dict.fromkeys(_name(row, rows) for row in rows))
    for title, measure, is_time in _MEASURES:
        lines = []
        for hue, name in enumerate(names):
            points = sorted(
                (across(row), float(value))
                for row in some
                if _name(row, rows) == name and (value := measure(row)) is not None
            )
            if points:
                lines.append(Line(name, points, hue))
        if any(y for line in lines for _, y in line.points):
            y_words = span if is_time else lambda value: f"{value:.3g}"
            yield Plot(title, line_plot(lines, title=title, x_words=x_words, y_words=y_words))


def _name(row: Configuration, rows: Collection[Configuration]) -> str:
    """An ordering's own name, and what else tells its rows apart."""
    same = [other for other in rows if other.ordering == row.ordering]
    name = row.ordering
    if len({other.dissemination for other in same}) > 1:
        name += f" / {row.dissemination}"
    return name + (f" to {row.to}" if len({other.to for other in same}) > 1 else "")
