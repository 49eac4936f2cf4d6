"""What the compiler is spared: kernels of several kinds, from a file that it has never seen."""

from __future__ import annotations

import signal
import sys
import time
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from ordercast.pipeline.kernels import kernel

KERNELS = """
from ordercast.pipeline.kernels.kernel import kernel, part, spliced

@part
def added(a, b):
    return a + b

@spliced
def twice(a):
    return added(a, a)

@kernel
def outer(a):
    return added(a, 0) + added(1, a) + added(a, b=2) + twice(a)

@kernel
def spin(times):
    found = 7 // (times + 1)
    for i in range(times):
        found = (found * 31 + i) % 1_000_003
    return found
"""


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "fresh_kernels.py").write_text(KERNELS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "fresh_kernels", raising=False)
    return import_module("fresh_kernels")


def test_a_part_is_compiled_once_whatever_numbers_it_is_called_with(fresh: ModuleType) -> None:
    assert fresh.outer.compiled(5) == fresh.outer(5) == 5 + 6 + 7 + 10
    assert len(fresh.added._dispatcher.signatures) == 1


def test_what_is_spliced_is_not_compiled_by_itself(fresh: ModuleType) -> None:
    assert fresh.outer.compiled(5) == 28
    assert fresh.twice._dispatcher is None or not fresh.twice._dispatcher.signatures


def test_python_cannot_call_a_part_that_is_compiled(fresh: ModuleType) -> None:
    """It would not come back from there."""
    assert fresh.added(1, 2) == 3
    with pytest.raises(AssertionError, match="only kernels call it"):
        fresh.added.compiled(1, 2)


def test_a_signal_is_heard_while_compiled_code_runs(
    fresh: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes seconds. Without a thread of its own it would go on to its end, and the process
    would not survive that."""

    class HeardError(Exception):
        pass

    def hear(number: int, frame: object) -> None:
        raise HeardError

    monkeypatch.setattr(kernel, "WORTH_COMPILING", 0)
    call = fresh.spin.heeding_signals(0)
    assert call(1) == fresh.spin(1)
    before = signal.signal(signal.SIGALRM, hear)
    began = time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(HeardError):
            call(1_000_000_000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - began < 2


def test_what_compiled_code_raises_is_raised_where_it_was_called(
    fresh: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "WORTH_COMPILING", 0)
    with pytest.raises(ZeroDivisionError):
        fresh.spin.heeding_signals(0)(-1)
