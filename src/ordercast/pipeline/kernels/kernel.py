"""A function over arrays that runs as it is, or compiled."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["WORTH_COMPILING", "Bools", "Ints", "Kernel", "inner", "kernel", "part", "spliced"]

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

    def __init__(self, function: Callable[P, R], **options: Any) -> None:
        self.plain = function
        self._options = options
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self._dispatcher: Any = None
        self._called = False
        if "inline" in options:  # where the compiler looks for it, in whatever a kernel calls
            self.targetoptions, self.py_func = options, function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.plain(*args, **kwargs)

    @property
    def compiled(self) -> Callable[P, R]:
        assert "no_cpython_wrapper" not in self._options, "only kernels call it"
        if self._called:
            compiled: Callable[P, R] = self._dispatcher
            return compiled
        self._prepare()
        return self._call_first

    def _prepare(self) -> None:
        if self._dispatcher is None:
            import numba

            self._dispatcher = numba.njit(self.plain, nogil=True, **self._options)
            try:
                self._dispatcher.enable_caching()
                # Numba looks for changes in the file of the kernel, not of those that it calls.
                self._dispatcher._cache._cache_file._source_stamp = _all_kernels()
            except RuntimeError:  # no place to keep it: compiled anew in each process
                self._dispatcher = numba.njit(self.plain, nogil=True, **self._options)
            _compile_once_for_all_numbers(self._dispatcher)

    def _call_first(self, *args: P.args, **kwargs: P.kwargs) -> R:
        self._compile(*args, **kwargs)
        result: R = self._dispatcher(*args, **kwargs)
        return result

    def heeding_signals(self, rows: int) -> Callable[P, R]:
        """`for_rows`, for what may take a while in the main thread. Compiled code looks for signals
        only as it returns, and does not survive what Ctrl-C raises there: so it runs in a thread of
        its own, which nobody waits for any more once there is a signal."""
        if self.for_rows(rows) is self.plain:
            return self.plain

        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            self._compile(*args, **kwargs)  # here, where it can be interrupted
            found: R = _in_a_thread(partial(self._dispatcher, *args, **kwargs))
            return found

        return call

    def _compile(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """For arguments such as these, without calling it."""
        assert not kwargs, "kernels are called with places"
        if not self._called:
            self._prepare()
            with self._alone():
                self._dispatcher.compile(tuple(map(self._dispatcher.typeof_pyval, args)))
            self._called = True

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Of several processes that need it at the same time, one compiles, and the others wait and
        load what that one has kept."""
        try:
            import fcntl

            index = Path(self._dispatcher._cache._cache_file._index_path)
        except (ImportError, AttributeError):
            yield
            return
        if self.kept:
            yield
            return
        with index.with_suffix(".lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @property
    def kept(self) -> bool:
        """Has some process on this machine compiled it already?"""
        self._prepare()
        try:
            return bool(self._dispatcher._cache._cache_file._load_index())
        except AttributeError:
            return False

    @property
    def keeps(self) -> bool:
        """Will what is compiled be there for the next process?"""
        self._prepare()
        return hasattr(self._dispatcher._cache, "_cache_file")

    def for_rows(self, rows: int) -> Callable[P, R]:
        """Whichever form will be done sooner."""
        compile_it = rows >= WORTH_COMPILING or (rows >= WORTH_LOADING and self.kept)
        return self.compiled if compile_it else self.plain

    @property
    def _numba_type_(self) -> Any:
        """How the compiler sees one kernel that is called by another."""
        from numba.core import types

        self._prepare()
        return types.Dispatcher(self._dispatcher)


def _in_a_thread(call: Callable[[], R]) -> R:
    results: list[R] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="kernel", daemon=True)
    thread.start()
    thread.join()
    for error in errors:
        raise error
    return results[0]


def _compile_once_for_all_numbers(dispatcher: Any) -> None:
    """Called by another kernel with a 0, a 1 and a variable, it would be compiled three times."""
    from numba.core import types

    unliteral: Callable[[Any], Any] = types.unliteral
    typed = dispatcher.get_call_template

    def called(args: Iterable[Any], kwargs: Mapping[str, Any]) -> Any:
        return typed(
            tuple(map(unliteral, args)), {name: unliteral(one) for name, one in kwargs.items()}
        )

    dispatcher.get_call_template = called


def kernel(function: Callable[P, R]) -> Kernel[P, R]:
    return Kernel(function)


def inner(function: Callable[P, R]) -> Kernel[P, R]:
    """A kernel that others call for each row, and that allocates nothing: references to the arrays
    that it is handed are not counted, which would take several times as long as what it does."""
    return Kernel(function, _nrt=False, forceinline=True)


def part(function: Callable[P, R]) -> Kernel[P, R]:
    """A kernel that only others call: nothing is compiled by which Python could."""
    return Kernel(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def spliced(function: Callable[P, R]) -> Kernel[P, R]:
    """A kernel that is called in one place, and mostly calls others: its lines are compiled there.
    By itself, all that it calls would have to be optimised once more."""
    return Kernel(function, inline="always")


@cache
def _all_kernels() -> str:
    """What the sources are, wherever and whenever they were put there: so that what was compiled
    from them can travel."""
    found = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        found.update(file.read_bytes())
    return found.hexdigest()
