"""What the page's script does, in a real browser: it lights up exactly what happened before and
after, whoever asks, with a mouse or with keys."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ordercast.oracle.run import Run
from ordercast.report import render
from ordercast.report.words import message_text
from ordercast.trace import Trace
from tests.report.builders import HELD, QUESTION, broken, judgement_on, random_run, run
from tests.report.chromium import Chromium, Tab

AWAKE = "window.dispatchEvent(new Event('beforeprint')); "
"""Before something is printed every strip is awake, and so it is before a test looks at all."""
LIT = """[...new Set([...document.querySelectorAll('.full .mark.send:not(.off)')]
  .map(mark => mark.dataset.message))].sort()"""
SEES = "document.querySelector('.card').hidden ? null : document.querySelector('.card').innerText"


def opened(browser: Chromium, path: Path, trace: Trace) -> Tab:
    path.write_text(render(judgement_on([trace], broken()), [trace]), encoding="utf-8")
    return browser.open(path)


@pytest.fixture
def tab(browser: Chromium, tmp_path: Path) -> Tab:
    return opened(browser, tmp_path / "page.html", run(HELD))


def send(message: str) -> str:
    return f'.full .mark.send[data-message="{message}"]'


# A click, and what it lights


@pytest.mark.parametrize("seed", range(6))
def test_a_click_lights_exactly_the_past_and_the_future(
    browser: Chromium, tmp_path: Path, seed: int
) -> None:
    trace = random_run(
        seed, size=2 + seed % 4, messages=4 + 3 * seed, crash=seed % 2 == 1, clocks=seed != 4
    )
    past = Run(trace).past
    tab = opened(browser, tmp_path / "page.html", trace)
    for message in sorted(past)[:: max(len(past) // 8, 1)]:
        tab.js(AWAKE)
        tab.click(send(message_text(message)))
        wanted = {message} | past[message] | {n for n in past if message in past[n]}
        assert tab.js(AWAKE + LIT) == sorted(map(message_text, wanted)), message


@pytest.mark.parametrize("seed", range(4))
def test_every_event_is_on_its_side(browser: Chromium, tmp_path: Path, seed: int) -> None:
    """The marks too, not only the messages: compared with reachability, event by event."""
    trace = random_run(seed, size=4, messages=5)
    tab = opened(browser, tmp_path / "page.html", trace)
    message = (seed % 4, 3)
    tab.js(AWAKE)
    tab.click(send(message_text(message)))
    lit = tab.js(
        f"{AWAKE}[...document.querySelectorAll('.full .mark:not(.off)')]"
        ".map(mark => [Number(mark.dataset.process), Number(mark.dataset.position)])"
    )
    drawn = tab.js(
        f"{AWAKE}[...document.querySelectorAll('.full .mark')]"
        ".map(mark => [Number(mark.dataset.process), Number(mark.dataset.position)])"
    )
    wanted = related(trace, message)
    # A mark is lit if any of its events is: an arrival and its delivery may be one mark.
    lasts = {(e.process, e.position - 1) for e in trace.events if e.kind == "deliver"}
    for process, position in {tuple(mark) for mark in drawn}:
        points = {(process, position)}
        if (process, position) in lasts and (process, position + 1) not in map(tuple, drawn):
            points.add((process, position + 1))
        assert ([process, position] in lit) == bool(points & wanted), (process, position)


@pytest.mark.parametrize("seed", range(3))
def test_arrows_are_lit_that_carry_cause_and_effect(
    browser: Chromium, tmp_path: Path, seed: int
) -> None:
    """Copies that were delivered before the send, and copies of what was sent after it."""
    trace = random_run(seed, size=4, messages=5)
    known = Run(trace)
    message = (seed, 3)
    tab = opened(browser, tmp_path / "page.html", trace)
    tab.js(AWAKE)
    tab.click(send(message_text(message)))
    lit = tab.js(
        f"{AWAKE}[...new Set([...document.querySelectorAll('.full .arrow:not(.off)')]"
        ".map(arrow => arrow.dataset.message + ' ' + arrow.dataset.process))].sort()"
    )
    before = reached((seed, known.sends[message].position), edges(trace)[1])
    wanted = set()
    for event in trace.events:
        if event.kind != "deliver" or event.process == event.origin:
            continue
        follows = event.message == message or message in known.past[event.message]
        if follows or (event.process, event.position) in before:
            wanted.add(f"{message_text(event.message)} {event.process}")
    assert lit == sorted(wanted)


Point = tuple[int, int]


def related(trace: Trace, message: Point) -> set[Point]:
    """All events before and after the send, by walking the edges one by one."""
    sent = Run(trace).sends[message]
    after, before = edges(trace)
    start = (sent.process, sent.position)
    return reached(start, after) | reached(start, before)


def edges(trace: Trace) -> tuple[dict[Point, set[Point]], dict[Point, set[Point]]]:
    """What follows each event at once, and what it follows from."""
    known = Run(trace)
    after: dict[Point, set[Point]] = {}
    for event in trace.events:
        point = (event.process, event.position)
        after.setdefault(point, set()).add((event.process, event.position + 1))
        if event.kind == "deliver" and known.first(event.process, event.message) == event.position:
            sent = known.sends[event.message]
            after.setdefault((sent.process, sent.position), set()).add(point)
    before: dict[Point, set[Point]] = {}
    for point, nexts in after.items():
        for following in nexts:
            before.setdefault(following, set()).add(point)
    return after, before


def reached(start: Point, steps: dict[Point, set[Point]]) -> set[Point]:
    seen, frontier = {start}, [start]
    while frontier:
        new = steps.get(frontier.pop(), set()) - seen
        seen |= new
        frontier.extend(new)
    return seen


def test_it_says_how_many_and_escape_clears(tab: Tab) -> None:
    tab.click(send("1:1"))
    spoken = tab.js("document.querySelector('.spoken').textContent")
    assert spoken == "1:1: 1 message in its past, 0 in its future, 0 concurrent. Escape clears."
    assert tab.js("document.querySelectorAll('.cone path').length") > 0
    tab.press("Escape")
    assert tab.js("document.querySelectorAll('.off, .cone').length") == 0
    assert tab.js("document.querySelector('.spoken').textContent") == ""


def test_a_witness_knows_of_what_is_not_drawn_in_it(browser: Chromium, tmp_path: Path) -> None:
    """The witness shows two messages; what links others to them is only in the whole run."""
    trace = run(QUESTION + "6000 p2 send 2:1\n 7000 p0 deliver 2:1\n 8000 p0 send 0:2")
    tab = opened(browser, tmp_path / "page.html", trace)
    tab.click('.proof .mark.send[data-message="0:1"]')
    spoken = tab.js("document.querySelector('.spoken').textContent")
    assert "0 messages in its past, 3 in its future, 0 concurrent" in spoken


# Hovering


def test_the_pointer_shows_what_a_message_waited_for(browser: Chromium, tmp_path: Path) -> None:
    extra = {
        "held": [{"process": 2, "message": "1:1", "waits_for": ["0:1"], "waits_on": []}],
        "payloads": {"1:1": "the answer is <b>42</b>"},
    }
    tab = opened(browser, tmp_path / "page.html", run(HELD, extra=extra))
    tab.click('.full .mark.deliver[data-message="1:1"][data-process="2"]')
    told = tab.js(SEES)
    assert told.startswith("1:1 delivered at p2 (position 3, at 5.6 ms), waited 2.6 ms")
    assert "“the answer is <b>42</b>”" in told
    assert "p2 held 1:1 for 2.6 ms, waiting for 0:1" in told
    assert "1:1 sent and delivered by p1" in told
    tab.mouse("mouseMoved", 2, 2)
    tab.settle()
    assert tab.js(SEES) is None


# Keys


def test_keys_go_from_event_to_event(tab: Tab) -> None:
    tab.js("document.querySelector('.full .scroll').focus()")
    where = "[document.activeElement.dataset.process, document.activeElement.dataset.position]"
    walk = []
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "Home", "End", "ArrowDown", "ArrowLeft"):
        tab.press(key)
        walk.append((key, *map(int, tab.js(where))))
    assert walk == [
        ("ArrowRight", 0, 0),
        ("ArrowRight", 0, 2),
        ("ArrowDown", 1, 2),
        ("Home", 1, 0),
        ("End", 1, 2),
        ("ArrowDown", 2, 0),
        ("ArrowLeft", 2, 0),
    ]
    label = tab.js("document.activeElement.getAttribute('aria-label')")
    assert label == "1:1 arrived at p2 (position 0, at 3 ms)"
    assert label in tab.js(SEES)
    assert tab.js("document.activeElement.getAttribute('role')") == "button"


def test_enter_lights_and_escape_clears(tab: Tab) -> None:
    tab.js("document.querySelector('.full .scroll').focus()")
    tab.press("ArrowRight")
    tab.press("Enter")
    assert tab.js("document.querySelectorAll('.full .chosen').length") == 1
    assert tab.js(LIT) == ["0:1", "1:1"]
    tab.press("Escape")
    assert tab.js("document.querySelectorAll('.off, .chosen').length") == 0


def test_every_control_has_a_name_and_is_reached_by_tab(tab: Tab) -> None:
    controls = "[...document.querySelectorAll('button, input, [tabindex=\"0\"]')]"
    named = f"{controls}.every(c => c.ariaLabel || c.textContent.trim())"
    assert tab.js(named)
    assert tab.js(f"{controls}.length") >= 8


# Filters and zoom


def test_filters_keep_what_was_asked_for(browser: Chromium, tmp_path: Path) -> None:
    tab = opened(browser, tmp_path / "page.html", random_run(1, size=3, messages=3))
    marks = "[...document.querySelectorAll('.full .mark:not(.off)')]"
    kept = f"[...new Set({marks}.map(mark => mark.dataset.%s))].sort()"
    tab.click(".toolbar .chip", 1)
    assert tab.js(kept % "process") == ["1"]
    tab.click(".toolbar .chip", 1)
    assert tab.js("document.querySelectorAll('.off').length") == 0
    tab.click(".toolbar input")
    for letter in "0:2 2:":
        tab.press(letter)
    assert tab.js(kept % "message") == ["0:2", "2:1", "2:2", "2:3"]
    assert tab.js("document.querySelector('.matches').textContent") == "4 found"
    tab.press("Enter")
    assert tab.js("document.querySelector('.matches').textContent") == "1 of 4"


def test_zoom_scales_the_diagram_and_its_names(tab: Tab) -> None:
    size = "document.querySelector('.full {}').getBoundingClientRect().height"
    before = [tab.js(size.format(box)) for box in ("svg.diagram", "svg.names")]
    tab.click(".toolbar button[aria-label='Zoom in']")
    assert tab.js("document.querySelector('.level').textContent") == "140 %"
    after = [tab.js(size.format(box)) for box in ("svg.diagram", "svg.names")]
    assert after == pytest.approx([1.4 * height for height in before], rel=0.01)


def test_one_can_jump_to_what_befell_a_long_run(browser: Chromium, tmp_path: Path) -> None:
    trace = random_run(1, size=4, messages=60, crash=True)
    partitions = [
        {"sides": "0|1,2,3", "start_us": start, "end_us": start + 5_000}
        for start in (40_000, 100_000)
    ]
    manifest = replace(trace.manifest, extra={"partitions": partitions})
    tab = opened(browser, tmp_path / "page.html", replace(trace, manifest=manifest))
    told = []
    places = []
    for _ in range(4):
        tab.click(".toolbar button[aria-label^='Go to the next']")
        told.append(tab.js("document.querySelector('.toolbar .moment').textContent"))
        places.append(tab.js("document.querySelector('.full .scroll').scrollLeft"))
    [dead] = {event.process for event in trace.events if event.kind == "crash"}
    parted = "partition 0 | 1,2,3"
    assert told[:3] == [f"p{dead} crashed (1 of 3)", f"{parted} (2 of 3)", f"{parted} (3 of 3)"]
    assert told[3] == told[0]
    assert places[0] < places[1] < places[2]
    assert places[3] < places[1]


def test_a_calm_or_short_run_has_nothing_to_jump_to(browser: Chromium, tmp_path: Path) -> None:
    for trace in (random_run(1, size=4, messages=60), random_run(1, messages=2, crash=True)):
        tab = opened(browser, tmp_path / "page.html", trace)
        assert tab.js("document.querySelector('.toolbar .moment')") is None


# Ten thousand events

WATCH = """window.slow = []; new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) slow.push(entry.duration);
}).observe({ type: 'event', durationThreshold: 16 })"""


def test_ten_thousand_events_stay_fluid(
    browser: Chromium, tmp_path: Path, record_property: Any
) -> None:
    """The browser itself says how long it takes from a click to the screen."""
    trace = random_run(1, size=8, messages=78)
    assert 9_900 < len(trace.events) <= 10_000
    tab = opened(browser, tmp_path / "page.html", trace)
    assert tab.js("document.querySelectorAll('*').length") < 20_000
    tab.js(WATCH)
    for index in (3, 9, 15):
        tab.click(".full .mark.send", index)
    for key in ("Escape", "ArrowRight", "ArrowRight", "ArrowDown", "End", "Enter", "+", "-"):
        tab.press(key)
    assert "messages in its past" in tab.js("document.querySelector('.spoken').textContent")
    slowest = max(tab.js("slow"), default=0)
    frames = tab.js(
        """new Promise((done) => {
          const box = document.querySelector('.full .scroll'), times = [];
          const step = (now) => {
            times.push(now); box.scrollLeft += 500;
            if (times.length < 60) requestAnimationFrame(step); else done(times);
          };
          requestAnimationFrame(step);
        })"""
    )
    mean = (frames[-1] - frames[0]) / (len(frames) - 1)
    record_property("slowest_interaction_ms", slowest)
    record_property("frame_while_scrolling_ms", mean)
    print(f"slowest interaction {slowest:.0f} ms, a frame while scrolling {mean:.0f} ms")
    assert slowest < 3_000  # About a tenth of this on an idle machine.
    assert mean < 500
