"""What is drawn is what the trace says: as many arrows, bars, dots and crosses."""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree

import pytest

from ordercast.report.diagram import draw
from ordercast.report.parts import whole
from ordercast.trace import Trace
from tests.report.builders import HELD, QUESTION, SVG, diagram, groups, random_run, run


def titles(svg: ElementTree.Element, *classes: str) -> list[str]:
    return [group.findtext(f"{SVG}title") or "" for group in groups(svg, *classes)]


def labels(svg: ElementTree.Element, process: int) -> list[str]:
    """The labels of a lane, from left to right."""
    texts = [t for t in groups(svg, "label") if t.get("data-process") == str(process)]
    return [t.text or "" for t in sorted(texts, key=lambda t: float(t.get("x", "0")))]


def expected(trace: Trace) -> Counter[str]:
    """Counted from the rows alone, with no help from what is tested."""
    counts: Counter[str] = Counter()
    receive, deliver = {}, {}
    for event in trace.events:
        if event.kind in ("crash", "send"):
            counts[event.kind] += 1
        elif event.kind == "receive":
            receive[event.message, event.process] = event
        elif event.kind == "deliver" and event.origin != event.process:
            deliver[event.message, event.process] = event
    counts["deliver"] = len(deliver)
    counts["arrives"] = len(receive)
    counts["never"] = counts["send"] * (len(trace.members) - 1) - len(receive)
    for copy, arrival in receive.items():
        if copy not in deliver:
            counts["stuck"] += 1
            continue
        delivery = deliver[copy]
        assert arrival.time_us is not None
        assert delivery.time_us is not None
        next_row = delivery.position == arrival.position + 1
        counts["held"] += not (next_row and delivery.time_us - arrival.time_us <= 100)
    return counts


@pytest.mark.parametrize("seed", range(12))
def test_as_many_marks_as_the_trace_has(seed: int) -> None:
    trace = random_run(seed, size=2 + seed % 5, crash=seed % 2 == 0)
    svg = diagram(trace)
    drawn = Counter(
        {
            "crash": len(groups(svg, "cross")),
            "send": len(groups(svg, "mark", "send")),
            "deliver": len(groups(svg, "mark", "deliver")),
            "arrives": len(groups(svg, "arrow", "arrives")),
            "never": len(groups(svg, "arrow", "never")),
            "held": len(groups(svg, "hold", "delivered")),
            "stuck": len(groups(svg, "hold", "never")),
        }
    )
    assert drawn == expected(trace)


def test_a_held_message_is_a_bar_from_its_arrival_to_its_delivery() -> None:
    svg = diagram(run(HELD))
    (hold,) = groups(svg, "hold")
    assert hold.get("data-message") == "1:1"
    assert hold.get("data-process") == "2"
    assert hold.findtext(f"{SVG}title") == "p2 held 1:1 for 2.6 ms"
    assert labels(svg, 2) == ["1:1 held 2.6 ms", "0:1", "1:1"]
    (bar,) = groups(hold, "bar")
    start, width = float(bar.get("x", "")), float(bar.get("width", ""))
    marked = [float(h.get("cx", "")) for m in groups(svg, "mark") for h in groups(m, "hit")]
    for end in (start, start + width):
        assert min(abs(end - x) for x in marked) < 0.2
    assert "1:1 delivered at p2 (position 3, at 5.6 ms), waited 2.6 ms" in titles(svg, "deliver")


def test_every_mark_says_what_it_is_and_whose() -> None:
    svg = diagram(random_run(3, crash=True))
    for kind in ("mark", "arrow", "hold"):
        for group in groups(svg, kind):
            assert group.findtext(f"{SVG}title")
            assert group.get("data-process")
            assert group.get("data-message") or {"crash"} & set(group.get("class", "").split())
    for mark in groups(svg, "mark"):
        assert mark.get("data-position")


def test_an_own_delivery_at_once_is_a_point_in_the_send() -> None:
    svg = diagram(run(QUESTION))
    assert len(groups(svg, "own")) == 2
    assert "0:1 sent and delivered by p0 (positions 0 to 1, at 0 µs)" in titles(svg, "send")


def test_an_own_delivery_that_waits_is_drawn_like_any_other() -> None:
    svg = diagram(run("0 p0 send 0:1\n 10 p0 send 0:2\n 5000 p0 deliver 0:1", size=1))
    assert titles(svg, "hold") == ["p0 held its own 0:1 for 5 ms"]
    assert len(groups(svg, "mark", "deliver")) == 1
    assert not groups(svg, "own")


def test_an_own_delivery_that_nobody_logged_is_not_a_wait() -> None:
    svg = diagram(run("0 p0 send 0:1\n 900 p1 deliver 0:1", size=2))
    assert not groups(svg, "hold")


def test_without_receive_rows_arrows_end_at_deliveries() -> None:
    story = "\n".join(line for line in QUESTION.splitlines() if "receive" not in line)
    svg = diagram(run(story))
    assert len(groups(svg, "arrow", "arrives")) == 4
    assert not groups(svg, "hold")


def test_only_the_destinations_miss_a_message() -> None:
    svg = diagram(run("0 p0 send 0:1 to 1,2\n 900 p1 deliver 0:1", size=5))
    assert len(groups(svg, "arrow", "arrives")) == 1
    assert titles(svg, "arrow", "never") == ["0:1 from p0 to p2: never arrived"]


def test_a_message_that_arrives_and_is_never_delivered_has_an_open_bar() -> None:
    svg = diagram(run("0 p0 send 0:1\n 900 p1 receive 0:1", size=2))
    assert titles(svg, "hold", "never") == ["0:1 arrived at p1 and was never delivered there"]
    assert labels(svg, 1) == ["0:1 never delivered"]


def test_a_second_delivery_says_that_it_is_one() -> None:
    svg = diagram(run("0 p0 send 0:1\n 900 p1 deliver 0:1\n 2000 p1 deliver 0:1", size=2))
    assert labels(svg, 1) == ["0:1", "0:1 again"]
    assert len(groups(svg, "arrow")) == 1
    assert len(groups(svg, "mark", "again")) == 1


def test_further_copies_are_small_and_change_nothing() -> None:
    svg = diagram(
        run("0 p0 send 0:1\n 900 p1 receive 0:1\n 900 p1 deliver 0:1\n 990 p1 receive 0:1")
    )
    assert titles(svg, "copy") == ["0:1 arrived once more at p1 (position 2, at 990 µs)"]
    assert len(groups(svg, "arrow", "arrives")) == 1
    assert not groups(svg, "hold")


def test_a_delivery_of_what_nobody_sent_has_an_arrow_from_nowhere() -> None:
    svg = diagram(run("0 p0 send 0:1 to 1\n 900 p1 deliver 7:3\n 990 p1 receive 0:1", size=2))
    assert titles(svg, "orphan") == ["7:3 from p7 to p1: its send is not in the log"]


def test_a_crash_ends_the_line_and_a_recovery_starts_it_again() -> None:
    def lines(svg: ElementTree.Element, process: int) -> list[str]:
        found = [e for e in groups(svg, "line") if e.get("data-process") == str(process)]
        return [e.get("class", "").split()[1] for e in found]

    svg = diagram(
        run("0 p0 send 0:1\n 50 p1 crash\n 90 p2 crash\n 4000 p2 recover\n 5000 p3 leave\n", size=4)
    )
    assert [lines(svg, process) for process in range(4)] == [
        ["up"],
        ["up"],
        ["up", "down", "up"],
        ["up"],
    ]
    assert len(groups(svg, "cross")) == 2
    assert titles(svg, "mark", "recover") == ["p2 recovered (position 1, at 4 ms)"]


def test_a_wait_ends_with_the_process() -> None:
    svg = diagram(
        run("0 p0 send 0:1\n 50 p1 receive 0:1\n 5000 p1 crash\n 9000 p0 send 0:2 to 0", size=2)
    )
    (bar,) = groups(svg, "bar")
    (cross,) = groups(svg, "cross")
    end = float(bar.get("x", "0")) + float(bar.get("width", "0"))
    start = float((cross.get("d") or "")[1:].split()[0]) + 6
    assert end == pytest.approx(start, abs=0.2)


def test_clocks_that_disagree_are_told() -> None:
    svg = diagram(run("1000 p0 send 0:1\n 400 p1 deliver 0:1", size=2))
    assert titles(svg, "arrow") == [
        "0:1 from p0 to p1: it arrived before it was sent, so the two clocks disagree"
    ]


def test_origins_beyond_the_palette_share_colours() -> None:
    svg = diagram(random_run(1, size=10, messages=1))
    classes = {
        name for mark in groups(svg, "mark", "send") for name in mark.get("class", "").split()
    }
    assert {f"o{hue}" for hue in range(8)} <= classes
    assert "o8" not in classes


def test_processes_that_the_manifest_does_not_know_have_a_lane() -> None:
    svg = diagram(run("0 p0 send 0:1\n 900 p5 deliver 0:1", size=2))
    names = [group.get("data-process") for group in groups(svg, "name")]
    assert names == ["0", "1", "5"]


def test_no_events_draw_bare_lanes() -> None:
    svg = diagram(run("", size=3))
    assert len(groups(svg, "line")) == 3
    assert not groups(svg, "mark")


def test_it_is_named_for_those_who_do_not_see_it() -> None:
    svg = diagram(run(HELD))
    assert svg.get("role") == "img"
    ids = {element.get("id") for element in svg.iter() if element.get("id")}
    assert set((svg.get("aria-labelledby") or "").split()) == ids == {"d-title", "d-desc"}
    assert svg.findtext(f"{SVG}title") == "A run"
    assert svg.findtext(f"{SVG}desc") == (
        "A space-time diagram of 3 processes: 2 sends, 6 deliveries; 1 message was held."
    )


def test_hostile_names_are_only_text() -> None:
    evil = '"><script>alert(1)</script>'
    trace = run(HELD, processes=(evil, "a\x00b\x1b", "c" * 80))
    text = draw(trace, whole(trace), name="d", title=evil)
    assert "<script" not in text
    svg = diagram(trace)
    assert groups(svg, "name")[0].findtext(f"{SVG}title") == evil
    assert groups(svg, "name")[1].findtext(f"{SVG}title") == "a�b�"
    assert "".join(groups(svg, "name")[2].find(f"{SVG}text").itertext()) == "c" * 21 + "…p2"  # type: ignore[union-attr]
