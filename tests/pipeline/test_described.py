"""What is known of runs beside their events: as columns, and to each task only its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.pipeline.described import DESCRIBED, describe, with_bare, with_holes
from ordercast.pipeline.engine import judge_source
from ordercast.pipeline.options import Options
from ordercast.pipeline.rows import FLAWS
from ordercast.pipeline.source import inspect, items
from ordercast.trace.manifest import Manifest
from ordercast.trace.parquet import to_table

from .builders import run, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BOTH = [
    Manifest("r2", ("x",), complete=False, order="fifo"),
    Manifest("r1", ("a", "b"), quiesced=True, extra={"promises": ["causal"]}),
]


def test_manifests_as_columns() -> None:
    one, two = describe(BOTH).to_pylist()
    assert (one["run"], one["names"], one["size"]) == ("r1", ["a", "b"], 2)
    assert (one["quiesced"], one["complete"], one["promises"]) == (True, True, ["causal"])
    assert (two["run"], two["quiesced"], two["complete"]) == ("r2", False, False)
    assert two["promises"][-1] == "fifo"
    assert one["manifest"] != two["manifest"]
    assert describe([]).schema == DESCRIBED


def test_runs_that_nobody_described() -> None:
    events = pa.table({"run": pa.array(["r3", "r1", "r3"]).dictionary_encode()})
    found = with_bare(describe(BOTH), events, quiesced=True).to_pylist()
    assert [row["run"] for row in found] == ["r1", "r2", "r3"]
    unknown = {"size": None, "promises": None, "manifest": None}
    assert found[2] == {"run": "r3", "names": [], "quiesced": True, "complete": True, **unknown}


def test_a_row_that_was_left_out_is_a_hole() -> None:
    bad = pa.Table.from_pylist([{"flaw": "broken", "run": "r1"}, {"flaw": "broken"}], FLAWS)
    three = describe([*BOTH, Manifest("r3", ())])
    assert with_holes(three, FLAWS.empty_table(), torn=False) == three
    assert with_holes(three, bad, torn=False)["complete"].to_pylist() == [False, False, True]
    torn = with_holes(three, FLAWS.empty_table(), torn=True)
    assert torn["complete"].to_pylist() == [False, False, False]


def test_every_task_gets_the_manifests_of_its_own_runs(tmp_path: Path) -> None:
    runs = [run(f"run {index:02}", "s1 d0:1", "d0:1") for index in range(40)]
    trace = write(tmp_path / "trace", runs, "parquet")
    file = trace / "events" / "part-0.parquet"
    rows = [event for one in runs[:30] for event in one.events]  # the last ones have no events
    pq.write_table(to_table(rows), file, row_group_size=7)
    work = items(inspect(trace), 20)
    assert work is not None
    assert len(work) > 3
    names = [item.described["run"].to_pylist() for item in work]
    assert [name for mine in names for name in mine] == [one.manifest.run for one in runs]
    for item, mine in zip(work, names, strict=True):
        assert mine
        assert all(item.low <= name and (item.high is None or name < item.high) for name in mine)


def test_violations_travel_only_if_they_are_wanted(spark: SparkSession, tmp_path: Path) -> None:
    trace = write(tmp_path / "trace", [run("r", "s1 s2 d0:1 d0:2", "d0:2 d0:1")])
    counts = []
    for listed in (True, False):
        results = judge_source(spark, inspect(trace), Options(listed=listed))
        counts.append([len(results.collect(name)) for name in ("verdicts", "violations")])
        results.release()
    (verdicts, violations), rest = counts
    assert violations > 0
    assert rest == [verdicts, 0]
