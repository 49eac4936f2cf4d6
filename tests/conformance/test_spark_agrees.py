"""Check the checker: Spark and the oracle, which share no code, say the same of every trace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ordercast import pipeline
from ordercast.oracle import judge
from ordercast.protocols import catalog
from ordercast.trace.directory import Trace, TraceWriter
from ordercast.trace.jsonl import encode_event
from ordercast.trace.verdicts import PROPERTIES, Verdict

from .mutants import NO_CAUSAL_GUARD, NO_FIFO_GUARD
from .random_traces import random_trace
from .subjects import COMBINATIONS, TROUBLE, run_once, traffic_kinds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUNS_PER_JOB = 250


def write(traces: list[Trace], directory: Path, format: str) -> Path:
    with TraceWriter(directory, format=format) as writer:  # type: ignore[arg-type]
        for trace in traces:
            writer.add_manifest(trace.manifest)
            for event in trace.events:
                writer.write(event)
    return directory


def essence(verdict: Verdict) -> tuple[object, ...]:
    witness = verdict.witness and (verdict.witness.process, verdict.witness.messages)
    return verdict.verdict, verdict.checked, verdict.violations, witness


def compare(traces: list[Trace], verdicts: tuple[Verdict, ...]) -> dict[tuple[str, str], int]:
    """Asserts that both judges agree; counts what was found, so that a bland sample shows."""
    said = {(verdict.run, verdict.property): verdict for verdict in verdicts}
    found: dict[tuple[str, str], int] = {}
    for trace in traces:
        for expected in judge(trace, PROPERTIES):
            verdict = said.pop((expected.run, expected.property))
            log = "\n".join(encode_event(event).decode().strip() for event in trace.events)
            assert essence(verdict) == essence(expected), f"{expected}\n{trace.manifest}\n{log}"
            if expected.verdict != "holds":
                assert verdict.witness is not None
                assert verdict.witness.sentence
            key = (expected.property, expected.verdict)
            found[key] = found.get(key, 0) + 1
    assert not said, "Spark judged runs or properties that are not there"
    return found


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
@settings(
    max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(seed=st.integers(0, 2**32 - 1))
def test_spark_agrees_with_the_oracle_on_random_traces(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    format: str,
    seed: int,
) -> None:
    traces = [random_trace(seed + index, f"run {index:03}") for index in range(RUNS_PER_JOB)]
    path = write(traces, tmp_path_factory.mktemp("random") / "trace", format)
    found = compare(traces, pipeline.judge(path, spark=spark).verdicts)
    for name in PROPERTIES:
        assert found.get((name, "violated"), 0) > 0, f"no trace violated {name}: a bland sample"
        assert found.get((name, "holds"), 0) > 0, f"no trace kept {name}: a wild sample"


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
