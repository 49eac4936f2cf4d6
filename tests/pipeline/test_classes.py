"""Spark's classes, kept: used if they are there, done without if they are of no use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ordercast.errors import SetupError
from ordercast.pipeline import classes
from ordercast.pipeline.java import class_archive

TIMEOUT_S = 300

PROGRAM = """
import sys
from pathlib import Path
import ordercast.pipeline

s = sys.modules["ordercast.pipeline.session"]
if len(sys.argv) > 1:
    settings = sys.modules["ordercast.pipeline.settings"]
    settings.class_archive = lambda: Path(sys.argv[1])
options = "-XX:TieredStopAtLevel=1 -Xlog:class+load:file=loaded.txt"
with s.session(master="local[1]", config={"spark.driver.extraJavaOptions": options}) as spark:
    print(spark.range(3).count())
"""


def run(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )


def shared(directory: Path) -> int:
    """How many of Spark's own classes came ready-made."""
    lines = (directory / "loaded.txt").read_text().splitlines()
    spark = [line for line in lines if "] org.apache.spark." in line]
    assert len(spark) > 1000
    return sum("source: shared objects file" in line for line in spark)


def test_kept_classes_are_used(tmp_path: Path) -> None:
    if not class_archive().is_file():  # set-up has made it, unless somebody removed it
        made = run(tmp_path, "-m", "ordercast.pipeline.classes")
        assert made.returncode == 0, made.stderr
    done = run(tmp_path, "-c", PROGRAM)
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")
    assert shared(tmp_path) > 1000


def test_a_spoilt_archive_is_done_without(tmp_path: Path) -> None:
    archive = tmp_path / "spark.jsa"
    archive.write_bytes(b"not what a JVM writes" * 1000)
    done = run(tmp_path, "-c", PROGRAM, str(archive))
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")
    assert shared(tmp_path) == 0


def test_no_place_to_keep_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "share").write_text("a file, where a directory should be")
    monkeypatch.setattr(sys, "prefix", os.fspath(tmp_path))
    with pytest.raises(SetupError, match=r"share/ordercast: Spark's classes cannot be kept here"):
        classes.keep_classes()
