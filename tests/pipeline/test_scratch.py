"""What a process that was killed has left behind goes with the next session."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ordercast.pipeline.scratch import make_scratch, remove_scratch

OTHER = """
import sys, time
from ordercast.pipeline.scratch import make_scratch
print(make_scratch(), flush=True)
time.sleep(600)
"""


@pytest.fixture
def other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[str]]:
    """Another process with a directory of its own, beside where ours will be."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    command = [sys.executable, "-c", OTHER]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.communicate()


def test_only_the_dead_are_cleared_away(other: subprocess.Popen[str], tmp_path: Path) -> None:
    assert other.stdout is not None
    theirs = Path(other.stdout.readline().strip())
    (theirs / "blocks").mkdir()
    mine = make_scratch()
    assert {mine, theirs} == set(tmp_path.iterdir())
    other.kill()
    other.wait()
    second = make_scratch()
    assert {mine, second} == set(tmp_path.iterdir())
    remove_scratch(mine)
    remove_scratch(second)
    assert not list(tmp_path.iterdir())


def test_the_jvm_keeps_to_it(spark: SparkSession) -> None:
    assert spark._jvm is not None
    where = spark._jvm.java.lang.System.getProperty("java.io.tmpdir")
    assert Path(where, "lock").exists()
    assert Path(where) == Path(spark.sparkContext.getConf().get("spark.local.dir") or "")
