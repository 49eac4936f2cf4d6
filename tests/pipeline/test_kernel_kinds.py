"""What the compiler is spared: kernels of several kinds, from a file that it has never seen."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

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
