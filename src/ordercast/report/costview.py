"""The costs of a run as plots, by process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ordercast.report.costs import Cost, Spread
from ordercast.report.plots import Bar, Line, Plot, Range, bar_plot, line_plot, range_plot
from ordercast.report.words import count, span

__all__ = ["plots_of"]

ROWS_MAX = 16
LINES_MAX = 8
POINTS_MAX = 300
OWN_NOTE = "A process needs no copy of its own messages, so this can be below one."
SPREAD_NOTE = "Dot: half were faster; thick: 90 %; tick and figure: 99 %; thin: the slowest."


def plots_of(costs: Sequence[Cost], depths: Mapping[int, Sequence[tuple[int, int]]]) -> list[Plot]:
    """`depths` are by process, and empty if only tables are at hand."""
    spreads = (
        ("Delivery latency", {cost: cost.latency_us for cost in costs}),
        ("Time held", {cost: cost.held_us for cost in costs}),
    )
    plots = [plot for title, values in spreads for plot in _ranges(title, values)]
    plots += _depths(costs, depths)
    if not depths:
        plots += _bars("Most messages held at once", {c: c.depth_max for c in costs})
    copies = {c: c.copies for c in costs}
    plots += _bars("Copies that arrived, for each message delivered", copies, note=OWN_NOTE)
    plots += _bars("Control bytes, for each message delivered", {c: c.control_bytes for c in costs})
    return plots


def _ranges(title: str, values: Mapping[Cost, Spread | None]) -> Iterator[Plot]:
    rows = [
        Range(cost.name, cost.process, spread.p50, spread.p90, spread.p99, spread.max)
        for cost, spread in values.items()
        if spread is not None
    ]
    if not rows or not any(row.max for row in rows):
        return
    shown = sorted(rows, key=lambda row: -row.p99)[:ROWS_MAX] if len(rows) > ROWS_MAX else rows
    drawing = range_plot(shown, title=title, words=span)
    yield Plot(title, drawing, f"{SPREAD_NOTE}{_left_out(len(rows), ROWS_MAX, 'slowest')}")


def _bars(title: str, values: Mapping[Cost, float | None], note: str = "") -> Iterator[Plot]:
    rows = [Bar(c.name, c.process, value) for c, value in values.items() if value is not None]
    if not rows or not any(row.value for row in rows):
        return
    shown = sorted(rows, key=lambda row: -row.value)[:ROWS_MAX] if len(rows) > ROWS_MAX else rows
    drawing = bar_plot(shown, title=title, words=lambda value: f"{value:.3g}")
    yield Plot(title, drawing, f"{note}{_left_out(len(rows), ROWS_MAX, 'highest')}".strip())


def _depths(
    costs: Sequence[Cost], depths: Mapping[int, Sequence[tuple[int, int]]]
) -> Iterator[Plot]:
    held = {process: levels for process, levels in depths.items() if any(d for _, d in levels)}
    if not held:
        return
    names = {cost.process: cost.name for cost in costs}
    fullest = sorted(held, key=lambda process: -max(depth for _, depth in held[process]))
    end = max(levels[-1][0] for levels in held.values())
    lines = [
        Line(names.get(process, f"p{process}"), _thinned(held[process], end), process)
        for process in sorted(fullest[:LINES_MAX])
    ]
    title = "Messages held, over time"
    drawing = line_plot(
        lines, title=title, x_words=span, y_words=lambda value: f"{value:g}", steps=True
    )
    yield Plot(title, drawing, _left_out(len(held), LINES_MAX, "fullest").strip())


def _thinned(levels: Sequence[tuple[int, int]], end: int) -> list[tuple[float, float]]:
    """Of many steps the highest in each stretch of time."""
    width = max(end // POINTS_MAX, 1)
    highest: dict[int, int] = {}
    for time_us, depth in levels:
        at = time_us // width * width if len(levels) > POINTS_MAX else time_us
        highest[at] = max(highest.get(at, 0), depth)
    return [*((float(at), float(depth)) for at, depth in highest.items()), (end, levels[-1][1])]


def _left_out(rows: int, most: int, which: str) -> str:
    if rows <= most:
        return ""
    return f" The {which} {most} of {count(rows, 'process', 'processes')}."
