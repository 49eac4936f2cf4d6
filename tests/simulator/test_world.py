"""The simulated world: repeatable, and as harsh or as kind as its plan says."""

from __future__ import annotations

import re
from random import Random

import pytest

from ordercast.errors import UsageError
from ordercast.protocols import catalog
from ordercast.protocols.stack import Stack
from ordercast.simulator.faults import parse_faults
from ordercast.simulator.link import Letter, Link
from ordercast.simulator.plan import Crash, Network, Partition, Plan, Traffic
from ordercast.simulator.run import simulate
from ordercast.trace.event import Event


def causal(me: int, size: int) -> Stack:
    return catalog.build("causal_vector", "best_effort", me, size)


def events_of(plan: Plan, build: object = causal) -> list[Event]:
    events: list[Event] = []
    simulate(plan, build=build, run="r", write=events.append)  # type: ignore[arg-type]
    return events


HARSH = Network(loss=0.2, duplication=0.2, partitions=(Partition(0, 50_000, ((0,), (1, 2))),))


def test_the_same_seed_gives_the_same_run_and_another_seed_another() -> None:
    plan = Plan(3, 7, HARSH, (Crash(2, at_us=30_000),), Traffic(10))
    assert events_of(plan) == events_of(plan)
    other = Plan(3, 8, HARSH, (Crash(2, at_us=30_000),), Traffic(10))
    assert events_of(plan) != events_of(other)


def test_other_algorithms_meet_the_same_traffic() -> None:
    def sends(build: object) -> list[tuple[int, int | None]]:
        rows = events_of(Plan(3, 5, HARSH, (), Traffic(10)), build)
        return sorted((e.process, e.time_us) for e in rows if e.kind == "send")

    assert sends(causal) == sends(lambda me, size: catalog.build("fifo", "direct", me, size))


def test_lost_and_repeated_packets_make_a_perfect_link() -> None:
    network = Network(loss=0.5, duplication=0.5)
    rows = events_of(Plan(3, 1, network, (), Traffic(20)))
    received = [(e.process, e.message) for e in rows if e.kind == "receive"]
    assert len(received) == len(set(received)) == 20 * 3 * 2


def test_a_partition_lets_nothing_through_until_it_heals() -> None:
    cut = Partition(0, 200_000, ((0,), (1, 2)))
    rows = events_of(Plan(3, 1, Network(partitions=(cut,)), (), Traffic(5)))
    across = [e for e in rows if e.kind == "receive" and (e.process == 0) != (e.origin == 0)]
    assert len(across) == 20
    assert all((e.time_us or 0) >= 200_000 for e in across)
    inside = [e for e in rows if e.kind == "receive" and e not in across]
    assert any((e.time_us or 0) < 200_000 for e in inside)


def test_a_crashed_process_does_nothing_more() -> None:
    rows = events_of(Plan(3, 1, Network(), (Crash(1, at_us=20_000),), Traffic(20)))
    own = [e.kind for e in rows if e.process == 1]
    assert own[-1] == "crash"
    assert "deliver" in own
    assert not [e for e in rows if e.origin == 1 and e.kind == "send" and e.time_us > 20_000]  # type: ignore[operator]


def test_a_crash_after_one_copy_leaves_the_others_without() -> None:
    rows = events_of(Plan(4, 1, Network(), (Crash(0, after_copies=1),), Traffic(1)))
    assert [e.process for e in rows if e.kind == "receive" and e.origin == 0] == [1]
    assert [e.kind for e in rows if e.process == 0 and e.origin in (0, None)] == ["send", "crash"]


def test_a_packet_that_must_be_resent_dies_with_its_sender() -> None:
    cut = Partition(0, 100_000, ((0,), (1,)))
    plan = Plan(2, 1, Network(partitions=(cut,)), (Crash(0, at_us=50_000),), Traffic(1))
    assert not [e for e in events_of(plan) if e.kind == "receive" and e.origin == 0]


def test_rest_is_noticed_and_so_is_its_absence() -> None:
    def quiesced(until_us: int) -> bool:
        plan = Plan(3, 1, traffic=Traffic(5), until_us=until_us)
        return simulate(plan, build=causal, run="r", write=lambda event: None).quiesced

    assert quiesced(600_000_000)
    assert not quiesced(5_000)


@pytest.mark.parametrize("fifo", [True, False])
def test_links_drop_repetitions_and_keep_order_if_asked(fifo: bool) -> None:
    random = Random(1)
    link = Link(fifo=fifo)
    letters = [Letter(0, 1, link.next_sequence(), f"packet {i}", 1) for i in range(50)]
    arriving = letters * 2
    random.shuffle(arriving)
    handed = [ready for letter in arriving for ready in link.arrived(letter)]
    assert sorted(letter.sequence for letter in handed) == list(range(1, 51))
    assert (handed == letters) is fifo
    assert not link.ahead


def test_fault_plans_read_as_people_write_them() -> None:
    network, crashes = parse_faults(
        "crash:1@20ms, crash:0#3,partition:0|1,2@5ms+50ms,"
        "delay:1ms..2.5ms,loss:5%,duplicate:2%,fifo",
        Network(),
    )
    assert crashes == (Crash(1, at_us=20_000), Crash(0, after_copies=3))
    assert network == Network(
        delay_us=(1_000, 2_500),
        fifo=True,
        loss=0.05,
        duplication=0.02,
        partitions=(Partition(5_000, 50_000, ((0,), (1, 2))),),
    )


@pytest.mark.parametrize(
    ("faults", "sentence"),
    [
        ("crash:1", "'crash:1' has none of the forms"),
        ("crash:9@1ms", "names process 9 in a group of 3"),
        ("loss:100%", "lets nothing through"),
        ("delay:5ms..1ms", "makes no sense"),
        ("meteor:1@2s", "'meteor:1@2s' has none of the forms"),
        ("delay:5ms±6ms", "makes no sense"),
        ("delay:soon@1s", "'delay:soon@1s' has none of the forms"),
        ("kill:1@2s+1s", "in a simulation nobody comes back; write 'crash:1@2s'"),
        ("pause:2@1s+5ms", "nobody stands still; write 'partition:2|…@1s+5ms'"),
        ("slow:2@1s+5ms", "nobody stands still; write 'partition:2|…@1s+5ms'"),
        ("delay:0>1=20ms±5ms@1s+2s", "links are alike, at all times; write 'delay:20ms±5ms'"),
        ("loss:5%,loss:1%@1s", "the fault 'loss:1%@1s' is for real processes (ordercast run)"),
    ],
)
def test_a_wrong_fault_plan_gets_a_sentence(faults: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=re.escape(sentence)):
        Plan(3, 0, *parse_faults(faults, Network()))


def test_what_real_runs_call_it_is_understood() -> None:
    ours = "crash:1@2s,crash:0@20ms,delay:10ms..30ms,partition:0|1,2@5ms+50ms,loss:5%"
    theirs = "kill:1@2s, kill:0@20ms,delay:20ms±10ms,partition:0|1,2@5ms+50ms,loss:5%"
    for plan in (theirs, theirs.replace("±", "+-")):
        assert parse_faults(plan, Network()) == parse_faults(ours, Network())
    assert parse_faults("delay:20ms", Network())[0].delay_us == (20_000, 20_000)
