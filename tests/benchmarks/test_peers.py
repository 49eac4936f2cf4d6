"""A comparison is fair only if the others do the work: each must find what is planted."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.pipeline.generate import SENT_PER_STEP, Shape, generate
from benchmarks.pipeline.many_runs import ManyRuns, generate_runs
from benchmarks.pipeline.peers import CHECKS, PEERS, Peer

from ordercast import oracle
from ordercast.trace.directory import Trace
from ordercast.trace.parquet import LogWriter
from ordercast.trace.verdicts import PROPERTIES

Log = list[dict[str, object]]
"""One process's rows in their order."""

SIZE = 4
STEPS = 12
STEP = 5
"""Somewhere in the middle."""


def duplicate(log: Log) -> None:
    log.append(_deliveries(log)[0])


def forge(log: Log) -> None:
    log.append(_deliveries(log)[0] | {"number": STEPS * SENT_PER_STEP + 5})


def swap_fifo(log: Log) -> None:
    first, second = [row for row in _deliveries(log) if row["origin"] == 2][10:12]
    i, j = log.index(first), log.index(second)
    log[i], log[j] = second, first


def swap_causal(log: Log) -> None:
    """Process 0 sends right after it has delivered all of the step before, so its first message
    must not come before any of them."""
    early = log.index(_row(log, 0, STEP * SENT_PER_STEP + 1))
    last_of_step = max(
        i for i, row in enumerate(log[:early])
        if row["kind"] == "deliver" and row["origin"] != 0
        and row["number"] == STEP * SENT_PER_STEP
    )  # fmt: skip
    assert log[last_of_step + 1 : early] == [
        row for row in log[last_of_step + 1 : early]
        if row["kind"] != "deliver" or row["origin"] != 0
    ], "that would break FIFO order as well: take another step"  # fmt: skip
    log.insert(last_of_step, log.pop(early))


def omit(log: Log) -> None:
    """The last message, on which nothing depends."""
    log.remove(_row(log, 0, STEPS * SENT_PER_STEP))


PLANTED: dict[str, tuple[Callable[[Log], None], str]] = {
    "a duplicate": (duplicate, "no_duplication"),
    "a forged message": (forge, "no_creation"),
    "a FIFO swap": (swap_fifo, "fifo"),
    "a causal swap": (swap_causal, "causal"),
    "a missing delivery": (omit, "agreement"),
}


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A clean one, and one for everything that can be planted, in the log of process 1."""
    directory = tmp_path_factory.mktemp("traces")
    shape = Shape(SIZE, STEPS * SENT_PER_STEP * SIZE**2)
    found = {"clean": generate(shape, directory)}
    for name, (plant, _) in PLANTED.items():
        trace = directory / name
        shutil.copytree(found["clean"], trace)
        file = trace / "events" / "run-0001.parquet"
        table = pq.read_table(file)
        log = table.to_pylist()
        plant(log)
        rows = [row | {"position": position} for position, row in enumerate(log)]
        with LogWriter(file) as writer:
            writer.write(pa.Table.from_pylist(rows, table.schema))
        found[name] = trace
    return found


@pytest.fixture(params=PEERS.values(), ids=lambda peer: peer.name)
def peer(request: pytest.FixtureRequest) -> Peer:
    chosen: Peer = request.param
    if chosen.missing is not None:
        pytest.skip(f"{chosen.name} is not held to anything: {chosen.missing}")
    return chosen


def test_a_peer_finds_nothing_in_a_clean_trace(
    peer: Peer, traces: dict[str, Path], tmp_path: Path
) -> None:
    assert peer.load(tmp_path)(traces["clean"]) == dict.fromkeys(CHECKS, 0)


@pytest.mark.parametrize("planted", PLANTED)
def test_a_peer_finds_what_is_planted(
    peer: Peer, planted: str, traces: dict[str, Path], tmp_path: Path
) -> None:
    found = peer.load(tmp_path)(traces[planted])
    assert found[PLANTED[planted][1]] >= 1
    if planted == "a causal swap":
        assert found == dict.fromkeys(CHECKS, 0) | {"causal": found["causal"]}


@pytest.mark.parametrize("planted", PLANTED)
def test_what_is_planted_is_what_it_should_be(planted: str, traces: dict[str, Path]) -> None:
    swapped = {"causal"} if planted == "a FIFO swap" else set()
    assert _violated(traces[planted]) == {PLANTED[planted][1]} | swapped


def test_generated_traces_keep_what_they_should(traces: dict[str, Path], tmp_path: Path) -> None:
    assert not _violated(traces["clean"])
    assert not _violated(generate_runs(ManyRuns(3), tmp_path))
    total = generate(Shape(SIZE, 300, total=True), tmp_path)
    assert _violated(total, PROPERTIES) == {"synchronous"}


def _violated(trace: Path, properties: Collection[str] = CHECKS) -> set[str]:
    """As the oracle sees it."""
    verdicts = [one for run in Trace.load(trace) for one in oracle.judge(run, properties)]
    assert len(verdicts) % len(properties) == 0 < len(verdicts)
    return {one.property for one in verdicts if one.verdict != "holds"}


def _deliveries(log: Log) -> Log:
    return [row for row in log if row["kind"] == "deliver"]


def _row(log: Log, origin: int, number: int) -> dict[str, object]:
    named = {(row["origin"], row["number"]): row for row in _deliveries(log)}
    return named[origin, number]
