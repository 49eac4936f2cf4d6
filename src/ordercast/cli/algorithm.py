"""Which algorithm is meant: the same flags and the same words for every verb that runs one."""

from __future__ import annotations

import argparse
from typing import Any

from ordercast.protocols import catalog
from ordercast.spelling import did_you_mean

__all__ = ["add_algorithm_arguments", "chosen", "promised_order"]


def add_algorithm_arguments(parser: argparse.ArgumentParser) -> None:
    """`--order` and `--ordering` are one flag, as `join` takes both words and names."""
    parser.add_argument(
        "--order", "--ordering", dest="ordering", default="causal", metavar="ORDER",
        help="when a message may be delivered: a word such as fifo, causal or total, or an "
        "ordering's own name (default: causal)",
    )  # fmt: skip
    how: Any = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--dissemination", choices=sorted(catalog.DISSEMINATIONS), metavar="NAME",
        help="how a message reaches everyone (default: what suits the order)",
    )  # fmt: skip
    how.add_argument(
        "--reliability", metavar="WORD",
        help="the same in a word: best_effort, reliable or uniform",
    )  # fmt: skip


def promised_order(text: str) -> str:
    """For verbs that judge: a word, or the name of an ordering, whose first part is such a word. A
    mistyped name may have that, too."""
    if "_" in text and text not in catalog.ORDERINGS:
        near = did_you_mean(text, catalog.ORDERINGS)
        raise argparse.ArgumentTypeError(
            f"there is no order {text!r}{near}: choose a word such as fifo, causal or total, or a "
            "name that 'ordercast algorithms' lists"
        )
    return text


def chosen(options: argparse.Namespace) -> tuple[str, str]:
    """The ordering and the dissemination, by their own names."""
    if options.reliability is not None:
        return catalog.choose(options.ordering, options.reliability)
    ordering, suiting = catalog.choose(options.ordering)
    return ordering, options.dissemination or suiting
