"""Python workers that Spark uses again, task after task."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from functools import cache, wraps
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    Batches = Iterator[pa.RecordBatch]

__all__ = ["settle", "settles"]


@cache
def settle(what: str) -> None:
    """Call it when some work is done, by its name: the first time, all that is still there (modules
    and compiled kernels, most of all) is taken out of the garbage collector's sight.

    Spark's worker looks for garbage after every task, and through all of that every time: 30 ms, on
    a machine where an empty task takes 8.
    """
    gc.collect()
    gc.freeze()


def settles(run: Callable[[Batches], Batches]) -> Callable[[Batches], Batches]:
    """For a function that `mapInArrow` gets."""

    @wraps(run)
    def settled(batches: Batches) -> Batches:
        yield from run(batches)
        settle(f"{run.__module__}.{run.__qualname__}")

    return settled
