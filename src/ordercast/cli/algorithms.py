"""Show the catalog: every algorithm with its guarantee, assumptions and cost.

example:
  ordercast algorithms
  ordercast algorithms --json
"""

from __future__ import annotations

import argparse
import json

from rich.table import Table

from ordercast.cli.output import console
from ordercast.protocols.catalog import DISSEMINATIONS, ORDERINGS

__all__ = ["act", "add_arguments", "rows"]

Row = dict[str, str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def act(options: argparse.Namespace) -> int:
    tables = rows()
    if options.json:
        print(json.dumps(tables, indent=2))
        return 0
    out = console()
    for title, entries in tables.items():
        table = Table(title=title, title_justify="left")
        for column in entries[0]:
            table.add_column(column)
        for row in entries:
            table.add_row(*row.values())
        out.print(table)
    return 0


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
