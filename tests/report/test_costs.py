"""What a run cost: the figures by hand, and the plots that show them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from msgspec import structs

from ordercast.report import render
from ordercast.report.costs import Cost, Spread, cost_of_all, costs_of, depths_of
from ordercast.report.costview import plots_of
from ordercast.report.history import History
from ordercast.report.plots import Line, line_plot
from ordercast.report.scales import Scale, ticks
from ordercast.trace import Trace
from tests.report.builders import HELD, judgement_on, random_run, run

SVG = "{http://www.w3.org/2000/svg}"


def sized(trace: Trace, control_bytes: int) -> Trace:
    """Every copy carries so many bytes beside its payload."""
    rows = [structs.replace(event, control_bytes=control_bytes) for event in trace.events]
    return replace(trace, events=tuple(rows))


def test_the_costs_of_a_small_run_by_hand() -> None:
    first, second, third = costs_of(History(sized(run(HELD), 7)))
    assert third == Cost(
        process=2,
        name="p2",
        deliveries=2,
        latency_us=Spread(3_500, 5_600, 5_600, 5_600),
        held_us=Spread(0, 2_600, 2_600, 2_600),
        depth_max=1,
        copies=1.0,
        control_bytes=7.0,
    )
    assert (first.copies, first.control_bytes) == (0.5, 3.5)  # of its own there is no copy
    assert second.held_us == Spread(0, 0, 0, 0)


def test_all_processes_together() -> None:
    cost = cost_of_all(History(run(HELD)))
    assert cost.deliveries == 6
    assert cost.latency_us == Spread(1_300, 5_600, 5_600, 5_600)
    assert (cost.depth_max, cost.control_bytes) == (1, None)


def test_depth_rises_and_falls() -> None:
    assert depths_of(History(run(HELD)))[2] == [(0, 0), (3_000, 1), (5_600, 0)]
    never = run("0 p0 send 0:1\n 900 p1 receive 0:1", size=2)
    assert depths_of(History(never)) == {1: [(0, 0), (900, 1)]}
    passed_on = run("0 p0 send 0:1 to 2\n 900 p1 receive 0:1", size=3)
    assert depths_of(History(passed_on)) == {1: [(0, 0)]}


def test_a_clock_that_disagrees_is_no_latency() -> None:
    skewed = run("1000 p0 send 0:1\n 400 p1 deliver 0:1", size=2)
    assert costs_of(History(skewed))[1].latency_us is None


@pytest.mark.parametrize("seed", range(3))
def test_spreads_are_nearest_ranks(seed: int) -> None:
    values = [(seed + 7 * value) % 101 for value in range(101)]
    assert Spread.of(values) == Spread(50, 90, 99, 100)


def test_a_run_has_a_plot_for_everything_that_its_log_tells() -> None:
    history = History(sized(random_run(1), 9))
    plots = plots_of(costs_of(history), depths_of(history))
    assert [plot.title for plot in plots] == [
        "Delivery latency",
        "Time held",
        "Messages held, over time",
        "Copies that arrived, for each message delivered",
        "Control bytes, for each message delivered",
    ]
    for plot in plots:
        drawing = ElementTree.fromstring(plot.drawing)
        assert drawing.get("aria-label") == plot.title
    bare = History(random_run(1, clocks=False))
    assert [plot.title for plot in plots_of(costs_of(bare), depths_of(bare))] == [
        "Copies that arrived, for each message delivered"
    ]


def test_many_processes_are_told() -> None:
    history = History(random_run(1, size=20, messages=1))
    plots = plots_of(costs_of(history), depths_of(history))
    assert "The slowest 16 of 20 processes." in plots[0].note
    assert "The fullest 8 of" in plots[2].note


def test_the_page_has_the_plots() -> None:
    trace = random_run(1)
    assert render(judgement_on([trace]), [trace]).count('class="plot"') == 4


def test_ticks_are_round() -> None:
    assert ticks(83.0) == [0, 50]
    assert ticks(100.0) == [0, 50, 100]
    assert ticks(3.0) == [0, 1, 2, 3]
    assert ticks(0.0) == [0]
    assert Scale(1.0, 900.0, 0.0, 1.0, log=True).ticks == [1, 10, 100]


def test_names_at_the_ends_of_lines_do_not_overlap() -> None:
    lines = [Line(f"line {i}", [(0, 1), (1, 100 if i == 0 else 1 + i / 50)], i) for i in range(12)]
    drawing = ElementTree.fromstring(line_plot(lines, title="t", x_words=str, y_words=str))
    heights = sorted(
        float(text.get("y", ""))
        for text in drawing.iter(f"{SVG}text")
        if text.get("class") == "own"
    )
    assert len(heights) == 12
    assert min(b - a for a, b in pairwise(heights)) >= 11
    assert 0 < heights[0] < heights[-1] < float(drawing.get("height", ""))


def test_lines_upon_each_other_take_turns() -> None:
    same = [(3.0, 10.0), (6.0, 20.0)]
    lines = [Line(name, same, hue) for hue, name in enumerate(("a", "b", "c"))]
    lines.append(Line("alone", [(3.0, 15.0), (6.0, 15.0)], 3))
    drawing = ElementTree.fromstring(line_plot(lines, title="t", x_words=str, y_words=str))
    curves = drawing.findall(f".//{SVG}path[@class='curve']")
    dashes = [(path.get("stroke-dasharray"), path.get("stroke-dashoffset")) for path in curves]
    assert dashes == [("9 18", "0"), ("9 18", "-9"), ("9 18", "-18"), (None, None)]
    dots = [float(dot.get("r", "0")) for dot in drawing.findall(f".//{SVG}circle")]
    assert dots == [6.0, 6.0, 4.5, 4.5, 3.0, 3.0, 3.0, 3.0]


def test_copies_below_one_are_explained() -> None:
    trace = run(HELD)
    plots = plots_of(costs_of(History(trace)), depths_of(History(trace)))
    [copies] = [plot for plot in plots if plot.title.startswith("Copies")]
    assert "no copy of its own messages" in copies.note
