"""What a sweep says at its end, for a person: a row for each configuration, and what failed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from ordercast.cli.console import LOOKS
from ordercast.cli.words import counted
from ordercast.trace.verdicts import TOTAL

if TYPE_CHECKING:
    from ordercast.sweep.tally import Row, Spread

__all__ = ["print_empty", "print_failures", "print_table"]

FAILURES_SHOWN = 10
_LATENCY = ("p50", "p90", "p99", "max")
_HOLD = ("p50", "p99", "max")
_FIGURES = (
    *("order held", "latency p50", "latency p99", "copies", "control bytes", "held p99"),
    *("latency max", "held max", "held at once", "latency p90", "held p50"),
)
"""What may be left out for want of room, the most important first."""


def print_table(rows: list[Row], out: Console) -> None:
    """Verdicts and numbers are never cut. Where there is too little room, each fault plan has its
    own table, and what still does not fit is left out, and told."""
    whole = _table_of(rows, _FIGURES)
    if _fits(whole, out):
        out.print(whole)
        return
    plans = dict.fromkeys(row.faults for row in rows)
    for faults in plans:
        under = f", under {faults}" if faults else ", without faults"
        same = [row for row in rows if row.faults == faults]
        _print_what_fits(same, under if len(plans) > 1 else "", out)


def _print_what_fits(rows: list[Row], under: str, out: Console) -> None:
    shown: list[str] = []
    for figure in _FIGURES:
        if _fits(_table_of(rows, [*shown, figure]), out):
            shown.append(figure)
    out.print(_table_of(rows, shown, under))
    if left_out := [figure for figure in _FIGURES if figure not in shown]:
        out.print(f"No room for {', '.join(left_out)}: a wider terminal, or --json, has them.")


def _fits(table: Table, out: Console) -> bool:
    limitless = out.options.update_width(10_000)
    return Measurement.get(out, limitless, table).maximum <= out.width


def _table_of(rows: list[Row], figures: Collection[str], under: str = "") -> Table:
    some = rows[0]
    title = (
        f"{counted(some.runs, 'run')} each, {counted(some.messages, 'message')} of "
        f"{counted(some.payload, 'byte')} a process{under}"
    )
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in ("ordering", "dissemination"):
        table.add_column(name, overflow="fold")
    table.add_column("n", no_wrap=True)
    optional = [name for name in ("to", "faults") if len({getattr(r, name) for r in rows}) > 1]
    for name in optional:
        table.add_column(name, overflow="fold")
    table.add_column("promised", no_wrap=True)
    if "order held" in figures:
        table.add_column("order held", no_wrap=True)
    numbers = list(_numbers(figures))
    for header, _ in numbers:
        table.add_column(header, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            *(row.ordering, row.dissemination, str(row.processes)),
            *(getattr(row, name) for name in optional),
            _promised(row),
            *([_order_held(row)] if "order held" in figures else []),
            *(cell(row) for _, cell in numbers),
        )
    return table


def _numbers(figures: Collection[str]) -> Iterator[tuple[str, Callable[[Row], str]]]:
    """The header of each column, and what stands in it."""
    latency = [name for name in _LATENCY if f"latency {name}" in figures]
    hold = [name for name in _HOLD if f"held {name}" in figures]
    if "copies" in figures:
        yield "copies", lambda row: _number(row.copies_per_broadcast)
    if "control bytes" in figures:
        yield "control\nbytes", lambda row: _number(row.control_bytes_per_broadcast)
    if latency:
        yield f"latency, ms\n{_header(latency)}", lambda row: _milliseconds(row.latency_us, latency)
    if hold:
        yield f"held, ms\n{_header(hold)}", lambda row: _milliseconds(row.hold_us, hold)
    if "held at once" in figures:
        yield "held\nat once", lambda row: str(row.held_max)


def _order_held(row: Row) -> str:
    if row.empty == row.runs:
        return "-"
    held = {name for name, counts in row.verdicts.items() if counts.holds == row.runs}
    return f"{row.order_held} + total" if set(TOTAL) <= held else row.order_held


def _promised(row: Row) -> Text:
    icon, style = LOOKS[row.outcome]
    words = {
        "holds": "holds",
        "violated": f"violated in {row.failed}",
        "unknown": f"unknown ({row.quiesced} of {row.runs} came to rest)",
    }
    if row.outcome == "holds" and row.empty:
        which = "all" if row.empty == row.runs else str(row.empty)
        return Text(f"{icon} holds, {which} empty", style=LOOKS["unknown"][1])
    return Text(f"{icon} {words[row.outcome]}", style=style)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _header(names: Sequence[str]) -> str:
    return " ".join(f"{name:>5}" for name in names)


def _milliseconds(spread: Spread, names: Sequence[str]) -> str:
    values = [getattr(spread, name) for name in names]
    return "-" if None in values else " ".join(f"{us / 1000:5.1f}" for us in values)


def print_empty(rows: list[Row], out: Console) -> None:
    """A pass in which nothing was checked is none to be glad of."""
    empty, runs = sum(row.empty for row in rows), sum(row.runs for row in rows)
    if empty:
        out.print(
            f"Empty: in {empty} of {counted(runs, 'run')} nothing was delivered, so there was "
            "nothing to check."
        )


def print_failures(rows: list[Row], out: Console) -> None:
    failures = [row.failure for row in rows if row.failure is not None]
    for one in failures[:FAILURES_SHOWN]:
        text = f"{one.property} violated with seed {one.seed}: {one.sentence}\n  {one.replay}"
        out.print(Text(text), soft_wrap=True)
    if len(failures) > FAILURES_SHOWN:
        out.print(f"… and {len(failures) - FAILURES_SHOWN} more (all of them with --json)")
