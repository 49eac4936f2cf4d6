"""Chance as an argument: a small generator (splitmix64) that a protocol object carries with it.

The same seed gives the same throws, here and in every other process and version; and its state is
one number, so that a world can be copied and compared.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["Dice"]

_MASK = 2**64 - 1


class Dice:
    def __init__(self, seed: int) -> None:
        self.state = seed & _MASK

    def below(self, bound: int) -> int:
        """A number from 0 to bound - 1."""
        self.state = (self.state + 0x9E3779B97F4A7C15) & _MASK
        mixed = self.state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return (mixed ^ (mixed >> 31)) * bound >> 64

    def chance(self, percent: float) -> bool:
        return self.below(1_000_000) < percent * 10_000

    def sample(self, population: Sequence[int], count: int) -> tuple[int, ...]:
        """`count` different ones, or all if there are fewer, in order."""
        pool = list(population)
        taken = [pool.pop(self.below(len(pool))) for _ in range(min(count, len(pool)))]
        return tuple(sorted(taken))
