"""The command line of it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from outputs import DOCS, stale, write

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None, docs: Path = DOCS) -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/docs",
        description="Makes what is generated in docs/: pictures, tables, what scenarios print.",
        epilog="example: .venv/bin/python scripts/docs --check",
    )
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit 1 and name what is stale"
    )
    options = parser.parse_args(arguments)
    behind = stale(docs)
    for file in sorted(behind):
        print(f"{'stale' if options.check else 'made'}: {file.relative_to(docs.parent)}")
    if options.check:
        return 1 if behind else 0
    write(behind)
    return 0
