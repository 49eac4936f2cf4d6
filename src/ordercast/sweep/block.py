"""A block of runs, simulated, judged and measured where it is: the work of one Spark task."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ordercast.pipeline.judging import RUNS, judge_table
from ordercast.sweep.configuration import Configuration
from ordercast.sweep.measures import measure
from ordercast.sweep.simulated import Simulated, events_of
from ordercast.trace.verdicts import PROPERTIES

__all__ = ["WORK_MAX", "Block", "Results", "cut", "work_off"]

WORK_MAX = 150_000
"""Packets and deliveries in a block: a second or two, so that little is lost with one."""

Part = tuple[Configuration, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Block:
    """Configurations, each with some of its seeds."""

    parts: tuple[Part, ...]

    @property
    def runs(self) -> int:
        return sum(len(seeds) for _, seeds in self.parts)

    @property
    def name(self) -> str:
        """The same for the same runs."""
        lines = [f"{one.key} {seed}" for one, seeds in self.parts for seed in seeds]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Results:
    name: str
    runs: bytes
    """A Parquet file with one row per run: configuration, seed, quiesced, what `measure` says,
    the verdict on each property, and for runs that broke a promise which one, and how."""
    events: bytes | None
    """The traces, if they were asked for: a Parquet file as `trace.parquet` has it."""


def cut(work: Iterable[tuple[Configuration, Iterable[int]]], work_max: int) -> list[Block]:
    """Every seed of every configuration, in blocks."""
    blocks: list[Block] = []
    runs: list[tuple[Configuration, int]] = []
    left = work_max
    for configuration, seeds in work:
        for seed in seeds:
            runs.append((configuration, seed))
            left -= configuration.work
            if left <= 0:
                blocks.append(_block(runs))
                runs, left = [], work_max
    return [*blocks, _block(runs)] if runs else blocks


def _block(runs: list[tuple[Configuration, int]]) -> Block:
    parts = groupby(runs, key=lambda run: run[0])
    return Block(tuple((one, tuple(seed for _, seed in some)) for one, some in parts))


def work_off(block: Block, *, traces: bool) -> Results:
    runs = [Simulated(one, seed) for one, seeds in block.parts for seed in seeds]
    runs.sort(key=lambda run: run.name)
    events, number = events_of(runs)
    manifests = [run.manifest() if traces else None for run in runs]
    table = pa.table(
        {
            "configuration": [run.configuration.key for run in runs],
            "seed": pa.array([run.seed for run in runs], pa.int64()),
            "quiesced": [run.ending.quiesced for run in runs],
            **measure(events, number, len(runs)),
            **_verdicts(events, runs),
            "manifest": pa.array(manifests, pa.string()),
        }
    )
    return Results(block.name, _parquet(table), _parquet(events) if traces else None)


def _verdicts(events: pa.Table, runs: list[Simulated]) -> dict[str, pa.Array]:
    """The verdict on each property; and of the promised ones that are violated, the first."""
    about = [
        {
            "run": run.name,
            "names": [f"p{process}" for process in range(run.configuration.processes)],
            "size": run.configuration.processes,
            "quiesced": run.ending.quiesced,
            "complete": True,
        }
        for run in runs
    ]
    judged = judge_table(events, pa.Table.from_pylist(about, RUNS))
    verdict, witness = (judged[name].combine_chunks() for name in ("verdict", "witness"))
    promises = {one: one.promises for one in {run.configuration for run in runs}}
    broken: list[str | None] = [None] * len(runs)
    sentence: list[str | None] = [None] * len(runs)
    for place in np.flatnonzero(pc.equal(verdict, "violated")).tolist():
        run, index = divmod(place, len(PROPERTIES))
        name = PROPERTIES[index]
        if broken[run] is None and name in promises[runs[run].configuration]:
            broken[run], sentence[run] = name, witness[place]["sentence"].as_py()
    return {
        **{name: verdict[i :: len(PROPERTIES)] for i, name in enumerate(PROPERTIES)},
        "broken": pa.array(broken, pa.string()),
        "sentence": pa.array(sentence, pa.string()),
    }


def _parquet(table: pa.Table) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, compression="zstd")
    return file.getvalue()
