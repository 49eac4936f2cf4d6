"""Who has gone silent: the phi-accrual failure detector (Hayashibara and others 2004).

Guarantees  a process that has stopped is suspected in the end; one that answers as it used to is
            hardly ever: with threshold 8, once in 10^8 heartbeats of its normal distribution.
Assumes     heartbeats at a steady pace, whatever that is. Nothing else is promised by time alone:
            a suspicion may be wrong, and ends when the process is heard again.
Costs       one heartbeat a period; O(1) time each, memory for a window of them.

    on heartbeat at t:   put t - last into the window; last = t
    phi(t):              -log10 of the probability that a heartbeat comes later than t,
                         for a normal distribution with the window's mean and deviation
    suspect at t if      phi(t) >= threshold

Pure: time is an argument, in seconds of a clock that never goes back, such as `loop.time()`.
"""

from __future__ import annotations

import math
from collections import deque
from statistics import NormalDist

from ordercast.errors import UsageError

__all__ = ["THRESHOLD_MAX", "THRESHOLD_MIN", "Attention", "Detector"]

THRESHOLD_MIN, THRESHOLD_MAX = 0.001, 300.0
"""Beyond them the probability is too near to 1 or to 0 for a float."""
TAIL_FROM = 37.0
"""From so many deviations on, a series is more exact than `erfc`, which fades to zero."""
DEVIATIONS_MAX = 1e9
MICROSECONDS = 1_000_000


class Detector:
    """Watches one process."""

    def __init__(
        self,
        *,
        threshold: float = 8.0,
        window: int = 200,
        min_deviation_s: float = 0.1,
        acceptable_pause_s: float = 2.0,
        first_estimate_s: float = 0.5,
    ) -> None:
        """`first_estimate_s` is the period that the process has promised. The mean is never taken
        for less, so any traffic may count as a heartbeat: a burst makes nobody impatient."""
        if not THRESHOLD_MIN <= threshold <= THRESHOLD_MAX:
            raise UsageError(
                f"a threshold of {threshold}: choose from {THRESHOLD_MIN:g} to {THRESHOLD_MAX:g}"
            )
        if window < 2:
            raise UsageError(f"a window of {window} heartbeats: choose 2 or more")
        if not (min_deviation_s > 0 and acceptable_pause_s >= 0 and first_estimate_s > 0):
            raise UsageError("the times of a failure detector have to be positive")
        self._min_deviation_s = min_deviation_s
        self._min_mean_s = first_estimate_s
        self._pause_s = acceptable_pause_s
        self._patience = -NormalDist().inv_cdf(10**-threshold)
        """The deviations after which phi reaches the threshold."""
        self._window = window
        # Whole microseconds: their sums are exact, however long the process lives.
        self._intervals_us: deque[int] = deque()
        self._sum = 0
        self._sum_of_squares = 0
        self._record(first_estimate_s * 3 / 4)
        self._record(first_estimate_s * 5 / 4)
        self._last: float | None = None
        self._paused_at: float | None = None

    def heard(self, now: float) -> None:
        """A sign of life; the first one starts the watch.

        A silence counts up to where it became suspect: so a long outage does not teach patience,
        and a pace that has become slower is learnt step by step.
        """
        if self._last is not None:
            self._record(min(self._silence(now), self._limit()))
        self._last = now
        if self._paused_at is not None:
            self._paused_at = now

    def pause(self, now: float) -> None:
        """From now on we do not listen, so silence says nothing."""
        if self._paused_at is None:
            self._paused_at = now

    def resume(self, now: float) -> None:
        """We listen again. The time between is left out; the silence before it still counts."""
        if self._paused_at is not None and self._last is not None:
            self._last += max(now - self._paused_at, 0.0)
        self._paused_at = None

    def phi(self, now: float) -> float:
        """How suspect the process is: 1 is wrong once in ten times, 8 once in 10^8."""
        if self._last is None:
            return 0.0
        late_s = self._silence(now) - self._mean_s() - self._pause_s
        return _improbability(late_s / self._deviation_s())

    def suspects(self, now: float) -> bool:
        return self._paused_at is None and now >= self.deadline()

    def deadline(self) -> float:
        """When suspicion begins if nothing more is heard: infinity before the first heartbeat
        and during a pause."""
        if self._last is None or self._paused_at is not None:
            return math.inf
        return self._last + self._limit()

    def _silence(self, now: float) -> float:
        assert self._last is not None
        until = now if self._paused_at is None else self._paused_at
        return max(until - self._last, 0.0)

    def _limit(self) -> float:
        """The silence that makes suspect."""
        return max(self._mean_s() + self._pause_s + self._patience * self._deviation_s(), 0.0)

    def _mean_s(self) -> float:
        return max(self._sum / len(self._intervals_us) / MICROSECONDS, self._min_mean_s)

    def _deviation_s(self) -> float:
        count = len(self._intervals_us)
        variance_us2 = (count * self._sum_of_squares - self._sum**2) / count**2
        return max(math.sqrt(variance_us2) / MICROSECONDS, self._min_deviation_s)

    def _record(self, interval_s: float) -> None:
        if len(self._intervals_us) == self._window:
            oldest = self._intervals_us.popleft()
            self._sum -= oldest
            self._sum_of_squares -= oldest**2
        interval = round(interval_s * MICROSECONDS)
        self._intervals_us.append(interval)
        self._sum += interval
        self._sum_of_squares += interval**2


class Attention:
    """Notices that we ourselves were away: stopped, swapped out, or stuck in a long callback.

    The host calls it at every tick of its own, and before it acts on a deadline; what it says was
    missed goes to every detector as a pause.
    """

    def __init__(self, tick_s: float, now: float) -> None:
        self._tolerance_s = 2 * tick_s
        self._last = now

    def missed_since(self, now: float) -> float | None:
        """When we were here last, if that is too long ago to judge anybody's silence."""
        before, self._last = self._last, now
        return before if now - before > self._tolerance_s else None


def _improbability(deviations: float) -> float:
    """-log10 of the normal distribution's tail beyond so many deviations."""
    if deviations < TAIL_FROM:
        return math.log10(2 / math.erfc(deviations / math.sqrt(2)))
    x = min(deviations, DEVIATIONS_MAX)
    series = 1 - x**-2 + 3 * x**-4 - 15 * x**-6
    return (x * x / 2 + math.log(x * math.sqrt(2 * math.pi) / series)) / math.log(10)
