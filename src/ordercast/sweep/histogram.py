"""A log-linear histogram: sums are exact, so it does not matter how the values were cut up.

Values up to 63 have a bucket each; from there on every octave has 32 of equal width. A bucket
stands for its middle, which is off by at most half its width: under 1.6 % of any value in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BUCKETS", "Histogram", "bucket_of", "middle_of"]

_EXACT = 64
_PER_OCTAVE = 32
_BITS_MAX = 53
"""Larger values are not whole numbers any more in the float arithmetic below."""
BUCKETS = _EXACT + (_BITS_MAX - 6) * _PER_OCTAVE


def bucket_of(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The bucket of each value, which must not be negative."""
    assert values.size == 0 or (values.min() >= 0 and values.max() < 2**_BITS_MAX)
    octave = np.frexp(values.astype(np.float64))[1].astype(np.int64) - 1
    shift = np.maximum(octave - 5, 0)
    return np.where(values < _EXACT, values, (octave - 5) * _PER_OCTAVE + (values >> shift))


def middle_of(bucket: int) -> int:
    if bucket < _EXACT:
        return bucket
    shift = (bucket - _EXACT) // _PER_OCTAVE + 1
    low = (_PER_OCTAVE + (bucket - _EXACT) % _PER_OCTAVE) << shift
    return low + (1 << shift) // 2


class Histogram:
    def __init__(self) -> None:
        self.counts = np.zeros(BUCKETS, np.int64)
        self.largest: int | None = None
        """Of all values, exactly."""

    def add(
        self, buckets: NDArray[np.int64], counts: NDArray[np.int64], largest: int | None
    ) -> None:
        """So many values more in each of the buckets, and the largest of them."""
        if largest is None:
            return
        # The weights are floats, and exact: a sweep has fewer than 2**53 deliveries.
        self.counts += np.bincount(buckets, counts, BUCKETS).astype(np.int64)
        self.largest = max(largest, self.largest or 0)

    def percentile(self, percent: int) -> int | None:
        """The smallest value that so many percent of all do not exceed; None if there is none."""
        if self.largest is None:
            return None
        reached = np.cumsum(self.counts)
        rank = max(1, -(-percent * int(reached[-1]) // 100))
        return min(middle_of(int(np.searchsorted(reached, rank))), self.largest)
