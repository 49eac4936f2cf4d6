"""What Spark's Python workers are spared between tasks."""

from __future__ import annotations

import ctypes
import gc
from functools import cache

import pyarrow as pa
from pyspark import TaskContext

__all__ = ["keep_memory", "keep_what_is_loaded"]

OLD_MANY = 10_000
# What glibc's malloc.h calls them.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_FREE_MOST = 1 << 28
"""Bytes that a worker keeps without using them."""


def keep_what_is_loaded() -> None:
    """At the start of a task: a worker collects garbage after each, and would look through all
    that numba, pandas, pyarrow and compiled kernels consist of: 30 ms, where an empty task takes 8.
    What has lasted until now is here to stay."""
    if TaskContext.get() is not None and len(gc.get_objects(generation=2)) > OLD_MANY:
        gc.freeze()


@cache
def keep_memory() -> None:
    """For tasks that are all alike: one frees its arrays, and the next one wants as many. If the
    system has taken them back by then, each page of them costs a fault: an eighth of judging a huge
    run. Where tasks differ, what is kept lies in pieces, and more is taken in the end."""
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        tell = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):  # another C library: as it likes
        return
    tell(_M_MMAP_THRESHOLD, 1 << 30)
    tell(_M_TRIM_THRESHOLD, _FREE_MOST)
