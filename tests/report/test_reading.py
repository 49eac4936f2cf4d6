"""Of a huge trace only what is drawn is read, and the page says what is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from ordercast.errors import TraceError
from ordercast.report import reading
from ordercast.report.digest import digest_of
from ordercast.report.limits import Limits
from ordercast.report.page import compose
from ordercast.report.reading import is_small, read_samples
from ordercast.report.sample import judged_in
from ordercast.trace import Trace, TraceWriter
from ordercast.trace.directory import Format
from tests.report.builders import QUESTION, broken, diagram, groups, judgement_on, random_run, run
from tests.report.test_page import Page

LIMITS = Limits(events=100, window_events=60)
WITNESS = broken(process=1, messages=("2:20", "3:20"), run="r1", sentence="one before the other")


@pytest.fixture(params=["jsonl", "parquet"])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    form: Format = request.param
    big = random_run(4, size=4, messages=40, crash=True)
    small = run(QUESTION, name="r2")
    with TraceWriter(tmp_path / "trace", format=form) as writer:
        for trace in (big, small):
            for event in trace.events:
                writer.write(event)
            writer.add_manifest(trace.manifest)
    return tmp_path / "trace"


@pytest.fixture
def huge(stored: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    assert is_small(stored)
    monkeypatch.setattr(reading, "SMALL_BYTES", 0)
    monkeypatch.setattr(reading, "SMALL_ROWS", 0)
    assert not is_small(stored)
    return stored


def test_small_runs_are_read_whole_either_way(huge: Path) -> None:
    traces = {trace.manifest.run: trace for trace in Trace.load(huge)}
    judged = judged_in(judgement_on(traces.values()), ["r2"])
    [sample] = read_samples(huge, judged, limits=LIMITS)
    assert sample.trace == traces["r2"]
    assert not sample.partial


def test_of_a_huge_run_the_first_messages_and_the_witnesses(huge: Path) -> None:
    [big, _] = Trace.load(huge)
    [judged] = judged_in(judgement_on([big], WITNESS), ["r1"])
    [sample] = read_samples(huge, [judged], limits=LIMITS)
    assert sample.partial
    assert sample.events == len(big.events)
    assert set(sample.trace.events) < set(big.events)
    read = {event.message for event in sample.trace.events if event.number is not None}
    assert {(2, 20), (3, 20)} < read
    for message in read:
        rows = [e for e in big.events if e.number is not None and e.message == message]
        assert set(rows) <= set(sample.trace.events), "all rows about a message, or none"
    assert any(event.kind == "crash" for event in sample.trace.events)
    beside = {(event.process, event.position) for event in sample.around}
    spots = [e for e in big.events if e.number is not None and e.message == (2, 20)]
    assert {(e.process, e.position - 1) for e in spots if e.position} <= beside


def test_the_page_of_a_huge_run_says_so_and_draws_nothing_false(huge: Path) -> None:
    [big, _] = Trace.load(huge)
    judgement = judgement_on([big], WITNESS)
    samples = read_samples(huge, judged_in(judgement, ["r1"]), limits=LIMITS)
    page = compose(digest_of(judgement, lines=9), samples, limits=LIMITS)
    words = Page(page).words
    assert f"Drawn: the first 60 of {len(big.events)} events in time order." in words
    assert f"Events {len(big.events)} Processes 4" in words
    assert "one before the other" in words
    assert "what follows is not shown" in words
    never = [e.get("data-message") for e in groups(diagram(big), "arrow", "never")]
    drawn = [e.get("data-message") for e in groups(diagram(samples[0].trace), "arrow", "never")]
    assert set(drawn) <= set(never)
    assert not groups(diagram(samples[0].trace), "orphan")


def test_a_verdict_on_a_run_that_is_not_there_is_refused(stored: Path) -> None:
    other = run(QUESTION, name="r9")
    with pytest.raises(TraceError, match="verdict on run 'r9', which is not in the trace"):
        read_samples(stored, judged_in(judgement_on([other]), ["r9"]), limits=LIMITS)
