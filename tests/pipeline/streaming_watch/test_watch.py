"""A watch says what the batch judge says, however the rows come, and never takes anything back."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import msgspec
import pytest

from ordercast import oracle
from ordercast.errors import CheckpointError
from ordercast.pipeline.described import describe
from ordercast.pipeline.judging import RUNS, judge_table
from ordercast.pipeline.streaming.watch_log import Log, kept_columns
from ordercast.pipeline.streaming.watch_memory import Memory
from ordercast.pipeline.streaming.watch_prune import finished
from ordercast.protocols import catalog
from ordercast.protocols.stack import Stack
from ordercast.trace.directory import Trace
from ordercast.trace.manifest import Manifest
from ordercast.trace.parquet import to_table
from ordercast.trace.verdicts import PROPERTIES

from ...conformance.random_traces import knotted_trace, random_trace
from ...conformance.subjects import run_once
from ...conformance.verdicts import essence
from ...seeds import seed
from ..builders import event, run
from .stream import Stream, batches

TRACES = 60
SURE_AT_ONCE = ("no_duplication", "fifo", "causal", "total_pairwise", "total_acyclic",
                "total_gap_free", "synchronous")  # fmt: skip
MODES = {"all is kept": {}, "what is done is forgotten": {"tidy": 1}}


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    """All of them come to rest."""
    start = seed()
    made = ((knotted_trace if n % 4 == 0 else random_trace)(start + n, "r") for n in range(TRACES))
    return [replace(one, manifest=replace(one.manifest, quiesced=True)) for one in made]


def told(trace: Trace) -> str:
    return "\n".join([repr(trace.manifest), *map(repr, trace.events)])


def going_on(trace: Trace) -> Manifest:
    return replace(trace.manifest, quiesced=False)


@pytest.mark.parametrize("rules", MODES.values(), ids=MODES)
def test_in_the_end_the_verdicts_are_those_of_the_oracle(
    traces: list[Trace], rules: dict[str, int]
) -> None:
    forgot = 0
    for trace in traces:
        stream = Stream(**rules)
        stream.feed(manifest=going_on(trace))
        for batch in batches(trace.events, Random(7)):
            stream.feed(batch)
        forgot += stream.memory.carried.lengths is not None
        # What is delivered to the wrong process after it was forgotten has a place in the orders
        # that is not known any more: then the watch says that it does not know.
        lost = set(stream.memory.windowed)
        assert not lost or "no_creation" in stream.violated
        stream.feed(manifest=trace.manifest)
        for expected in oracle.judge(trace, PROPERTIES):
            verdict = stream.verdicts[expected.property]
            if expected.property in lost:
                assert verdict.verdict != "violated" or expected.verdict == "violated"
            else:
                assert essence(verdict) == essence(expected), told(trace)
    assert (forgot > 0) == bool(rules), "a bland sample: nothing was ever done"


def test_the_sentences_are_those_of_the_batch_judge(traces: list[Trace]) -> None:
    for trace in traces[:20]:
        stream = Stream(tidy=1)
        stream.feed(trace.events, trace.manifest)
        runs = describe([trace.manifest]).select(RUNS.names)
        expected = judge_table(to_table(trace.events), runs).to_pylist()
        sentences = {
            row["property"]: row["witness"] and row["witness"]["sentence"] for row in expected
        }
        said = {name: one.witness and one.witness.sentence for name, one in stream.verdicts.items()}
        assert said == sentences, told(trace)


@pytest.mark.parametrize("rules", MODES.values(), ids=MODES)
def test_a_violation_is_said_in_the_batch_that_brings_its_last_row(
    traces: list[Trace], rules: dict[str, int]
) -> None:
    """After every batch, what is violated is what the batch judge finds in the same rows."""
    found = set()
    for trace in traces[:30]:
        stream, so_far = Stream(**rules), []
        stream.feed(manifest=going_on(trace))
        runs = describe([going_on(trace)]).select(RUNS.names)
        for batch in batches(trace.events, Random(3)):
            so_far += batch
            stream.feed(batch)
            rows = judge_table(to_table(so_far), runs, SURE_AT_ONCE).to_pylist()
            expected = {row["property"] for row in rows if row["verdict"] == "violated"}
            lost = set(stream.memory.windowed) if so_far else set()
            assert stream.violated & set(SURE_AT_ONCE) == expected - lost, told(trace)
            found |= expected
    assert found == set(SURE_AT_ONCE), "a bland sample"


@pytest.mark.parametrize("keep", [4, 20])
def test_windows_never_make_a_violation_up(traces: list[Trace], keep: int) -> None:
    windowed = 0
    for trace in traces:
        stream, violated = Stream(tidy=1, keep=keep), set[str]()
        stream.feed(manifest=going_on(trace))
        pieces = batches(trace.events, Random(11))
        for batch in pieces:
            stream.feed(batch)
            assert violated <= stream.violated, "a violation was taken back"
            violated = stream.violated
            most = keep + max(map(len, pieces)) + 2 * len(trace.members)
            assert len(stream.kept) <= most
        stream.feed(manifest=trace.manifest)
        windowed += bool(stream.memory.windowed)
        truth = {one.property for one in oracle.judge(trace) if one.verdict == "violated"}
        assert stream.violated <= truth, told(trace)
        held = {one.property for one in oracle.judge(trace) if one.verdict == "holds"}
        claimed = {name for name, one in stream.verdicts.items() if one.verdict == "holds"}
        assert claimed <= held, told(trace)
    assert windowed > 0


def test_what_was_delivered_after_an_unknown_message_is_kept_until_it_is_known() -> None:
    """p2 delivered 1:1 before 0:1: wrong, if p1 knew 0:1 when it sent 1:1, which is told later."""
    words = ["s1 d0:1", "d0:1", "d1:1 d0:1"]
    rows = [
        event("r", process, position, word)
        for process, line in enumerate(words)
        for position, word in enumerate(line.split())
    ]
    log, _ = Log.of([kept_columns(to_table(rows))])
    assert not finished(log, 3, total=False, synchronous=False).any()
    known, _ = Log.of([kept_columns(to_table([*rows, event("r", 1, 1, "s1")]))])
    assert finished(known, 3, total=False, synchronous=False).any()


def test_steady_traffic_is_judged_exactly_in_little_room() -> None:
    """Something is always under way; causal order holds, no total order does."""
    trace = run_once(_causal, seed=5, size=3, messages=150, faults="delay:0ms..9ms", run="r")
    stream = Stream(tidy=1 << 30, keep=400)
    stream.feed(manifest=going_on(trace))
    by_time = sorted(trace.events, key=lambda one: (one.time_us or 0, one.process, one.position))
    for start in range(0, len(by_time), 50):
        stream.feed(by_time[start : start + 50])
        assert len(stream.kept) <= 450
    assert not stream.memory.windowed
    stream.feed(manifest=trace.manifest)
    expected = {one.property: one for one in oracle.judge(trace)}
    for name in ("no_duplication", "no_creation", "validity", "agreement", "fifo", "causal"):
        assert essence(stream.verdicts[name]) == essence(expected[name])
    assert {n: one.verdict for n, one in stream.verdicts.items()} == {
        name: one.verdict for name, one in expected.items()
    }


def _causal(me: int, size: int) -> Stack:
    return catalog.build("causal_vector", "best_effort", me, size)


TWO = run("r", "s1 d0:1 s2 d0:2", "d0:1 d0:2")
GOING_ON = replace(TWO.manifest, quiesced=False)


def test_a_delivery_whose_send_has_not_come_is_no_creation() -> None:
    stream = Stream()
    stream.feed([event("r", 1, 0, "d0:1"), event("r", 0, 0, "join")], GOING_ON)
    assert stream.verdicts["no_creation"].verdict == "unknown"
    stream.feed([event("r", 0, 1, "s1")])
    assert stream.verdicts["no_creation"].verdict == "holds"


def test_a_send_that_never_comes_is_a_creation_once_the_run_is_over() -> None:
    stream = Stream()
    stream.feed([event("r", 1, 0, "d0:1"), event("r", 0, 0, "join")], GOING_ON)
    stream.feed(manifest=TWO.manifest)
    assert stream.verdicts["no_creation"].verdict == "violated"
    assert stream.said("no_creation") == [("unknown", "first"), ("violated", "final")]


def test_rows_behind_a_gap_wait() -> None:
    stream = Stream()
    stream.feed([one for one in TWO.events if one.process == 0], GOING_ON)
    status = stream.feed([event("r", 1, 1, "d0:2")])
    assert status is not None
    assert status.waiting == 1
    assert not stream.violated, "p1 may have delivered 0:1 before"
    status = stream.feed([event("r", 1, 0, "d0:1")])
    assert status is not None
    assert status.waiting == 0
    assert stream.verdicts["fifo"].checked == 4
    assert not stream.violated


def test_rows_behind_a_gap_are_judged_in_the_end() -> None:
    stream = Stream()
    stream.feed([event("r", 1, 5, "d0:1"), event("r", 0, 0, "s1"), event("r", 0, 1, "d0:1")])
    stream.feed(manifest=TWO.manifest)
    assert stream.verdicts["agreement"].verdict == "holds"


@pytest.mark.parametrize("rules", MODES.values(), ids=MODES)
def test_rows_that_come_twice_count_once(traces: list[Trace], rules: dict[str, int]) -> None:
    trace = traces[1]
    once, twice = Stream(**rules), Stream(**rules)
    for stream in (once, twice):
        stream.feed(manifest=going_on(trace))
        for batch in batches(trace.events, Random(2)):
            stream.feed(batch)
            if stream is twice:
                stream.feed(batch)
    assert twice.memory.repeated == len(trace.events)
    for stream in (once, twice):
        stream.feed(manifest=trace.manifest)
    assert twice.verdicts == once.verdicts


def test_a_second_delivery_is_noticed_long_after_the_message_was_forgotten() -> None:
    stream = Stream(tidy=1)
    stream.feed(TWO.events, GOING_ON)
    assert (0, 0) not in stream.kept, "both messages are done"
    stream.feed([event("r", 1, 2, "d0:1"), event("r", 1, 3, "d0:1")])
    found = stream.verdicts["no_duplication"]
    assert (found.verdict, found.checked, found.violations) == ("violated", 4, 1)
    assert found.witness is not None
    assert found.witness.sentence == "p1 delivered 0:1 twice (again at position 2)"
    assert stream.verdicts["no_creation"].verdict == "holds"


def test_a_delivery_to_the_wrong_process_is_noticed_after_the_message_was_forgotten() -> None:
    stream = Stream(tidy=1)
    only_p0 = run("r", "s1>0 d0:1", "join")
    stream.feed(only_p0.events, replace(only_p0.manifest, quiesced=False))
    stream.feed([event("r", 1, 1, "d0:1")])
    witness = stream.verdicts["no_creation"].witness
    assert witness is not None
    assert witness.sentence == "p1 delivered 0:1, which is not addressed to it"
    assert stream.verdicts["total_acyclic"].verdict == "unknown", "its place there is not known"


@pytest.mark.parametrize("before", [0, 1, 2])
def test_a_delivery_to_the_wrong_process_is_counted_once_and_its_repetition_once(
    before: int,
) -> None:
    """Three deliveries of what is for p0 only; so many of them came before it was forgotten."""
    whole = run("r", "s1>0 d0:1", "d0:1 d0:1 d0:1")
    going, stream = replace(whole.manifest, quiesced=False), Stream(tidy=1)
    stream.feed(whole.events[: 2 + before], going)
    assert (0, 0) not in stream.kept, "0:1 is done"
    for row in whole.events[2 + before :]:
        stream.feed([row])
    expected = {one.property: one for one in oracle.judge(Trace.of(going, whole.events))}
    for name in ("no_duplication", "no_creation"):
        assert essence(stream.verdicts[name]) == essence(expected[name])


@pytest.mark.parametrize("rules", MODES.values(), ids=MODES)
def test_what_a_stranger_delivers_is_told_and_not_judged(rules: dict[str, int]) -> None:
    stream = Stream(**rules)
    stream.feed(TWO.events, GOING_ON)
    stream.feed([event("r", 7, 0, "d0:1")])
    assert stream.flaws == ["run 'r' has events of process 7, but its manifest names 2 processes"]
    assert not stream.violated


@pytest.mark.parametrize("rules", MODES.values(), ids=MODES)
def test_a_second_sending_is_told(rules: dict[str, int]) -> None:
    stream = Stream(**rules)
    stream.feed(TWO.events, GOING_ON)
    stream.feed([event("r", 0, 4, "s1")])
    assert stream.flaws == ["run 'r' has two send rows for 0:1"]
    assert not stream.violated


def test_what_is_known_last_may_come_first() -> None:
    """That 1:1 was not for p2 is known at once; that nobody sent 0:1, in the end only."""
    whole = run("r", "join", "s1>1 d1:1", "d0:1 d1:1")
    stream = Stream(tidy=1)
    stream.feed(whole.events[:-1], replace(whole.manifest, quiesced=False))
    assert (1, 0) not in stream.kept, "1:1 is done"
    stream.feed(whole.events[-1:])
    first = stream.verdicts["no_creation"].witness
    stream.feed(manifest=whole.manifest)
    last = stream.verdicts["no_creation"].witness
    assert (first and first.messages, last and last.messages) == (("1:1",), ("0:1",))


def test_what_is_forgotten_comes_after_what_is_not() -> None:
    """In one batch p1 delivers again what is kept, and then what was forgotten."""
    stream = Stream(tidy=1)
    stream.feed(TWO.events, GOING_ON)
    stream.feed([event("r", 0, 4, "s3"), *(event("r", 1, 2 + n, "d0:3") for n in range(2)),
                 event("r", 1, 4, "d0:1")])  # fmt: skip
    found = stream.verdicts["no_duplication"]
    assert found.violations == 2
    assert found.witness is not None
    assert found.witness.sentence == "p1 delivered 0:3 twice (positions 2 and 3)"


def test_without_a_manifest_nothing_is_known_to_be_done() -> None:
    stream = Stream(tidy=1)
    stream.feed(TWO.events)
    assert len(stream.kept) == len(TWO.events), "a third process may turn up"


def test_without_a_manifest_it_is_judged_in_windows_when_there_is_no_more_room(
    traces: list[Trace],
) -> None:
    for trace in traces[:20]:
        stream = Stream(tidy=1, keep=6)
        for batch in batches(trace.events, Random(4)):
            stream.feed(batch)
            assert len(stream.kept) <= 6 + 4 * 16
        bare = Trace.bare("r", trace.events, quiesced=True)
        truth = {one.property for one in oracle.judge(bare) if one.verdict == "violated"}
        assert stream.violated <= truth, told(trace)


def test_liveness_is_unknown_while_the_run_goes_on() -> None:
    stream = Stream()
    stream.feed(TWO.events, GOING_ON)
    assert stream.verdicts["validity"].verdict == "unknown"
    stream.feed(manifest=TWO.manifest)
    assert stream.verdicts["validity"].verdict == "holds"
    assert stream.kept == [], "nothing can follow"


def test_what_comes_after_the_end_is_complained_of() -> None:
    stream = Stream()
    stream.feed(TWO.events, TWO.manifest)
    assert stream.feed([event("r", 1, 2, "d0:1")]) is None
    assert stream.flaws == ["events came after its end, and were not judged"]


def test_rows_that_cannot_be_are_told_and_left_out() -> None:
    stream = Stream()
    stream.feed([*TWO.events, event("r", 7, 0, "d0:1")], GOING_ON)
    assert stream.flaws == ["run 'r' has events of process 7, but its manifest names 2 processes"]
    stream.feed([msgspec.structs.replace(event("r", 1, 2, "d0:1"), kind="crash")])
    assert stream.flaws[1:] == ["a 'crash' row has no message, so origin and number must be null"]
    stream.feed(manifest=TWO.manifest)
    assert stream.verdicts["fifo"].checked == 4
    assert stream.verdicts["validity"].verdict == "holds"


def test_latency_and_hold_are_those_of_the_batch() -> None:
    times = {(0, 0): 1000, (0, 1): 1100, (1, 0): 1500, (1, 1): 1800}
    rows = [event("r", 0, 0, "s1"), event("r", 0, 1, "d0:1"), event("r", 1, 0, "r0:1"),
            event("r", 1, 1, "d0:1")]  # fmt: skip
    timed = [msgspec.structs.replace(e, time_us=times[e.process, e.position]) for e in rows]
    stream = Stream()
    stream.feed(timed[:1], GOING_ON)
    status = stream.feed(timed[1:])
    assert status is not None
    assert status.latency_us is not None
    assert (status.latency_us.p50, status.latency_us.p99) == (100, 100)
    assert status.held_us is not None
    assert status.held_us.p50 == 300
    assert status.events == 4
    assert status.events_per_s is not None


def test_a_checkpoint_of_another_version_is_refused_in_a_sentence() -> None:
    older = Memory(version=0).encode()
    with pytest.raises(CheckpointError, match="written by another version"):
        Memory.decode(older)
    with pytest.raises(CheckpointError, match="written by another version"):
        Memory.decode(b"\x93nonsense")
