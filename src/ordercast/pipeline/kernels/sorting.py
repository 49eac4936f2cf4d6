"""Messages by name. The compiler takes longer over numpy's sorting than over all of this."""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.kernel import Ints, part

__all__ = ["by_name", "smaller"]


@part
def smaller(origins: Ints, numbers: Ints, m: int, n: int) -> bool:
    """Is m's name before n's?"""
    if origins[m] != origins[n]:
        return bool(origins[m] < origins[n])
    return bool(numbers[m] < numbers[n])


@part
def by_name(origins: Ints, numbers: Ints, chosen: Ints) -> Ints:
    """The chosen ones in the order of their names; those of one name stay as they are."""
    here, there = chosen, np.empty_like(chosen)
    width, size = 1, len(chosen)
    while width < size:
        begin = 0
        while begin < size:
            middle, end = min(begin + width, size), min(begin + 2 * width, size)
            left, right = begin, middle
            for i in range(begin, end):
                if right == end or (
                    left < middle and not smaller(origins, numbers, here[right], here[left])
                ):
                    there[i] = here[left]
                    left += 1
                else:
                    there[i] = here[right]
                    right += 1
            begin = end
        here, there = there, here
        if width == 1:
            there = np.empty_like(chosen)  # the caller's own array stays as it was
        width *= 2
    return here
