"""Values as places on an axis, and the round values that are named there."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log10

__all__ = ["Scale", "ticks"]


@dataclass(frozen=True, slots=True)
class Scale:
    low: float
    high: float
    left: float
    right: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, at = (log10(v) if self.log else v for v in (self.low, self.high, value))
        part = (at - low) / (high - low) if high > low else 0.5
        return self.left + part * (self.right - self.left)

    @property
    def ticks(self) -> list[float]:
        if not self.log:
            return ticks(self.high)
        powers = range(floor(log10(self.low)), floor(log10(self.high)) + 1)
        factors = (1, 2, 5) if len(powers) < 3 else (1,)
        values = [factor * 10.0**power for power in powers for factor in factors]
        return [value for value in values if self.low <= value <= self.high]


def ticks(most: float, *, wished: int = 4) -> list[float]:
    """From 0, at 1, 2 or 5 times a power of ten; where there are few wholes, at wholes."""
    if most <= 0:
        return [0.0]
    if most == int(most) and most <= wished:
        return [float(value) for value in range(int(most) + 1)]
    rough = most / wished
    power = 10.0 ** floor(log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    return [step * index for index in range(int(most / step + 1e-9) + 1)]
