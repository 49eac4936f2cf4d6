"""The numbers: later is further right, and nothing stands on anything else."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import pytest

from ordercast.report.axis import Instant, build_axis, shortened
from ordercast.report.layout import Layout
from ordercast.report.measures import bar_texts, bar_width, extent
from ordercast.report.scene import Scene
from tests.report.builders import HELD, QUESTION, laid_out, random_run, run

SHAPES = [(3, 8, True), (8, 3, True), (4, 6, False), (2, 40, True), (64, 1, True)]


@pytest.fixture(params=range(4))
def seed(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(params=SHAPES, ids=lambda shape: "{}x{} clocks={}".format(*shape))
def drawn(request: pytest.FixtureRequest, seed: int) -> tuple[Scene, Layout]:
    return _drawn(*request.param, seed)


@cache
def _drawn(size: int, messages: int, clocks: bool, seed: int) -> tuple[Scene, Layout]:
    return laid_out(random_run(seed, size=size, messages=messages, clocks=clocks, crash=True))


def test_later_is_further_right_everywhere(drawn: tuple[Scene, Layout]) -> None:
    scene, layout = drawn
    by_time: dict[int, list[float]] = {}
    for mark, x in zip(scene.marks, layout.xs, strict=True):
        by_time.setdefault(mark.time_us, []).append(x)
    instants = [xs for _, xs in sorted(by_time.items())]
    for earlier, later in pairwise(instants):
        assert max(earlier) + 6.9 <= min(later)


def test_labels_of_one_lane_never_overlap(drawn: tuple[Scene, Layout]) -> None:
    scene, layout = drawn
    boxes: dict[int, list[tuple[float, float]]] = {}
    for mark, x in zip(scene.marks, layout.xs, strict=True):
        left, right = extent(mark)
        boxes.setdefault(mark.process, []).append((x - left, x + right))
    for lane in boxes.values():
        for (_, end), (start, _) in pairwise(lane):
            assert end + 4.9 <= start


def test_labels_stay_clear_of_the_names_and_of_the_edge(drawn: tuple[Scene, Layout]) -> None:
    scene, layout = drawn
    for mark, x in zip(scene.marks, layout.xs, strict=True):
        left, right = extent(mark)
        assert x - left >= layout.names_width
        assert x + right <= layout.width


def test_an_arrow_never_points_back(drawn: tuple[Scene, Layout]) -> None:
    scene, layout = drawn
    for arrow in scene.arrows:
        if arrow.start is not None and arrow.end is not None:
            assert layout.xs[arrow.start] + 17.9 <= layout.xs[arrow.end]


def test_a_bar_has_room_for_its_label_and_no_other_bar_on_it(drawn: tuple[Scene, Layout]) -> None:
    scene, layout = drawn
    tracks: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for hold, bar in zip(scene.holds, layout.bars, strict=True):
        assert bar.right - bar.left >= bar_width(bar_texts(hold)[0]) - 0.1
        assert bar.track < layout.lanes[hold.process].tracks
        tracks.setdefault((hold.process, bar.track), []).append((bar.left, bar.right))
    for spans in tracks.values():
        for (_, end), (start, _) in pairwise(sorted(spans)):
            assert end < start


def test_lanes_are_below_each_other_with_their_bars(drawn: tuple[Scene, Layout]) -> None:
    _, layout = drawn
    lanes = list(layout.lanes.values())
    for upper, lower in pairwise(lanes):
        assert upper.y < upper.bar_top(upper.tracks) <= upper.bottom == lower.top < lower.y
    assert lanes[-1].bottom < layout.height


def test_ticks_rise_and_keep_their_distance(drawn: tuple[Scene, Layout]) -> None:
    _, layout = drawn
    for earlier, later in pairwise(layout.axis.ticks):
        assert earlier.x + 62 <= later.x


def test_a_small_run_fills_its_room_and_no_more() -> None:
    _, layout = laid_out(run(QUESTION), width=900)
    assert 850 < layout.width <= 900


def test_distances_follow_the_clock_where_nothing_collides() -> None:
    scene, layout = laid_out(run(QUESTION), width=900)
    at = {mark.time_us: x for mark, x in zip(scene.marks, layout.xs, strict=True)}
    pace = (at[5600] - at[3400]) / 2200
    assert (at[2100] - at[900]) / 1200 == pytest.approx(pace, rel=0.01)


def test_overlapping_waits_go_below_each_other() -> None:
    trace = run(
        """
        0    p0 send    0:1
        10   p0 send    0:2
        20   p0 send    0:3
        900  p1 receive 0:3
        1000 p1 receive 0:2
        2000 p1 receive 0:1
        2000 p1 deliver 0:1
        2000 p1 deliver 0:2
        2000 p1 deliver 0:3
        """,
        size=2,
    )
    scene, layout = laid_out(trace)
    assert [
        (hold.message, bar.track) for hold, bar in zip(scene.holds, layout.bars, strict=True)
    ] == [
        ((0, 3), 0),
        ((0, 2), 1),
    ]
    assert layout.lanes[1].tracks == 2
    assert layout.lanes[0].tracks == 0


def test_however_many_wait_at_once_a_lane_stays_low() -> None:
    sends = [f"{number} p0 send 0:{number}" for number in range(1, 201)]
    arrivals = [f"{2000 - number} p1 receive 0:{number}" for number in range(2, 201)]
    rest = ["3000 p1 receive 0:1", *(f"3000 p1 deliver 0:{n}" for n in range(1, 201))]
    _, layout = laid_out(run("\n".join([*sends, *arrivals, *rest]), size=2))
    lane = layout.lanes[1]
    assert lane.tracks == 199
    assert lane.bottom - lane.top < 140
    assert lane.bar_top(lane.tracks) <= lane.bottom
    assert lane.bar_height > 0


def test_without_clocks_there_is_no_axis() -> None:
    axis = laid_out(random_run(1, clocks=False))[1].axis
    assert (axis.ticks, axis.cuts) == ((), ())


def test_a_long_pause_is_cut_and_says_how_long_it_was() -> None:
    times = [*range(0, 1000, 100), 5_000_000, *range(5_000_100, 5_001_000, 100)]
    assert max(shortened(times)) == 1200
    axis = build_axis([Instant(t, i * 20.0, i * 20.0) for i, t in enumerate(times)], zero_us=0)
    assert [cut.text for cut in axis.cuts] == ["5 s"]
    assert len(axis.ticks) < 20


def test_ticks_are_round_times_from_the_start_of_the_run() -> None:
    start = 1_700_000_000_000_123
    instants = [Instant(start + i * 1000, i * 60.0, i * 60.0) for i in range(10)]
    texts = [tick.text for tick in build_axis(instants, zero_us=start).ticks]
    assert texts == ["0", "2 ms", "4 ms", "6 ms", "8 ms"]


def test_the_same_run_gives_the_same_numbers() -> None:
    assert laid_out(run(HELD))[1] == laid_out(run(HELD))[1]
