"""How a module becomes a verb, or a part of one: its docstring is its help."""

from __future__ import annotations

import argparse
from types import ModuleType
from typing import Any

__all__ = ["add_verb"]


def add_verb(parsers: Any, name: str, module: ModuleType) -> argparse.ArgumentParser:
    """`module` has `add_arguments`, and a docstring of a sentence, and after an empty line more."""
    summary, _, more = (module.__doc__ or "").partition("\n\n")
    own: argparse.ArgumentParser = parsers.add_parser(
        name,
        help=summary[0].lower() + summary[1:].rstrip("."),
        description=summary,
        epilog=more,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.add_arguments(own)
    own.set_defaults(own=own)
    return own
