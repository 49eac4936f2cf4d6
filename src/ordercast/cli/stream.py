"""Work on messages as they come, on Spark: put a stream in order, or watch a live trace.

example:
  ordercast stream order messages/ --group room --output out --checkpoint state
  ordercast stream watch trace/
"""

from __future__ import annotations

import argparse

from ordercast.cli import stream_order, stream_watch
from ordercast.cli.parsing import add_verb

__all__ = ["act", "add_arguments"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parts = parser.add_subparsers(metavar="WHAT", required=True, dest="what")
    for name, part in (("order", stream_order), ("watch", stream_watch)):
        add_verb(parts, name, part).set_defaults(part=part)


def act(options: argparse.Namespace) -> int:
    code: int = options.part.act(options)
    return code
