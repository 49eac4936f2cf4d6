"""The safety set, checked by what somebody without ordercast would have taken: the competition.

Every peer is a function from a trace in ordercast's own layout, of one run, to how often each of
`CHECKS` is violated. How the violations are counted differs; that there are any does not, and
`tests/benchmarks` holds each peer to that. They may trust that the files have each process's rows
in order (only SQL must sort: it has no word for that), they keep no witness, and they know that all
messages are for everyone, that nobody crashed and that the log is whole. ordercast finds out.

Two ways to see causal order, both by what a message depends on directly:

windows  for each send, how many of each origin its sender had delivered; for each delivery, how
         many its receiver had. One running count per origin, over all rows: what comes to mind.
wide     one row a message, with a column for each process: where it delivered it. A message is
         compared with those that its sender had just delivered, for all processes at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

__all__ = ["CHECKS", "PEERS", "Found", "Peer", "event_files", "members"]

CHECKS = ("no_duplication", "no_creation", "agreement", "fifo", "causal")
Found = dict[str, int]


@dataclass(frozen=True)
class Peer:
    name: str
    module: str
    function: str
    needs: str | None = None
    """A package that may not be there."""
    small_only: bool = False
    """It takes one row after the other, so its speed on a small trace is its speed."""

    @property
    def missing(self) -> str | None:
        """Why it cannot take part."""
        if self.needs is None or find_spec(self.needs) is not None:
            return None
        return f"{self.needs} is not installed: pip install -r requirements-bench.txt"

    def load(self, scratch: Path) -> Callable[[Path], Found]:
        check = getattr(import_module(f"benchmarks.pipeline.peers.{self.module}"), self.function)
        return partial(check, scratch=scratch) if self.needs == "duckdb" else check


PEERS = {
    peer.name: peer
    for peer in (
        Peer("plain Python", "plain", "check", small_only=True),
        Peer("numpy", "with_numpy", "check"),
        Peer("DuckDB, windows", "with_duckdb", "windows", "duckdb"),
        Peer("DuckDB, wide", "with_duckdb", "wide", "duckdb"),
        Peer("Polars, windows", "with_polars", "windows", "polars"),
        Peer("Polars, wide", "with_polars", "wide", "polars"),
    )
}


def members(trace: Path) -> int:
    with (trace / "manifest.jsonl").open("rb") as lines:
        return len(json.loads(next(lines))["processes"])


def event_files(trace: Path) -> list[Path]:
    return sorted((trace / "events").glob("*.parquet"))
