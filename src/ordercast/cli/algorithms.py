"""Show the catalog: every algorithm with its guarantee, assumptions and cost.

example:
  ordercast algorithms
  ordercast algorithms --json
"""

from __future__ import annotations

import argparse
import json

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ordercast.cli.console import console
from ordercast.protocols.catalog import DISSEMINATIONS, ORDERINGS

__all__ = ["act", "add_arguments", "rows"]

Row = dict[str, str]
NARROW_COLUMNS = 110
"""In fewer, a table would cut the names that people have to type."""
SENTENCES = ("guarantee", "assumes", "cost")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def act(options: argparse.Namespace) -> int:
    tables = rows()
    if options.json:
        print(json.dumps(tables, indent=2))
        return 0
    out = console()
    for title, entries in tables.items():
        if out.width < NARROW_COLUMNS:
            _print_one_by_one(title, entries, out)
        else:
            out.print(_table(title, entries))
    return 0


def _table(title: str, entries: list[Row]) -> Table:
    table = Table(title=title, title_justify="left")
    for column in entries[0]:
        table.add_column(column, no_wrap=column not in SENTENCES)
    for row in entries:
        table.add_row(*row.values())
    return table


def _print_one_by_one(title: str, entries: list[Row], out: Console) -> None:
    out.print(Text(title, style="italic"))
    for row in entries:
        names = [(f"{what}: ", value) for what, value in row.items() if what not in SENTENCES]
        out.print(Text(", ").join(Text.assemble(what, (name, "bold")) for what, name in names))
        for what in SENTENCES:
            out.print(Padding(Text(f"{what}: {row[what]}"), (0, 0, 0, 2)))


def rows() -> dict[str, list[Row]]:
    """The two tables, from the catalog; the README is checked against them."""
    orderings = [
        {
            "ordering": entry.name,
            "order": entry.order,
            "destinations": entry.destinations,
            "guarantee": entry.guarantee,
            "assumes": entry.assumes,
            "cost": entry.cost,
        }
        for entry in ORDERINGS.values()
    ]
    disseminations = [
        {
            "dissemination": entry.name,
            "reliability": entry.reliability,
            "destinations": entry.destinations,
            "guarantee": entry.guarantee,
            "assumes": entry.assumes,
            "cost": entry.cost,
        }
        for entry in DISSEMINATIONS.values()
    ]
    return {"orderings": orderings, "disseminations": disseminations}
