"""Which part is drawn: a witness shows what proves it and nothing else."""

from __future__ import annotations

import pytest

from ordercast.report.focus import Focus
from ordercast.report.parts import Part, slice_for, whole, window
from ordercast.trace import Trace
from ordercast.trace.verdicts import Witness
from tests.report.builders import QUESTION, diagram, groups, random_run, run


def rows(part: Part) -> list[str]:
    return [
        f"p{e.process} {e.kind}" + (f" {e.origin}:{e.number}" if e.origin is not None else "")
        for e in part.events
    ]


def witness(process: int, *messages: str) -> Witness:
    return Witness(process, messages, "…")


def spot(trace: Trace, process: int, *messages: str) -> tuple[str | None, str]:
    focus = slice_for(trace, witness(process, *messages)).focus
    assert isinstance(focus, Focus)
    assert focus.process == process
    event = focus.event
    return (None if event is None else f"{event.origin}:{event.number}"), focus.note


NOISE = """
    4000  p0  send     0:2
    4100  p3  send     3:1
    5000  p1  deliver  3:1
    5100  p2  deliver  3:1
    5200  p3  deliver  0:1
    5300  p3  deliver  1:1
"""


def test_two_messages_at_the_processes_that_matter() -> None:
    trace = run(QUESTION + NOISE, size=4)
    part = slice_for(trace, witness(2, "0:1", "1:1"))
    assert part.processes == (0, 1, 2)
    assert rows(part) == [
        *("p0 send 0:1", "p0 deliver 0:1", "p0 receive 1:1", "p0 deliver 1:1"),
        *("p1 receive 0:1", "p1 deliver 0:1", "p1 send 1:1", "p1 deliver 1:1"),
        *("p2 receive 1:1", "p2 deliver 1:1", "p2 receive 0:1", "p2 deliver 0:1"),
    ]
    svg = diagram(trace, part)
    assert len(groups(svg, "ring")) == 1
    assert len(groups(svg, "at-fault")) == 1
    assert groups(svg, "at-fault")[0].get("data-message") == "1:1"


def test_what_overtakes_is_the_spot_to_look_at() -> None:
    trace = run(QUESTION)
    assert spot(trace, 2, "0:1", "1:1") == ("1:1", "before 0:1")


def test_the_chain_between_two_messages_is_shown() -> None:
    trace = run(
        """
        0    p0 send    0:1 to 1,3
        900  p1 deliver 0:1
        950  p1 send    1:1 to 4
        1000 p1 send    1:2 to 2
        1500 p2 deliver 1:2
        2000 p2 send    2:1 to 3
        3000 p3 deliver 2:1
        9000 p3 deliver 0:1
        9500 p4 deliver 1:1
        """,
        size=5,
    )
    part = slice_for(trace, witness(3, "0:1", "2:1"))
    assert part.processes == (0, 1, 2, 3)
    assert rows(part) == [
        "p0 send 0:1",
        *("p1 deliver 0:1", "p1 send 1:2"),
        *("p2 deliver 1:2", "p2 send 2:1"),
        *("p3 deliver 2:1", "p3 deliver 0:1"),
    ]
    assert not groups(diagram(trace, part), "never")


def test_two_orders_need_somebody_who_saw_the_other() -> None:
    trace = run(
        """
        0    p0 send    0:1
        10   p1 send    1:1
        500  p2 deliver 0:1
        600  p2 deliver 1:1
        500  p3 deliver 1:1
        600  p3 deliver 0:1
        700  p4 deliver 1:1
        800  p4 deliver 0:1
        """,
        size=5,
    )
    assert slice_for(trace, witness(2, "0:1", "1:1")).processes == (0, 1, 2, 3)
    assert spot(trace, 2, "0:1", "1:1") == ("1:1", "after 0:1")
    assert slice_for(trace, witness(3, "0:1", "1:1")).processes == (0, 1, 2, 3)
    assert spot(trace, 3, "0:1", "1:1") == ("1:1", "before 0:1")


def test_a_missing_delivery_needs_somebody_who_has_it() -> None:
    trace = run("0 p0 send 0:1\n 100 p0 crash\n 900 p2 deliver 0:1", size=4)
    part = slice_for(trace, witness(3, "0:1"))
    assert part.processes == (0, 2, 3)
    assert rows(part) == ["p0 send 0:1", "p0 crash", "p2 deliver 0:1"]
    assert spot(trace, 3, "0:1") == (None, "never delivered")
    svg = diagram(trace, part)
    assert len(groups(svg, "never", "at-fault")) == 1
    assert len(groups(svg, "pill")) == 1
    assert not groups(svg, "ring")


@pytest.mark.parametrize(
    ("story", "found"),
    [
        ("0 p0 send 0:1\n 9 p1 deliver 0:1\n 20 p1 deliver 0:1", ("0:1", "delivered again")),
        ("0 p0 send 0:2\n 9 p1 deliver 0:1", ("0:1", "no send is known")),
        ("0 p0 send 0:1 to 2\n 9 p1 deliver 0:1", ("0:1", "not addressed here")),
        ("0 p0 send 0:1\n 9 p1 deliver 0:1", ("0:1", "delivered here")),
        ("0 p0 send 0:1\n 9 p1 receive 0:1", (None, "never delivered")),
    ],
)
def test_one_message_has_one_spot(story: str, found: tuple[str | None, str]) -> None:
    trace = run(story)
    assert spot(trace, 1, "0:1") == found
    assert len(groups(diagram(trace, slice_for(trace, witness(1, "0:1"))), "pill")) == 1


def test_an_omitted_message_makes_the_one_after_it_the_spot() -> None:
    trace = run("0 p0 send 0:1\n 5 p0 send 0:2\n 9 p1 deliver 0:2", size=2)
    assert spot(trace, 1, "0:1", "0:2") == ("0:2", "before 0:1")


def test_further_copies_are_left_out_of_a_witness() -> None:
    trace = run("0 p0 send 0:1\n 9 p1 receive 0:1\n 9 p1 deliver 0:1\n 30 p1 receive 0:1", size=2)
    part = slice_for(trace, witness(1, "0:1"))
    assert rows(part) == ["p0 send 0:1", "p1 receive 0:1", "p1 deliver 0:1"]


def test_words_that_are_no_message_are_passed_over() -> None:
    part = slice_for(run(QUESTION), witness(1, "nonsense", "0:x", ":", "9:9"))
    assert part.messages == {(9, 9)}
    assert rows(part) == []


def test_a_window_is_the_beginning_in_time_order() -> None:
    trace = run(QUESTION)
    part = window(whole(trace), events_max=5, processes_max=64)
    assert rows(part) == [
        *("p0 send 0:1", "p0 deliver 0:1"),
        *("p1 receive 0:1", "p1 deliver 0:1", "p1 send 1:1"),
    ]
    assert part.processes == (0, 1, 2)
    svg = diagram(trace, part)
    assert len(groups(svg, "beyond")) == 3
    assert not groups(svg, "never")


def test_a_window_never_shows_an_arrival_without_its_send() -> None:
    for seed in range(10):
        trace = random_run(seed)
        for events_max in (1, 7, 30, 60):
            part = window(whole(trace), events_max=events_max, processes_max=64)
            svg = diagram(trace, part)
            assert len(part.events) == events_max
            assert not groups(svg, "orphan") + groups(svg, "undrawn")


def test_a_window_keeps_the_processes_that_did_something() -> None:
    trace = run("0 p7 send 7:1\n 90 p3 deliver 7:1\n 95 p1 deliver 7:1", size=9)
    part = window(whole(trace), events_max=3, processes_max=2)
    assert part.processes == (1, 3)
    assert rows(part) == ["p1 deliver 7:1", "p3 deliver 7:1"]
    svg = diagram(trace, part)
    assert len(groups(svg, "undrawn")) == 2
