"""One clock that contradicts nobody: not a process, not a message, not a clock that is right."""

from __future__ import annotations

import pytest

from ordercast.report.moments import moments
from ordercast.trace import Trace
from tests.report.builders import HELD, random_run, run


def check(trace: Trace) -> None:
    order = moments(trace.events)
    assert sorted(moment.index for moment in order) == list(range(len(trace.events)))
    times = [moment.time_us for moment in order]
    assert times == sorted(times)
    last: dict[int, int] = {}
    sent = set()
    for moment in order:
        event = trace.events[moment.index]
        assert last.get(event.process, -1) < event.position
        last[event.process] = event.position
        if event.kind == "send":
            sent.add(event.message)
        elif event.kind in ("receive", "deliver"):
            assert event.message in sent


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("clocks", [True, False], ids=["clocks", "no clocks"])
def test_agrees_with_every_process_and_every_message(seed: int, clocks: bool) -> None:
    check(random_run(seed, clocks=clocks))


def test_a_clock_that_is_right_is_kept() -> None:
    trace = run(HELD)
    for moment in moments(trace.events):
        assert moment.time_us == trace.events[moment.index].time_us


def test_an_arrival_before_its_send_is_moved_to_the_send() -> None:
    trace = run("1000 p0 send 0:1\n 400 p1 deliver 0:1\n 600 p1 send 1:1", size=2)
    assert [moment.time_us for moment in moments(trace.events)] == [1000, 1000, 1000]
    check(trace)


def test_a_clock_that_jumps_back_waits_for_itself() -> None:
    trace = run("500 p0 send 0:1\n 100 p0 send 0:2\n 700 p0 send 0:3", size=1)
    assert [moment.time_us for moment in moments(trace.events)] == [500, 500, 700]


def test_messages_that_wait_for_each_other_do_not_stop_it() -> None:
    trace = run(
        """
        5 p0 deliver 1:1
        6 p0 send    0:1
        1 p1 deliver 0:1
        2 p1 send    1:1
        """,
        size=2,
    )
    order = [trace.events[moment.index] for moment in moments(trace.events)]
    assert [(e.process, e.position) for e in order] == [(1, 0), (1, 1), (0, 0), (0, 1)]


def test_no_events_have_no_order() -> None:
    assert moments(()) == []
