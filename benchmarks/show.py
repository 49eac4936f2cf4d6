"""What the programs here share in front of a person: options, progress, one table or JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from ordercast.cli.steps import steps

__all__ = ["Row", "options", "progress", "show"]

Row = dict[str, Any]


def options(description: str | None, sizes: Sequence[int] = ()) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--only", default="", metavar="NAME", help="rows whose name has this in it")
    if sizes:
        default = " ".join(map(str, sizes))
        parser.add_argument(
            "--sizes", type=_size, nargs="+", default=list(sizes), metavar="N",
            help=f"of the group (default: {default})",
        )  # fmt: skip
    return parser


def _size(text: str) -> int:
    if int(text) < 2:
        raise argparse.ArgumentTypeError("a group that exchanges anything has 2 members or more")
    return int(text)


def progress(names: Iterable[str]) -> Iterator[str]:
    """Each name, after it has been announced on stderr."""
    with steps() as doing:
        for name in names:
            doing.begin(name)
            yield name


def show(title: str, rows: list[Row], *, as_json: bool) -> None:
    if not rows:
        print("there is nothing with that in its name", file=sys.stderr)
        sys.exit(2)
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    table = Table(title=title, title_justify="left")
    for column, value in rows[0].items():
        number = isinstance(value, int | float)
        table.add_column(
            column.replace("_", "\n"), justify="right" if number else "left", no_wrap=True
        )
    for row in rows:
        table.add_row(*map(_cell, row.values()))
    Console(highlight=False, width=None if sys.stdout.isatty() else 160).print(table)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}" if value < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
