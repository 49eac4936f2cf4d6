"""What was compiled once is neither compiled again by others nor left behind when it ships."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ordercast
from ordercast.pipeline.shipping import pack

COMPILE = """
import sys, time
from pathlib import Path
import numpy as np
from ordercast.pipeline.kernels.entering import first_row

first_row.kept
Path(sys.argv[1]).touch()
while not all(Path(name).exists() for name in sys.argv[1:]):
    time.sleep(0.01)
nothing = np.zeros(0, np.int64)
assert first_row.compiled(nothing, nothing, nothing, nothing, nothing) == 0
stats = first_row.compiled.stats
print(sum(stats.cache_misses.values()), sum(stats.cache_hits.values()))
"""


def start(packages: Path, *ready: Path) -> subprocess.Popen[str]:
    """The program with the ordercast that is there; it goes on once all are `ready`."""
    command = [sys.executable, "-c", COMPILE, *map(str, ready)]
    environment = os.environ | {"PYTHONPATH": str(packages)}
    environment.pop("NUMBA_CACHE_DIR", None)
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def answer(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return output.strip()


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """An ordercast of which nothing is compiled yet."""
    source = Path(ordercast.__file__).parent
    bare = shutil.ignore_patterns("__pycache__")
    shutil.copytree(source, tmp_path / "packages" / "ordercast", ignore=bare)
    return tmp_path / "packages"


def test_of_many_processes_one_compiles_and_what_it_made_travels(
    packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = [tmp_path / "first", tmp_path / "second"]
    both = [start(packages, *ready), start(packages, *reversed(ready))]
    assert sorted(map(answer, both)) == ["0 1", "1 0"]

    monkeypatch.setattr(ordercast, "__file__", str(packages / "ordercast" / "__init__.py"))
    shutil.unpack_archive(pack(tmp_path), tmp_path / "elsewhere" / "ordercast")
    assert answer(start(tmp_path / "elsewhere", tmp_path / "third")) == "0 1"

    kernel = tmp_path / "elsewhere" / "ordercast" / "pipeline" / "kernels" / "sequence.py"
    kernel.write_text(kernel.read_text() + "\n# changed\n")
    assert answer(start(tmp_path / "elsewhere", tmp_path / "fourth")) == "1 0"
