"""Two runs side by side: what differs is said, and drawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ordercast.oracle import judge
from ordercast.report.comparison import compare
from ordercast.report.differences import _cost
from ordercast.report.sample import Judged, Sample
from ordercast.trace import Trace
from tests.report.builders import HELD, QUESTION, random_run, run
from tests.report.chromium import Chromium
from tests.report.test_page import Page

PROMISES = ("fifo", "causal")


def sample(trace: Trace) -> Sample:
    return Sample(trace, len(trace.events), Judged(trace.manifest.run, judge(trace), PROMISES))


@pytest.fixture
def pair() -> tuple[Sample, Sample]:
    held = run(HELD, name="held", order="causal_vector", extra={"seed": 7})
    broke = run(QUESTION, name="broke", order="unordered", extra={"seed": 7})
    return sample(held), sample(broke)


def test_it_says_what_differs(pair: tuple[Sample, Sample]) -> None:
    words = Page(compare(*pair)).words
    for told in (
        "Causal order, pairwise total order, acyclic total order and 2 more held in A and not in B",
        "5 verdicts differ, 6 are the same.",
        "A is run held B is run broke",
        "causal order ✓ holds ✗ violated 0:1 came before 1:1, but p2 delivered 1:1 without it",
        "Ordering causal_vector unordered",
        "Seed 7 7",
        "Both sent the same 2 messages, in the same order at each process.",
        "p2: at once, A delivered 0:1 and B 1:1.",
        "p0 and p1 delivered the same in the same order.",
        "Time held, maximum 2.6 ms 0",
    ):
        assert told in words


@pytest.mark.parametrize(
    ("right", "note"), [(1.9, "190 %"), (0.5, "50 %"), (2.3, "× 2.3"), (1.0, "")]
)
def test_costs_say_how_the_second_stands_to_the_first(right: float, note: str) -> None:
    assert _cost("Copies", [1.0, right], str).note == note


def test_the_same_run_twice_has_no_difference(pair: tuple[Sample, Sample]) -> None:
    words = Page(compare(pair[0], pair[0])).words
    assert "The verdicts on both runs are the same" in words
    assert "p0, p1 and p2 delivered the same in the same order." in words
    assert "No verdict differs. The same in both (11)" in words


def test_runs_of_the_same_name_are_told_apart_by_where_they_are(
    pair: tuple[Sample, Sample],
) -> None:
    sources = [replace(pair[0], source=source) for source in ("out", "other/out")]
    words = Page(compare(*sources)).words
    assert "A is run held in out B is run held in other/out" in words


def test_what_an_import_says_is_told_in_words(pair: tuple[Sample, Sample]) -> None:
    extra = {"imported": {"format": "table", "files": ["a.csv", "b.csv"], "notes": []}}
    imported = sample(run(HELD, name="held", order="causal_vector", extra=extra))
    words = Page(compare(pair[0], imported)).words
    assert "Imported from not stated a.csv, b.csv (table)" in words


def test_other_traffic_is_told(pair: tuple[Sample, Sample]) -> None:
    other = sample(run(HELD + "9000 p0 send 0:2", name="more"))
    words = Page(compare(pair[0], other)).words
    assert "They did not send the same: A sent 2 messages and B 3, of which 2 are the same" in words
    words = Page(compare(other, pair[0])).words
    assert "They did not send the same: A sent 3 messages and B 2, of which 2 are the same" in words


def test_what_is_lit_in_one_is_lit_in_the_other(
    browser: Chromium, tmp_path: Path, pair: tuple[Sample, Sample]
) -> None:
    page = tmp_path / "page.html"
    page.write_text(compare(*pair))
    tab = browser.open(page, width=1800)
    tab.click('#run-a .full .mark.send[data-message="1:1"]')
    chosen = "[...document.querySelectorAll('.full .chosen')].map(mark => mark.dataset.message)"
    assert tab.js(chosen) == ["1:1", "1:1"]
    tab.press("Escape")
    assert tab.js(chosen) == []
    assert (tab.complaints(), tab.requests()) == ([], [page.as_uri()])
    boxes = "[...document.querySelectorAll('.columns.runs > section')]"
    assert tab.js(f"new Set({boxes}.map(box => box.getBoundingClientRect().top)).size") == 1


def test_what_is_scrolled_in_one_is_scrolled_in_the_other(
    browser: Chromium, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    page.write_text(compare(*(sample(random_run(seed, size=3, messages=40)) for seed in (1, 2))))
    tab = browser.open(page, width=1800)
    boxes = "[...document.querySelectorAll('.full .scroll')]"
    share = f"{boxes}.map(b => b.scrollLeft / (b.scrollWidth - b.clientWidth))"
    for leader, part in ((0, 0.5), (1, 0.25), (0, 1), (1, 0)):
        tab.js(f"(b => b.scrollLeft = {part} * (b.scrollWidth - b.clientWidth))({boxes}[{leader}])")
        tab.settle()
        tab.settle()
        assert tab.js(share) == pytest.approx([part, part], abs=0.01)
