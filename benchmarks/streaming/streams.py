"""Streams to be put in order, as files: so many groups and origins, so much out of order."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["SCHEMA", "Stream"]

SCHEMA = (
    "room string, origin int, number long, stamp array<long>, id long, time timestamp, text string"
)
REACH = 1000
"""How much later, in rows, one that is out of order comes at most."""
FILES_A_BATCH = 2
_TEXT = "some words of a message"


@dataclass(frozen=True)
class Stream:
    groups: int
    origins: int
    disorder: float
    rows: int
    """In a batch."""
    batches: int
    held: int = 0
    """Messages a group that wait for one which never comes."""

    @property
    def name(self) -> str:
        kept = f"-held{self.held}" if self.held else ""
        return f"g{self.groups}-n{self.origins}-{round(100 * self.disorder)}%{kept}"

    def write(self, directory: Path) -> Path:
        """The files, of which FILES_A_BATCH are a batch."""
        path = directory / self.name.replace("%", "")
        if path.exists():
            return path
        path.mkdir(parents=True)
        random = np.random.default_rng(1)
        rows = self._rows(random)
        share = self.rows // FILES_A_BATCH
        waiting = self._waiting()
        for at in range(self.batches * FILES_A_BATCH):
            some = rows.slice(at * share, share)
            if at == 0 and len(waiting):
                some = pa.concat_tables([waiting, some])
            pq.write_table(some, path / f"{at:05}.parquet")
        return path

    def _rows(self, random: np.random.Generator) -> pa.Table:
        """Every member has heard all that was sent before: the most there can be to wait for."""
        count = self.rows * self.batches
        group = random.integers(0, self.groups, count)
        origin = random.integers(0, self.origins, count)
        by_group = np.argsort(group, kind="stable")
        sent = np.zeros((count, self.origins), np.int64)
        sent[np.arange(count), origin[by_group]] = 1
        stamps = np.cumsum(sent, axis=0)
        starts = np.searchsorted(group[by_group], np.arange(self.groups))
        before = np.concatenate((np.zeros((1, self.origins), np.int64), stamps))[starts]
        stamps -= before[group[by_group]]
        own = np.empty_like(stamps)
        own[by_group] = stamps
        late = random.random(count) < self.disorder
        order = np.argsort(
            np.arange(count) + late * random.integers(1, REACH, count), kind="stable"
        )
        return self._table(group[order], origin[order], own[order], order)

    def _waiting(self) -> pa.Table:
        """Of one origin more, whose first message is lost."""
        group = np.repeat(np.arange(self.groups), self.held)
        stamps = np.zeros((len(group), self.origins + 1), np.int64)
        stamps[:, -1] = np.tile(np.arange(2, self.held + 2), self.groups)
        origin = np.full(len(group), self.origins)
        return self._table(group, origin, stamps, -1 - np.arange(len(group)))

    def _table(
        self, group: np.ndarray, origin: np.ndarray, stamps: np.ndarray, ids: np.ndarray
    ) -> pa.Table:
        count, width = stamps.shape
        offsets = pa.array(np.arange(0, count * width + 1, width), pa.int32())
        names = pa.array([f"room-{n}" for n in range(self.groups)])
        return pa.table(
            {
                "room": names.take(pa.array(group)),
                "origin": pa.array(origin, pa.int32()),
                "number": stamps[np.arange(count), origin],
                "stamp": pa.ListArray.from_arrays(offsets, pa.array(stamps.ravel())),
                "id": ids,
                "time": pa.array(np.maximum(ids, 0) * 1000, pa.timestamp("us", "UTC")),
                "text": pa.array([_TEXT] * count),
            }
        )
