"""A function over arrays that runs as it is, or compiled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["WORTH_COMPILING", "Bools", "Ints", "Kernel", "kernel"]

WORTH_COMPILING = 300_000
"""Rows that take plain Python longer than it takes to compile."""
WORTH_LOADING = 3_000
"""Rows that take plain Python longer than it takes to load what is compiled."""

Ints = npt.NDArray[Any]
"""Integers of whatever width is enough."""
Bools = npt.NDArray[np.bool_]

P = ParamSpec("P")
R = TypeVar("R")


class Kernel(Generic[P, R]):
    """Called, it runs as plain Python, which costs nothing to start: right for a few thousand rows.
    Its `compiled` form takes seconds to compile once per machine, and then a hundredth of the time.
    """

    def __init__(self, function: Callable[P, R]) -> None:
        self.plain = function
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self._dispatcher: Any = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.plain(*args, **kwargs)

    @property
    def compiled(self) -> Callable[P, R]:
        if self._dispatcher is None:
            import numba

            self._dispatcher = numba.njit(self.plain)
            try:
                self._dispatcher.enable_caching()
                _watch_all_kernels(self._dispatcher)
            except RuntimeError:  # no place to keep it: compiled anew in each process
                self._dispatcher = numba.njit(self.plain)
        compiled: Callable[P, R] = self._dispatcher
        return compiled

    @property
    def kept(self) -> bool:
        """Has some process on this machine compiled it already?"""
        _ = self.compiled
        try:
            return bool(self._dispatcher._cache._cache_file._load_index())
        except AttributeError:
            return False

    def for_rows(self, rows: int) -> Callable[P, R]:
        """Whichever form will be done sooner."""
        compile_it = rows >= WORTH_COMPILING or (rows >= WORTH_LOADING and self.kept)
        return self.compiled if compile_it else self.plain

    @property
    def _numba_type_(self) -> Any:
        """How the compiler sees one kernel that is called by another."""
        from numba.core import types

        _ = self.compiled
        return types.Dispatcher(self._dispatcher)


def kernel(function: Callable[P, R]) -> Kernel[P, R]:
    return Kernel(function)


def _watch_all_kernels(dispatcher: Any) -> None:
    """Numba looks for changes only in the file of the kernel itself, not of those that it calls."""
    stamps = [file.stat().st_mtime for file in Path(__file__).parent.glob("*.py")]
    file = dispatcher._cache._cache_file
    file._source_stamp = (max(stamps), len(stamps))
