"""Course projects' logs: the same verdicts as the run they tell of, at any length."""

from __future__ import annotations

import tracemalloc
from itertools import islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from import_samples import BROADCAST_BROKEN, BROADCAST_GOOD, Sample
from tests.conformance.subjects import run_once

from ordercast.errors import TraceError, UsageError
from ordercast.oracle import judge
from ordercast.protocols.disseminations.direct import Direct
from ordercast.protocols.orderings.fifo import Fifo
from ordercast.protocols.orderings.unordered import Unordered
from ordercast.protocols.stack import Stack
from ordercast.trace import Trace
from ordercast.trace.importers import Imported, Options, import_trace
from ordercast.trace.importers.tasks import file_events


def taken(files: dict[str, str], directory: Path, **options: object) -> tuple[Trace, Imported]:
    sources = Sample(files).write(directory / "source")
    chosen = Options(**options)  # type: ignore[arg-type]
    done = import_trace(sources, directory / "trace", format="broadcast", options=chosen)
    [trace] = Trace.load(directory / "trace")
    return trace, done


def logs_of(trace: Trace) -> dict[str, str]:
    """A run of broadcasts, as the course writes it: processes count from 1."""
    logs = dict.fromkeys(trace.members, "")
    for event in trace.events:
        if event.kind == "send":
            logs[event.process] += f"b {event.number}\n"
        elif event.kind == "deliver":
            logs[event.process] += f"d {event.message[0] + 1} {event.number}\n"
    return {f"proc{process + 1:02}.output": log for process, log in logs.items()}


def everyone_affects(size: int) -> str:
    numbers = range(1, size + 1)
    return "5\n" + "".join(f"{p} {' '.join(str(q) for q in numbers if q != p)}\n" for p in numbers)


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6))
def test_the_verdicts_are_those_of_the_run(seed: int) -> None:
    random = Random(seed)
    ordering = random.choice([Unordered, Fifo])
    run = run_once(
        lambda me, size: Stack(ordering(me, size), Direct(me, size)),
        seed=seed,
        faults=random.choice(["", "loss:20%", "delay:0ms..80ms"]),
        messages=random.randint(1, 4),
    )
    with TemporaryDirectory() as directory:
        path = Path(directory)
        (path / "config").write_text(everyone_affects(len(run.members)))
        trace, done = taken(
            logs_of(run), path, quiesced=run.manifest.quiesced, dependencies=path / "config"
        )
    said = {v.property: (v.verdict, v.checked, v.violations) for v in judge(trace)}
    assert said == {v.property: (v.verdict, v.checked, v.violations) for v in judge(run)}
    # If everyone is affected by everyone, localized causal order is causal order.
    [localized] = done.report.verdicts
    assert localized.verdict == said["causal"][0]


def test_localized_order_forgives_what_does_not_affect(tmp_path: Path) -> None:
    config = tmp_path / "config"
    for affects, verdict in (("2 1", "violated"), ("2", "holds")):
        config.write_text(f"1\n1\n{affects}\n3\n")
        trace, done = taken(
            BROADCAST_BROKEN, tmp_path / verdict, quiesced=True, dependencies=config
        )
        [found] = done.report.verdicts
        assert (found.property, found.verdict, found.checked) == ("localized_causal", verdict, 6)
        if verdict == "violated":
            assert found.witness is not None
            assert found.witness.sentence == ("1:1 depends on 0:1, but 3 delivered 1:1 without it")
        assert "causal" not in trace.manifest.extra["promises"]


@pytest.fixture(autouse=True)
def _directories(tmp_path: Path) -> None:
    for name in ("violated", "holds"):
        (tmp_path / name).mkdir()


def test_a_crash_that_the_logs_do_not_show_can_be_told(tmp_path: Path) -> None:
    files = BROADCAST_GOOD | {"3.output": "d 1 1\n"}
    trace, _ = taken(files, tmp_path / "holds", quiesced=True, crashed=("3",))
    assert {v.property: v.verdict for v in judge(trace)}["agreement"] == "holds"
    trace, _ = taken(files, tmp_path / "violated", quiesced=True)
    assert {v.property: v.verdict for v in judge(trace)}["agreement"] == "violated"


def test_a_sender_without_a_log_is_a_hole(tmp_path: Path) -> None:
    files = {name: log for name, log in BROADCAST_GOOD.items() if name != "1.output"}
    trace, done = taken(files, tmp_path, quiesced=True)
    assert trace.manifest.processes == ("2", "3", "1")
    assert not trace.manifest.complete
    assert done.report.notes == ["there is no log of 1"]
    assert {v.property: v.verdict for v in judge(trace)}["no_creation"] == "unknown"


def test_the_name_of_a_process_is_where_the_user_says(tmp_path: Path) -> None:
    files = {f"run7-{name[0]}-v2.txt": log for name, log in BROADCAST_GOOD.items()}
    with pytest.raises(UsageError, match=r"are both the log of process 2: .* --process-pattern"):
        taken(files, tmp_path / "violated")
    trace, _ = taken(files, tmp_path / "holds", process_pattern=r"-(?<process>\d+)-")
    assert trace.manifest.processes == ("1", "2", "3")


@pytest.mark.parametrize(
    ("log", "sentence"),
    [
        ("b 0\n", "1.output, line 1: expected 'b SEQ'"),
        ("b 1\nb 1\n", "1.output, line 2: message 1 is broadcast after message 1"),
        ("b 1\n\nx\n", "1.output, line 3: expected 'b SEQ'"),
        (f"b {2**63}\n", "line 1: expected"),
    ],
)
def test_bad_lines(log: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=sentence):
        taken({"1.output": log}, tmp_path)


def test_a_configuration_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("5\n1 x\n")
    with pytest.raises(TraceError, match="config, line 2: expected numbers of processes"):
        taken(BROADCAST_GOOD, tmp_path / "holds", dependencies=config)


def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    """Reading holds nothing back, and writing holds one row group."""
    file = tmp_path / "1.output"
    with file.open("w") as log:
        log.writelines(f"b {n}\nd 1 {n}\n" for n in range(1, 50_001))
    size = file.stat().st_size
    tracemalloc.start()
    rows = file_events(file, format="broadcast", run="r", processes=["1"])
    assert sum(1 for _ in rows) == 100_000
    _, read = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    import_trace([file], tmp_path / "trace", format="broadcast")
    _, written = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size > 800_000
    assert read < 200_000
    assert written < 15_000_000


def test_logs_are_read_as_they_are_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "1.output"
    file.write_text("b 1\nd 1 1\nnonsense\n")
    rows = file_events(file, format="broadcast", run="r", processes=["1"])
    assert [event.kind for event in islice(rows, 2)] == ["send", "deliver"]
    with pytest.raises(TraceError, match="line 3"):
        next(rows)
