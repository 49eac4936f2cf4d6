"""Check the checker: Spark and the oracle, which share no code, say the same of every trace."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING
from unittest import mock

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ordercast import pipeline
from ordercast.oracle import judge
from ordercast.pipeline.judging import RUNS as RUNS_SCHEMA
from ordercast.pipeline.judging import judge_rows
from ordercast.pipeline.kernels import kernel
from ordercast.protocols import catalog
from ordercast.trace.directory import Trace, TraceWriter, read_events
from ordercast.trace.jsonl import encode_event
from ordercast.trace.parquet import to_table
from ordercast.trace.verdicts import PROPERTIES, Verdict

from ..seeds import often, seed
from .mutants import NO_CAUSAL_GUARD, NO_FIFO_GUARD
from .random_traces import knotted_trace, random_trace
from .subjects import COMBINATIONS, TROUBLE, run_once, traffic_kinds
from .verdicts import essence

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("compiled")

RUNS = often(3_000, long=16_000)


def write(traces: list[Trace], directory: Path, format: str) -> Path:
    with TraceWriter(directory, format=format) as writer:  # type: ignore[arg-type]
        for trace in traces:
            writer.add_manifest(trace.manifest)
            for event in trace.events:
                writer.write(event)
    return directory


def told(expected: Verdict, trace: Trace) -> str:
    log = "\n".join(encode_event(event).decode().strip() for event in trace.events)
    return f"{expected}\n{trace.manifest}\n{log}"


def compare(traces: list[Trace], verdicts: tuple[Verdict, ...]) -> dict[tuple[str, str], int]:
    """Asserts that both judges agree; counts what was found, so that a bland sample shows."""
    said = {(verdict.run, verdict.property): verdict for verdict in verdicts}
    found: dict[tuple[str, str], int] = {}
    for trace in traces:
        for expected in judge(trace, PROPERTIES):
            verdict = said.pop((expected.run, expected.property))
            assert essence(verdict) == essence(expected), told(expected, trace)
            if expected.verdict != "holds":
                assert verdict.witness is not None
                assert verdict.witness.sentence
            key = (expected.property, expected.verdict)
            found[key] = found.get(key, 0) + 1
    assert not said, "Spark judged runs or properties that are not there"
    return found


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    """A failure prints the whole trace."""
    start = seed()
    return [
        (knotted_trace if index % 4 == 0 else random_trace)(start + index, f"run {index:05}")
        for index in range(RUNS)
    ]


@pytest.fixture(scope="module")
def parquet(traces: list[Trace], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(traces, tmp_path_factory.mktemp("random") / "trace", "parquet")


@pytest.fixture(scope="module")
def judged(spark: SparkSession, parquet: Path) -> pipeline.Judgement:
    return pipeline.judge(parquet, spark=spark)


def test_spark_agrees_with_the_oracle_on_random_traces(
    traces: list[Trace], judged: pipeline.Judgement
) -> None:
    found = compare(traces, judged.verdicts)
    for name in PROPERTIES:
        assert found.get((name, "violated"), 0) > 0, f"no trace violated {name}: a bland sample"
        assert found.get((name, "holds"), 0) > 0, f"no trace kept {name}: a wild sample"
    crossed, knotted = (found[name, "violated"] for name in ("total_pairwise", "total_acyclic"))
    assert knotted > crossed, "no trace has a cycle that no pair shows"


def test_neither_order_nor_files_nor_partitions_change_a_byte(
    spark: SparkSession, parquet: Path, judged: pipeline.Judgement, tmp_path: Path
) -> None:
    """The rows shuffled, over other files, some of them JSON lines: they must travel now."""
    rows = list(read_events(parquet))
    Random(5).shuffle(rows)
    (tmp_path / "events").mkdir()
    (tmp_path / "manifest.jsonl").write_bytes((parquet / "manifest.jsonl").read_bytes())
    third = len(rows) // 3
    (tmp_path / "events" / "a.jsonl").write_bytes(b"".join(map(encode_event, rows[:third])))
    pq.write_table(to_table(rows[third:]), tmp_path / "events" / "b.parquet", row_group_size=7777)
    judgement = pipeline.judge(tmp_path, spark=spark)
    assert judgement == judged
    json = msgspec.json.encode
    assert json(judgement.to_json()) == json(judged.to_json())


def test_judged_here_it_is_the_same(parquet: Path, judged: pipeline.Judgement) -> None:
    assert pipeline.judge(parquet, here=True) == judged


def test_kernels_say_the_same_compiled_or_not(traces: list[Trace]) -> None:
    some = traces[:300]
    events = pa.concat_tables([to_table(trace.events) for trace in some])
    runs = pa.Table.from_pylist(
        [
            {
                "run": trace.manifest.run,
                "names": trace.manifest.processes,
                "size": len(trace.manifest.processes),
                "quiesced": trace.manifest.quiesced,
                "complete": trace.manifest.complete,
            }
            for trace in some
        ],
        RUNS_SCHEMA,
    )
    both = []
    for rows in (0, 10**9):
        with (
            mock.patch.object(kernel, "WORTH_LOADING", rows),
            mock.patch.object(kernel, "WORTH_COMPILING", rows),
        ):
            both.append(judge_rows(events, runs))
    assert both[0] == both[1]


def test_a_bare_events_file_is_judged_as_the_oracle_does(
    spark: SparkSession, tmp_path: Path
) -> None:
    traces = [random_trace(seed, f"run {seed:03}") for seed in range(120)]
    rows = [event for trace in traces for event in trace.events]
    file = tmp_path / "events.jsonl"
    file.write_bytes(b"".join(map(encode_event, rows)))
    for quiesced in (False, True):
        bare = Trace.load(file, quiesced=quiesced)
        compare(bare, pipeline.judge(file, spark=spark, quiesced=quiesced).verdicts)


def test_sparks_verdict_catches_mutants_and_clears_every_algorithm(
    spark: SparkSession, tmp_path: Path
) -> None:
    traces = [
        run_once(mutant.builder(), seed=seed, messages=6, run=f"{mutant.what} {seed}")
        for mutant in (NO_CAUSAL_GUARD, NO_FIFO_GUARD)
        for seed in range(20)
    ]
    for ordering, dissemination in COMBINATIONS:
        for trouble, faults in TROUBLE.items():
            promises = catalog.promises(ordering, dissemination, crashes="crash" in faults)
            traces.append(
                run_once(
                    lambda me, size, names=(ordering, dissemination): catalog.build(
                        *names, me, size
                    ),
                    seed=1,
                    faults=faults,
                    destinations=traffic_kinds(ordering, dissemination)[-1],
                    run=f"{ordering}/{dissemination}/{trouble}",
                    promises=promises,
                )
            )
    judgement = pipeline.judge(write(traces, tmp_path / "trace", "parquet"), spark=spark)
    compare(traces, judgement.verdicts)
    violated = {(v.run, v.property) for v in judgement.verdicts if v.verdict == "violated"}
    for mutant, name in ((NO_CAUSAL_GUARD, "causal"), (NO_FIFO_GUARD, "fifo")):
        assert any(run.startswith(mutant.what) for run, broken in violated if broken == name)
    for run, name in violated:
        if "/" in run:
            assert name not in judgement.promises[run], f"{run} broke its promise of {name}"
