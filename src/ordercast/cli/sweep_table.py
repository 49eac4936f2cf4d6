"""What a sweep says at its end, for a person: a row for each configuration, and what failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ordercast.cli.console import LOOKS, TOTAL, counted

if TYPE_CHECKING:
    from ordercast.sweep.tally import Row, Spread

__all__ = ["print_failures", "table_of"]

FAILURES_SHOWN = 10
_LATENCY = ("p50", "p90", "p99", "max")
_HOLD = ("p50", "p99", "max")


def table_of(rows: list[Row]) -> Table:
    some = rows[0]
    title = (
        f"{counted(some.runs, 'run')} each, {counted(some.messages, 'message')} of "
        f"{counted(some.payload, 'byte')} a process"
    )
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    optional = [name for name in ("to", "faults") if len({getattr(r, name) for r in rows}) > 1]
    for name in ("ordering", "dissemination", "n", *optional, "promised", "order held"):
        table.add_column(name, no_wrap=name != "faults")
    for name in (
        *("copies", "control\nbytes", f"latency, ms\n{_header(_LATENCY)}"),
        *(f"held, ms\n{_header(_HOLD)}", "held\nat once"),
    ):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            *(row.ordering, row.dissemination, str(row.processes)),
            *(getattr(row, name) for name in optional),
            _promised(row),
            _order_held(row),
            *map(_number, (row.copies_per_broadcast, row.control_bytes_per_broadcast)),
            _milliseconds(row.latency_us, _LATENCY),
            _milliseconds(row.hold_us, _HOLD),
            str(row.held_max),
        )
    return table


def _order_held(row: Row) -> str:
    held = {name for name, counts in row.verdicts.items() if counts.holds == row.runs}
    return f"{row.order_held} + total" if set(TOTAL) <= held else row.order_held


def _promised(row: Row) -> Text:
    icon, style = LOOKS[row.outcome]
    words = {
        "holds": "holds",
        "violated": f"violated in {row.failed}",
        "unknown": f"unknown ({row.quiesced} of {row.runs} came to rest)",
    }
    return Text(f"{icon} {words[row.outcome]}", style=style)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _header(names: Sequence[str]) -> str:
    return " ".join(f"{name:>5}" for name in names)


def _milliseconds(spread: Spread, names: Sequence[str]) -> str:
    values = [getattr(spread, name) for name in names]
    return "-" if None in values else " ".join(f"{us / 1000:5.1f}" for us in values)


def print_failures(rows: list[Row], out: Console) -> None:
    failures = [row.failure for row in rows if row.failure is not None]
    for one in failures[:FAILURES_SHOWN]:
        text = f"{one.property} violated with seed {one.seed}: {one.sentence}\n  {one.replay}"
        out.print(Text(text), soft_wrap=True)
    if len(failures) > FAILURES_SHOWN:
        out.print(f"… and {len(failures) - FAILURES_SHOWN} more (all of them with --json)")
