"""Run the benchmarks: ratios against the limit, and against the peers that are installed.

They are in the source repository, not in the package. What follows the name goes to the
benchmark: try `ordercast bench runtime --help`. A case takes ten seconds or so, and without flags
that choose there are dozens of them.

example:
  ordercast bench runtime --only raw --n 3 --bytes 64 --tls no --form frames
  ordercast bench runtime --only raw,ordercast --n 3 --bytes 64
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import ordercast
from ordercast.errors import SetupError

__all__ = ["act", "add_arguments"]

BENCHMARKS = ("costs", "holding", "journal", "pipeline", "runtime", "streaming", "throughput")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("benchmark", choices=BENCHMARKS, metavar="NAME", help=", ".join(BENCHMARKS))
    rest = parser.add_argument(
        "options", nargs=argparse.REMAINDER, metavar="…", help="for the benchmark"
    )
    rest.required = False  # and not asked for, when it is the name that is missing


def act(options: argparse.Namespace) -> int:
    root = _repository()
    command = [sys.executable, "-m", f"benchmarks.{options.benchmark}", *options.options]
    return subprocess.run(command, cwd=root, check=False).returncode  # noqa: S603 (our own program)


def _repository() -> Path:
    root = Path(ordercast.__file__).parents[2]
    if not (root / "benchmarks" / "__init__.py").is_file():
        raise SetupError(
            "the benchmarks are not in the package: clone the repository, run 'make setup' there, "
            "and use its '.venv/bin/ordercast bench'"
        )
    return root
