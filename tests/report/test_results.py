"""The tables of verify say on the page what the verdicts say."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ordercast.errors import TraceError
from ordercast.report.costs import Spread
from ordercast.report.digest import digest_of, outcome_of
from ordercast.report.results import read_results
from ordercast.report.sample import judged_in
from ordercast.report.summary import headline, ladder, rows
from ordercast.trace.verdicts import Judgement, order_held
from tests.report.builders import HELD, broken, judgement_on, run

COST = {
    "run": "r2",
    "process": 1,
    "class": "broadcast",
    "deliveries": 4,
    **{f"{n}_{w}_us": i for n in ("latency", "held") for i, w in enumerate(("p50", "p90", "p99"))},
    "latency_max_us": 9,
    "held_max_us": None,
    "depth_max": 3,
    "copies": 1.5,
    "control_bytes": 20.0,
}


def stored(judgement: Judgement, path: Path) -> Path:
    """As `verify --output` would."""
    by_run = {r: [v for v in judgement.verdicts if v.run == r] for r in judgement.promises}
    tables = {
        "verdicts": [
            msgspec.to_builtins(v) | {"promised": v.property in judgement.promises[v.run]}
            for v in judgement.verdicts
        ],
        "runs": [
            {
                "run": name,
                "names": ["a", "b", "c"],
                "events": 12,
                "order_held": order_held(verdicts),
                "promised": list(judgement.promises[name]),
                "outcome": outcome_of(
                    v.verdict for v in verdicts if v.property in judgement.promises[name]
                ),
            }
            for name, verdicts in by_run.items()
        ],
        "costs": [COST],
    }
    for name, content in tables.items():
        (path / name).mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(content), path / name / "part-0001.parquet")
    record = {"terms": {}, "parts": [{"number": 1, "tables": list(tables), "runs": 3}]}
    (path / "results.json").write_text(json.dumps(record))
    return path


@pytest.fixture
def judgement() -> Judgement:
    traces = [run(HELD, name=f"r{number}") for number in range(1, 6)]
    unsure = broken("fifo", run="r4", outcome="unknown", sentence="nobody knows")
    return judgement_on(traces, broken(run="r3"), broken(run="r2"), unsure)


def test_tables_and_verdicts_give_the_same_page(judgement: Judgement, tmp_path: Path) -> None:
    results = read_results(stored(judgement, tmp_path / "results"), lines=4)
    plain = digest_of(judgement, lines=4)
    assert headline(results.digest) == headline(plain)
    assert headline(plain).text == "Causal order was violated in 2 of 5 runs"
    assert ladder(results.digest) == ladder(plain)
    assert rows(results.digest) == rows(plain)
    assert [line.name for line in results.digest.lines] == ["r2", "r3", "r4", "r1"]
    assert [line.events for line in results.digest.lines] == [12] * 4
    for one, other in zip(results.judged(2), judged_in(judgement, ["r2", "r3"]), strict=True):
        assert set(one.verdicts) == set(other.verdicts)
        assert set(one.promises) == set(other.promises)


def test_costs_come_with_names(judgement: Judgement, tmp_path: Path) -> None:
    [cost] = read_results(stored(judgement, tmp_path / "results"), lines=4).costs("r2")
    assert (cost.name, cost.process, cost.depth_max, cost.copies) == ("b", 1, 3, 1.5)
    assert cost.latency_us == Spread(0, 1, 2, 9)
    assert cost.held_us is None


def test_a_directory_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="there are no results of verify --output here"):
        read_results(tmp_path, lines=4)
