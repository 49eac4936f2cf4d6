"""The Python that Spark starts on this machine, and how it is talked to."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyspark
import pytest

from ordercast.pipeline.interpreter import interpreter, sockets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOCKETS = "spark.python.unix.domain.socket.enabled"


def test_workers_have_the_pyspark_that_is_installed(spark: SparkSession) -> None:
    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            found = [pyspark.__file__, sys.executable, os.environ["PYTHONPATH"]]
            yield pa.RecordBatch.from_pydict({"found": found})

    seen = spark.range(1).mapInArrow(look, "found string").collect()
    package, python, path = (row.found for row in seen)
    assert (package, python) == (pyspark.__file__, sys.executable)
    assert ".zip" not in path
    assert ".jar" not in path


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("/x/pyspark.zip:/x/py4j-0.10-src.zip:/x/spark-core_2.13-4.3.0.jar", ""),
        ("/x/pyspark.zip:/a b:/c*:/x/py4j-0.10-src.zip:/mine.zip", "/a b:/c*:/mine.zip"),
    ],
)
def test_what_a_user_adds_to_the_path_stays(tmp_path: Path, path: str, kept: str) -> None:
    command = [interpreter(tmp_path), "-c", "import os; print(os.environ['PYTHONPATH'])", "a b"]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{kept}\n"


def test_where_no_script_can_run_python_is_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert interpreter(tmp_path) == str(tmp_path / "python")
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda *_: False)
        assert interpreter(tmp_path) == sys.executable
    monkeypatch.setattr("sysconfig.get_path", lambda _: "/elsewhere")
    assert interpreter(tmp_path) == sys.executable


@pytest.mark.parametrize(("letters", "usable"), [(40, "true"), (90, "false")])
def test_a_socket_is_a_file_where_its_name_is_short_enough(letters: int, usable: str) -> None:
    assert sockets(Path("/" + "x" * letters)) == {SOCKETS: usable}


def test_a_session_in_a_short_place_has_such_sockets(spark: SparkSession) -> None:
    conf = spark.sparkContext.getConf()
    expected = sockets(Path(conf.get("spark.local.dir", "")))
    assert {SOCKETS: conf.get(SOCKETS)} == expected
