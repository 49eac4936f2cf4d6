"""Broadcast runs that nobody simulates with a protocol, healthy or spoilt, and both ways to judge
them: whole, and split into row groups of a few rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ordercast.pipeline.conclude import conclude
from ordercast.pipeline.huge import split as split_run
from ordercast.pipeline.judging import RUNS, Judged, judge_rows
from ordercast.pipeline.rows import Piece, load
from ordercast.pipeline.source import inspect
from ordercast.trace.event import Event
from ordercast.trace.manifest import Manifest
from ordercast.trace.parquet import LogWriter, to_table
from ordercast.trace.verdicts import PROPERTIES


@dataclass
class Broadcast:
    """A group in which everyone delivers each origin's messages one after the other."""

    random: Random
    size: int
    causal: bool
    total: bool
    logs: list[list[tuple[str, int | None, int | None]]] = field(init=False)

    def __post_init__(self) -> None:
        self.logs = [[] for _ in range(self.size)]
        self.delivered = [[0] * self.size for _ in range(self.size)]
        self.needs: list[list[list[int]]] = [[] for _ in range(self.size)]
        self.order: list[int] = []

    def send(self, p: int) -> None:
        self.needs[p].append(self.delivered[p].copy())
        self.order.append(p)
        self.logs[p].append(("send", p, len(self.needs[p])))

    def deliver(self, p: int) -> bool:
        """Some message that p may deliver now, if there is one."""
        mine = self.delivered[p]
        ready = [o for o in range(self.size) if mine[o] < len(self.needs[o]) and self._may(p, o)]
        if self.total:
            ready = self.order[sum(mine) :][:1]
        if ready:
            origin = self.random.choice(ready)
            mine[origin] += 1
            self.logs[p].append(("deliver", origin, mine[origin]))
        return bool(ready)

    def _may(self, p: int, origin: int) -> bool:
        needs = self.needs[origin][self.delivered[p][origin]]
        return not self.causal or all(
            have >= need for have, need in zip(self.delivered[p], needs, strict=True)
        )


def broadcast(
    seed: int, *, steps: int | None = None, size: int | None = None, crashes: float = 0.003
) -> pa.Table:
    random = Random(seed)
    group = Broadcast(
        random,
        size=size or random.randint(1, 5),
        causal=random.random() < 0.9,
        total=random.random() < 0.2,
    )
    down: set[int] = set()
    slow = [random.random() for _ in range(group.size)]
    for _ in range(steps or random.choice([40, 80, 150, 500])):
        p = random.randrange(group.size)
        if p in down:
            continue
        if random.random() < crashes and group.size > 1:
            down.add(p)
            group.logs[p].append(("crash", None, None))
        elif random.random() < 0.15:
            group.send(p)
        elif random.random() < 0.4 + slow[p]:
            group.deliver(p)
        elif random.random() < 0.02:
            group.logs[p].append(("join", None, None))
    someone = random.randrange(group.size)  # who mostly ends up with everything
    while someone not in down and group.deliver(someone):
        pass
    return to_table(
        Event("r", p, position, *row)  # type: ignore[arg-type]
        for p, log in enumerate(group.logs)
        for position, row in enumerate(log)
    )


def write(
    directory: Path, events: pa.Table, manifest: Manifest, rows: int, *, outlined: bool = False
) -> Path:
    """One file per process, with row groups of a few rows, as others write them or we do."""
    (directory / "events").mkdir(parents=True)
    (directory / "manifest.jsonl").write_bytes(manifest.to_json())
    for p in pc.unique(events.column("process")).to_pylist():
        mine = events.filter(pc.equal(events.column("process"), p))
        path = directory / "events" / f"{p}.parquet"
        if outlined:
            with LogWriter(path, group_rows=rows) as writer:
                writer.write(mine)
        else:
            pq.write_table(mine, path, row_group_size=rows)
    return directory


def manifest_of(events: pa.Table, *, quiesced: bool, complete: bool = True) -> Manifest:
    size = pc.max(events.column("process")).as_py() + 1
    names = tuple(f"p{p}" for p in range(size))
    return Manifest("r", names, quiesced=quiesced, complete=complete)


def whole(path: Path, manifest: Manifest) -> Judged:
    files: dict[str, list[Piece]] = {}
    for group in inspect(path).groups:
        files.setdefault(group.piece.file, []).append(group.piece)
    # At once: row groups of a few rows take far longer to open than to judge.
    events, _ = load(
        replace(first, groups=tuple(i for one in (first, *rest) for i in one.groups or ()))
        for first, *rest in files.values()
    )
    runs = pa.Table.from_pylist(
        [
            {
                "run": "r",
                "names": manifest.processes,
                "size": len(manifest.processes),
                "quiesced": manifest.quiesced,
                "complete": manifest.complete,
            }
        ],
        RUNS,
    )
    return judge_rows(events, runs)


def each(function: Callable[[Any], Any], those: Sequence[Any], kind: Any, /) -> list[Any]:
    """What Spark would do, here: answers travel as bytes."""
    return [msgspec.json.decode(msgspec.json.encode(function(one)), type=kind) for one in those]


def split(path: Path, manifest: Manifest, tasks: int) -> Judged:
    source, size = inspect(path), len(manifest.processes)
    pieces = [group.piece for group in source.groups]
    return conclude(
        manifest,
        split_run(pieces, size, PROPERTIES, each, tasks, complete=manifest.complete),
        PROPERTIES,
        source.rows,
    )
