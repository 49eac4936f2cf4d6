"""Percentiles from buckets: near the truth, and the same however the values were cut."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ordercast.sweep.histogram import BUCKETS, Histogram, bucket_of, middle_of

VALUES = st.lists(st.integers(0, 2**20) | st.integers(0, 2**53 - 1), min_size=1)
PERCENTS = st.integers(0, 100)


def histogram_of(*portions: list[int]) -> Histogram:
    histogram = Histogram()
    for values in portions:
        buckets, counts = np.unique(bucket_of(np.array(values, np.int64)), return_counts=True)
        histogram.add(buckets, counts, max(values, default=None))
    return histogram


def percentile(values: list[int], percent: int) -> int:
    """As the definition has it: the nearest rank."""
    return next(
        value
        for value in sorted(values)
        if 100 * sum(other <= value for other in values) >= percent * len(values)
    )


@given(values=VALUES, percent=PERCENTS)
def test_a_percentile_is_off_by_less_than_two_percent(values: list[int], percent: int) -> None:
    found, true = histogram_of(values).percentile(percent), percentile(values, percent)
    assert found is not None
    assert abs(found - true) <= 0.016 * true
    assert found <= max(values)


@given(values=st.lists(st.integers(0, 63), min_size=1), percent=PERCENTS)
def test_small_values_are_exact(values: list[int], percent: int) -> None:
    assert histogram_of(values).percentile(percent) == percentile(values, percent)


@given(values=VALUES, cuts=st.tuples(st.integers(0, 100), st.integers(0, 100)))
def test_it_does_not_matter_how_the_values_were_cut(
    values: list[int], cuts: tuple[int, int]
) -> None:
    low, high = sorted(cuts)
    parts = histogram_of(values[low:high], values[high:], values[:low])
    whole = histogram_of(values)
    assert parts.counts.tolist() == whole.counts.tolist()
    assert parts.largest == whole.largest == max(values)


def test_there_are_32_buckets_in_an_octave_and_all_are_used() -> None:
    for octave in range(6, 53):
        first, last = bucket_of(np.array([2**octave, 2 ** (octave + 1) - 1]))
        assert last - first == 31
    assert bucket_of(np.array([0, 63, 64, 65, 66, 2**53 - 1])).tolist() == [
        *(0, 63, 64, 64, 65, BUCKETS - 1)
    ]
    middles = np.array([middle_of(bucket) for bucket in range(BUCKETS)])
    assert bucket_of(middles).tolist() == list(range(BUCKETS))


def test_of_nothing_there_is_no_percentile() -> None:
    assert histogram_of([]).percentile(50) is None
