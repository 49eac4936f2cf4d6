"""The failure detector: properties of it, on random heartbeats."""

from __future__ import annotations

import itertools
import math
from statistics import NormalDist, fmean, pstdev

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ordercast.errors import UsageError
from ordercast.runtime.detector import Attention, Detector

PERIOD_S = 0.5
intervals_s = st.lists(st.floats(0, 20), max_size=40)
starts = st.floats(0, 1e6)


def after(detector: Detector, start: float, intervals: list[float]) -> float:
    """Let it hear heartbeats with these intervals; when the last one was."""
    times = list(itertools.accumulate(intervals, initial=start))
    for now in times:
        detector.heard(now)
    return times[-1]


@given(starts, intervals_s, st.lists(st.floats(0, 1e12), min_size=2))
def test_phi_grows_with_silence_and_stays_a_number(
    start: float, intervals: list[float], silences: list[float]
) -> None:
    detector = Detector()
    last = after(detector, start, intervals)
    doubts = [detector.phi(last + silence) for silence in sorted(silences)]
    assert doubts == sorted(doubts)
    assert all(math.isfinite(doubt) and doubt >= 0 for doubt in doubts)


@given(st.floats(0, 100), st.floats(1e-6, 10))
def test_phi_grows_strictly_even_where_the_probability_is_too_small_for_a_float(
    late: float, more: float
) -> None:
    """A hundred deviations are a probability of 10^-2173."""
    detector = Detector(min_deviation_s=1.0, acceptable_pause_s=0.0)
    detector.heard(0.0)
    assert detector.phi(PERIOD_S + late) < detector.phi(PERIOD_S + late + more)


@given(starts, intervals_s, st.floats(0.5, 20), st.floats(1e-3, 100))
def test_the_deadline_is_where_suspicion_begins(
    start: float, intervals: list[float], threshold: float, margin: float
) -> None:
    detector = Detector(threshold=threshold)
    last = after(detector, start, intervals)
    deadline = detector.deadline()
    assert deadline > last
    assert detector.suspects(deadline)
    assert not detector.suspects(deadline - margin)
    assert detector.phi(deadline) == pytest.approx(threshold, rel=1e-3)
    assert detector.phi(deadline - margin) < threshold < detector.phi(deadline + margin)


@given(st.lists(st.floats(0, 3), min_size=60, max_size=90), st.integers(2, 50))
def test_phi_is_that_of_the_paper_over_the_last_intervals(
    intervals: list[float], window: int
) -> None:
    """Against a literal computation; the pause is large enough for no interval to be suspect."""
    detector = Detector(
        window=window, min_deviation_s=0.01, acceptable_pause_s=5.0, first_estimate_s=0.001
    )
    last = after(detector, 0.0, intervals)
    recent = intervals[-window:]
    deviation = max(pstdev(recent), 0.01)
    law = NormalDist(max(fmean(recent), 0.001) + 5.0, deviation)
    silence = law.mean + 3 * deviation
    expected = -math.log10(1 - law.cdf(silence))
    assert detector.phi(last + silence) == pytest.approx(expected, rel=1e-2)


@given(st.floats(0.1, 5), st.floats(0, 1), st.lists(st.floats(-1, 1), min_size=1, max_size=400))
def test_steady_heartbeats_with_jitter_are_not_suspected(
    period: float, pause: float, jitter: list[float]
) -> None:
    """Jitter up to 5.6 of the smallest deviation, which is where phi reaches 8."""
    detector = Detector(
        min_deviation_s=period / 10, acceptable_pause_s=pause, first_estimate_s=period
    )
    now = 0.0
    detector.heard(now)
    for share in jitter:
        now += period * (1 + 0.56 * share)
        assert not detector.suspects(now)
        detector.heard(now)


@given(st.floats(1, 40))
def test_it_learns_a_slower_pace_and_then_suspects_no_more(slower: float) -> None:
    detector = Detector(window=50)
    now = after(detector, 0.0, [PERIOD_S] * 50)
    for _ in range(500):
        now += PERIOD_S * slower
        detector.heard(now)
    for _ in range(100):
        now += PERIOD_S * slower
        assert not detector.suspects(now)
        detector.heard(now)
    assert detector.suspects(now + 3 * PERIOD_S * slower + 3)


def test_it_learns_to_be_quick_again() -> None:
    detector = Detector(window=50)
    now = after(detector, 0.0, [5.0] * 50)
    assert detector.deadline() - now > 7
    now = after(detector, now, [PERIOD_S] * 50)
    assert detector.deadline() - now < 4


@given(st.floats(10, 1e7))
def test_a_long_outage_does_not_teach_patience(outage: float) -> None:
    detector = Detector()
    last = after(detector, 0.0, [PERIOD_S] * 200)
    before = detector.deadline() - last
    assert detector.suspects(last + outage)
    detector.heard(last + outage)
    assert not detector.suspects(last + outage)
    assert detector.deadline() - (last + outage) < 1.5 * before


def test_a_burst_makes_nobody_impatient() -> None:
    detector = Detector()
    last = after(detector, 0.0, [0.0001] * 1000)
    assert not detector.suspects(last + PERIOD_S * 2)


def test_before_the_first_heartbeat_nobody_is_suspected() -> None:
    detector = Detector()
    assert detector.phi(1e9) == 0
    assert not detector.suspects(1e9)
    assert detector.deadline() == math.inf


@given(intervals_s, st.floats(0, 2), st.floats(0, 1e6))
def test_a_pause_is_as_if_it_had_not_been(
    intervals: list[float], before: float, pause: float
) -> None:
    detector, undisturbed = Detector(), Detector()
    last = after(detector, 0.0, intervals)
    after(undisturbed, 0.0, intervals)
    detector.pause(last + before)
    assert not detector.suspects(last + before + pause)
    assert detector.deadline() == math.inf
    detector.resume(last + before + pause)
    assert detector.deadline() == pytest.approx(undisturbed.deadline() + pause)
    assert not detector.suspects(last + before + pause)
    detector.heard(last + before + pause + 0.1)
    undisturbed.heard(last + before + 0.1)
    silences = detector.deadline() - pause, undisturbed.deadline()
    assert silences[0] == pytest.approx(silences[1], abs=1e-3)


def test_short_pauses_again_and_again_do_not_hide_a_death() -> None:
    """Reading that is paused every other 50 ms still hears that nothing comes."""
    detector = Detector()
    now = after(detector, 0.0, [PERIOD_S] * 20)
    for turn in range(200):
        (detector.pause if turn % 2 else detector.resume)(now)
        now += 0.05
    detector.resume(now)
    assert detector.suspects(now)


def test_a_pause_begins_where_it_began_first() -> None:
    detector = Detector()
    detector.heard(0.0)
    detector.pause(1.0)
    detector.pause(9.0)
    detector.resume(10.0)
    assert detector.deadline() > 11


def test_what_is_heard_during_a_pause_counts() -> None:
    detector = Detector()
    detector.heard(0.0)
    detector.pause(0.5)
    detector.heard(50.0)  # was on its way when reading stopped
    detector.resume(60.0)
    assert 60 < detector.deadline() < 64


def test_a_clock_that_goes_back_does_no_harm() -> None:
    detector = Detector()
    detector.heard(10.0)
    detector.heard(9.0)
    assert detector.phi(8.0) == pytest.approx(0, abs=1e-6)
    assert 9 < detector.deadline() < 13


@given(st.floats(0.01, 5), st.floats(0, 1e5), st.floats(1.0, 1e4))
def test_a_process_that_was_stopped_itself_suspects_nobody(
    tick: float, start: float, stop: float
) -> None:
    assume(stop > 2.5 * tick)
    detector = Detector(first_estimate_s=tick, acceptable_pause_s=4 * tick)
    attention = Attention(tick, start)
    now = start
    detector.heard(now)
    for _ in range(20):
        now += tick
        assert attention.missed_since(now) is None
        detector.heard(now)
    now += stop
    missed_since = attention.missed_since(now)
    assert missed_since == pytest.approx(now - stop)
    detector.pause(missed_since)
    detector.resume(now)
    assert not detector.suspects(now)
    assert attention.missed_since(now + tick) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"threshold": 0.0},
        {"threshold": 1e-300},
        {"threshold": 301.0},
        {"threshold": math.nan},
        {"window": 1},
        {"min_deviation_s": 0.0},
        {"acceptable_pause_s": -1.0},
        {"first_estimate_s": 0.0},
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        Detector(**wrong)
