"""Rows that lie anyhow, put in order: by the tasks' functions, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ordercast.pipeline import arrange as module
from ordercast.pipeline.arrange import arrange
from ordercast.pipeline.huge import Unhealthy
from ordercast.pipeline.huge.groups import read
from ordercast.pipeline.source import inspect
from ordercast.trace.parquet import EVERYONE, arrow_schema

T = TypeVar("T")
R = TypeVar("R")
COLUMNS = ("process", "position", "kind", "origin", "number")


def each(function: Callable[[T], R], those: Sequence[T], kind: type[R], /) -> list[R]:
    return [function(one) for one in those]


def log(
    *, processes: int = 3, rows: int = 700, step: int = 1, some: bool = False
) -> list[dict[str, Any]]:
    """Every process's deliveries, a few crashes, and messages that are perhaps for some only."""
    random = Random(rows)
    found = []
    for p in range(processes):
        for i in range(rows + p):
            one = {"run": "r", "process": p, "position": i * step, "kind": "deliver"}
            if random.random() < 0.01:
                found.append(one | {"kind": "crash"})
            elif some and random.random() < 0.1:
                found.append(
                    one | {"kind": "send", "origin": p, "number": i + 1, "destinations": [p, 0]}
                )
            else:
                found.append(one | {"origin": random.randrange(3), "number": i * 10**12 + 1})
    return found


def write(path: Path, rows: list[dict[str, Any]], **how: Any) -> list[dict[str, Any]]:
    """The rows, in some order, in two files; returns them in that order."""
    (path / "events").mkdir(parents=True)
    mixed = Random(5).sample(rows, len(rows))
    half = len(mixed) // 2
    for name, part in (("a", mixed[:half]), ("b", mixed[half:])):
        table = pa.Table.from_pylist(part, arrow_schema())
        pq.write_table(table, path / "events" / f"{name}.parquet", row_group_size=150, **how)
    return mixed


def arranged(path: Path, place: Path) -> list[dict[str, Any]]:
    """What was written, which is checked to be row groups of one process each, by name order."""
    place.mkdir()
    pieces = arrange(inspect(path).groups, place, each)
    found: list[dict[str, Any]] = []
    for piece in pieces:
        everyone = EVERYONE in (pq.read_metadata(piece.token).metadata or {})
        table = read(piece, (*COLUMNS, "destinations"))
        assert len(table) == piece.rows
        assert len(set(table["process"].to_pylist())) == 1
        assert not (everyone and table["destinations"].null_count < len(table))
        found += table.to_pylist()
    files = {Path(piece.file) for piece in pieces}
    assert set(place.iterdir()) == files, "what went from task to task is gone"
    return found


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    keys = (*COLUMNS, "destinations")
    whole = [{key: row.get(key) for key in keys} for row in rows]
    return sorted(whole, key=lambda row: (row["process"], row["position"]))


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STRETCH_ROWS", 100)
    monkeypatch.setattr(module, "ROW_GROUP_ROWS", 64)


@pytest.mark.parametrize("some", [False, True], ids=["for everyone", "for some"])
@pytest.mark.parametrize("statistics", [True, ["run"]], ids=["bounds", "no bounds"])
def test_each_log_comes_out_in_order(tmp_path: Path, some: bool, statistics: Any) -> None:
    rows = log(some=some)
    write(tmp_path / "trace", rows, write_statistics=statistics)
    assert arranged(tmp_path / "trace", tmp_path / "place") == in_order(rows)


@pytest.mark.parametrize("statistics", [True, ["run"]], ids=["bounds", "no bounds"])
def test_positions_may_be_times(tmp_path: Path, statistics: Any) -> None:
    """With bounds, stretches are as wide as it takes: not one for each row."""
    rows = log(step=10**12)
    rows[5]["position"] += 2**62
    write(tmp_path / "trace", rows, write_statistics=statistics)
    assert arranged(tmp_path / "trace", tmp_path / "place") == in_order(rows)
    files = len(list((tmp_path / "place").iterdir()))
    assert files < len(rows) / 50 or statistics is not True


def test_more_stretches_than_sixteen_bits_can_count(tmp_path: Path) -> None:
    rows = [one | {"process": one["process"] * 10**9} for one in log()]
    write(tmp_path / "trace", rows, write_statistics=["run"])
    assert arranged(tmp_path / "trace", tmp_path / "place") == in_order(rows)


def test_two_events_at_one_position_both_stay(tmp_path: Path) -> None:
    """Whoever looks at them next will tell."""
    rows = log()
    rows[8]["position"] = rows[9]["position"]
    mixed = write(tmp_path / "trace", rows)
    assert arranged(tmp_path / "trace", tmp_path / "place") == in_order(mixed)


def test_a_broken_row_is_told_before_anything_is_put_in_order(tmp_path: Path) -> None:
    rows = log()
    rows[8]["position"] = -1
    write(tmp_path / "trace", rows)
    with pytest.raises(Unhealthy, match="has rows that cannot be used"):
        arranged(tmp_path / "trace", tmp_path / "place")
