"""The command line: one file per verb, and the only place where all rooms meet.

Results go to stdout, everything else to stderr. Exit codes: 0 holds (or done), 1 violated,
2 unknown or unusable input, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from ordercast import __version__
from ordercast.cli import (
    algorithms,
    bench,
    explain,
    export,
    import_,
    keys,
    node,
    report,
    run,
    simulate,
    sort,
    stream,
    sweep,
    verify,
)
from ordercast.cli.parsing import add_verb
from ordercast.errors import OrdercastError

__all__ = ["VERBS", "main", "parser"]

VERBS = (
    run,
    node,
    simulate,
    sweep,
    verify,
    stream,
    report,
    explain,
    import_,
    export,
    sort,
    keys,
    algorithms,
    bench,
)


class _Parser(argparse.ArgumentParser):
    """One clear sentence instead of a wall of usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see '{self.prog} --help')\n")


def parser() -> argparse.ArgumentParser:
    top = _Parser(
        prog="ordercast",
        description="Ordered messaging between processes, with proof that the order held.",
    )
    top.add_argument("--version", action="version", version=f"ordercast {__version__}")
    verbs = top.add_subparsers(metavar="VERB", required=True, dest="verb")
    for verb in VERBS:
        name = verb.__name__.rpartition(".")[2].rstrip("_")
        add_verb(verbs, name, verb).set_defaults(act=verb.act)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        code: int = options.act(options)
        sys.stdout.flush()
        return code
    except OrdercastError as error:
        print(f"ordercast {options.verb}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"ordercast {options.verb}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): not an error, and not to be complained of.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"ordercast {options.verb}: {error}", file=sys.stderr)
        return 2
