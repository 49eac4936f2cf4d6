"""Ten million rows in which everything holds but for a few planted things: just those are found.

Messages go round one at a time: each is delivered by everyone before the next one is sent. So all
eleven properties hold, and what each planted thing breaks can be said beforehand.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from ordercast import pipeline
from ordercast.pipeline import engine
from ordercast.trace.manifest import Manifest
from ordercast.trace.parquet import LogWriter, arrow_schema
from ordercast.trace.verdicts import PROPERTIES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIZE = 10
MESSAGES = 1_000_000
KINDS = ["send", "deliver"]


class Log:
    """One process's rows, as they are and with what is to be changed in them."""

    def __init__(self, me: int) -> None:
        self.me = me
        turns = np.arange(MESSAGES)
        mine = turns % SIZE == me
        repeats = np.where(mine, 2, 1)  # an own message is sent first
        self.turn = np.repeat(turns, repeats)
        self.kind = np.ones(len(self.turn), np.int8)
        starts = np.cumsum(repeats) - repeats
        self.kind[starts[mine]] = 0
        self.origin = (self.turn % SIZE).astype(np.int32)
        self.number = self.turn // SIZE + 1

    def row(self, turn: int, *, send: bool = False) -> int:
        (rows,) = np.nonzero((self.turn == turn) & (self.kind == (0 if send else 1)))
        return int(rows[0])

    def keep(self, rows: Any) -> None:
        """These rows, in this order."""
        for name in ("turn", "kind", "origin", "number"):
            setattr(self, name, getattr(self, name)[rows])

    def swap(self, a: int, b: int) -> None:
        rows = np.arange(len(self.turn))
        rows[a], rows[b] = rows[b], rows[a]
        self.keep(rows)

    def remove(self, rows: list[int]) -> None:
        self.keep(np.delete(np.arange(len(self.turn)), rows))

    def repeat(self, row: int, after: int) -> None:
        self.keep(np.insert(np.arange(len(self.turn)), after + 1, row))

    def table(self, sends_to: dict[tuple[int, int], list[int]]) -> pa.Table:
        size = len(self.turn)
        to: list[list[int] | None] = [None] * size
        for (origin, number), destinations in sends_to.items():
            if origin == self.me:
                (rows,) = np.nonzero((self.number == number) & (self.kind == 0))
                to[int(rows[0])] = destinations
        columns = {
            "run": pa.repeat(pa.scalar("r"), size),
            "process": pa.array(np.full(size, self.me, np.int32)),
            "position": pa.array(np.arange(size)),
            "kind": pa.array(KINDS).take(pa.array(self.kind)),
            "origin": pa.array(self.origin),
            "number": pa.array(self.number),
            "destinations": pa.array(to, pa.list_(pa.int32())),
        }
        missing = {f.name: pa.nulls(size, f.type) for f in arrow_schema() if f.name not in columns}
        return pa.table(columns | missing).select(arrow_schema().names).cast(arrow_schema())


def plant(logs: list[Log]) -> dict[tuple[int, int], list[int]]:
    """Changes the logs; returns the messages that are not for everyone."""
    # A duplicate: p3 delivers a message of long ago again.
    logs[3].repeat(logs[3].row(1000), after=logs[3].row(200_000))
    # A forgery: p4 delivers what p6 never sent.
    at = logs[4].row(300_000)
    logs[4].repeat(at, after=at)
    logs[4].origin[at + 1] = 6
    logs[4].number[at + 1] = 10**9
    # A swap: p5 delivers two messages the wrong way round; the second depends on the first.
    turn = 400_001
    logs[5].swap(logs[5].row(turn), logs[5].row(turn + 1))
    # A crown: p2 sends its message before it has delivered that of p1, and everyone still delivers
    # them in one order.
    turn = 500_001
    assert (turn % SIZE, (turn + 1) % SIZE) == (1, 2)
    logs[2].swap(logs[2].row(turn), logs[2].row(turn + 1, send=True))
    # A cycle that no pair shows: three messages in a row, each for two of three processes.
    turn = 600_004
    readers = {turn: [7, 8], turn + 1: [7, 9], turn + 2: [8, 9]}
    for p, log in enumerate(logs):
        gone = [log.row(t) for t, to in readers.items() if p not in to]
        log.remove(gone)
    logs[8].swap(logs[8].row(turn), logs[8].row(turn + 2))  # p8: the third, then the first
    # An omission: p0 never delivers the last message but two; it delivers the two after it.
    logs[0].remove([logs[0].row(MESSAGES - 3)])
    return {(t % SIZE, t // SIZE + 1): to for t, to in readers.items()}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("planted")
    (path / "events").mkdir()
    logs = [Log(p) for p in range(SIZE)]
    sends_to = plant(logs)
    for log in logs:
        with LogWriter(path / "events" / f"{log.me}.parquet") as writer:
            writer.write(log.table(sends_to))
    manifest = Manifest("r", tuple(f"p{p}" for p in range(SIZE)), quiesced=True)
    (path / "manifest.jsonl").write_bytes(manifest.to_json())
    return path


def test_exactly_what_was_planted_is_found(
    spark: SparkSession, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nobody gathers the run for that."""

    def gather(*_: object) -> None:
        raise AssertionError("the run was gathered into one task")

    monkeypatch.setattr(engine, "_judge_items", gather)
    judgement = pipeline.judge(trace, spark=spark)
    assert judgement.events > 10_000_000
    found = {one.property: one.violations for one in judgement.verdicts if one.violations}
    assert found == {
        "no_duplication": 1,
        "no_creation": 1,
        "agreement": 1,
        "uniform_agreement": 1,
        # After the omission p0 still delivers two messages, of other senders: both depend on it.
        # The swap breaks one. The cycle's messages know nothing of each other.
        "causal": 2 + 1,
        "total_pairwise": 1,
        "total_acyclic": 2,
        # The swap: p5 lacks the first message, and all the others the second one before the first.
        # The omission: p0 lacks it for both that follow.
        "total_gap_free": SIZE + 2,
        # The swap, the crown, the cycle.
        "synchronous": 3,
    }
    said = {one.property: one.witness for one in judgement.verdicts if one.witness}
    assert said["no_duplication"] is not None
    assert said["no_duplication"].process == 3
    assert said["no_duplication"].messages == ("0:101",)
    assert said["no_creation"] is not None
    assert (said["no_creation"].process, said["no_creation"].messages) == (4, ("6:1000000000",))
    assert said["total_pairwise"] is not None
    assert said["total_pairwise"].messages == ("1:40001", "2:40001")
    assert set(found) < set(PROPERTIES)
