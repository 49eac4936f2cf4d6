"""What is not installed is told at once, in words that fit what was asked for."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ordercast import pipeline
from ordercast.cli import main
from ordercast.errors import SetupError, UsageError
from ordercast.pipeline.classes import keep_classes

INSTALL = "pip install 'ordercast[spark]'"
STREAM = ["--group", "g", "--output", "out", "--checkpoint", "state"]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.jsonl").write_text('{"process": 0, "kind": "send", "message": "0:1"}\n')
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["verify", "log.jsonl"], "judging a trace needs Spark, which is not installed here"),
        (["verify", "log.jsonl"], "; or judge without Spark what is small: --here"),
        (["run"], "judging a trace needs Spark, which is not installed here"),
        (["run"], "; or judge without Spark what is small: --here"),
        (["sort", "log.jsonl", "-o", "out"], "sorting needs Spark, which is not installed here"),
        (["sweep"], "a sweep needs Spark, which is not installed here"),
        (["stream", "order", ".", *STREAM], "ordering a stream needs Spark, which is not inst"),
        (["stream", "watch", "."], "watching a trace needs Spark, which is not installed here"),
        (
            ["import", "log.jsonl", "-o", "out", "--format", "table", "--master", "local"],
            "an import with --master needs Spark, which is not installed here",
        ),
    ],
)
def test_without_pyspark(
    arguments: list[str],
    what: str,
    place: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert main(arguments) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert what in said
    assert INSTALL in said
    assert [path.name for path in place.iterdir()] == ["log.jsonl"]


@pytest.mark.parametrize("arguments", [["verify", "log.jsonl"], ["report", "log.jsonl"], ["run"]])
def test_without_what_judges_here(
    arguments: list[str],
    place: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    assert main([*arguments, "--here"]) == 2
    assert (
        capsys.readouterr()
        .err.splitlines()[-1]
        .endswith(
            "judging a trace in one process needs packages that are not all installed here: "
            "pip install 'ordercast[judge]'"
        )
    )
    assert [path.name for path in place.iterdir()] == ["log.jsonl"]


def test_here_takes_neither_spark_nor_java(place: Path) -> None:
    """In a Python that has only what the extra `judge` brings."""
    for package in ("pandas", "pyspark", "google"):
        (place / "shadow" / package).mkdir(parents=True)
        words = f"raise ModuleNotFoundError(name={package!r})\n"
        (place / "shadow" / package / "__init__.py").write_text(words)
    environment = os.environ | {
        "PYTHONPATH": str(place / "shadow"), "JAVA_HOME": str(place), "PATH": "",
    }  # fmt: skip

    def ordercast(*arguments: str) -> str:
        command = [sys.executable, "-m", "ordercast", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    told = ordercast("run", "--here", "--order", "total", "--trace", "trace")
    assert "Order held: causal, and total order. What was promised: ✔ holds." in told
    assert (place / "trace" / "report.html").is_file()
    judged = json.loads(ordercast("verify", "trace", "--here", "--json"))
    assert {one["verdict"] for one in judged["verdicts"] if one["property"] != "synchronous"} == {
        "holds"
    }
    ordercast("report", "trace", "--here", "-o", "page.html")
    assert (place / "page.html").read_bytes() == (place / "trace" / "report.html").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "flags"),
    [
        (["run", "--follow"], "--follow, --master and --conf"),
        (["run", "--master", "local"], "--follow, --master and --conf"),
        (["report", "log.jsonl", "--conf", "spark.x=1"], "--master and --conf"),
        (
            ["export", "log.jsonl", "-o", "x", "--format", "csv", "--master", "local"],
            "--master and --conf",
        ),
    ],
)
def test_here_and_spark(
    arguments: list[str], flags: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--here"]) == 2
    assert capsys.readouterr().err == (
        f"ordercast {arguments[0]}: --here does without Spark: leave out {flags}\n"
    )
    assert [path.name for path in place.iterdir()] == ["log.jsonl"]


def test_a_look_at_the_pipeline_takes_no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    for name in pipeline.__all__:
        assert callable(getattr(pipeline, name, None))
    sentence = "needs Spark, which is not installed here"
    for what, words in (
        (lambda: pipeline.read_log("log"), f"read_log {sentence}"),
        (lambda: pipeline.read_results(None, Path("results")), f"read_results {sentence}"),
        (pipeline.open_session, f"a session {sentence}"),
        (keep_classes, f"keeping Spark's classes {sentence}"),
    ):
        with pytest.raises(SetupError, match=words):
            what()


@pytest.mark.parametrize(
    ("choices", "sentence"),
    [
        ({"order": 3}, "an order is a word, such as 'causal', not 3"),
        ({"properties": "fifo"}, "properties are several names: write ['fifo']"),
        ({"properties": []}, "nothing is to be judged: choose from no_duplication"),
        ({"master": "local"}, "here, there is no Spark: leave out master, config and spark"),
    ],
)
def test_wrong_choices(place: Path, choices: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=re.escape(sentence)):
        pipeline.judge(place / "log.jsonl", here=True, **choices)


def test_without_pyarrow_no_parquet_is_promised(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert main(["simulate", "--trace", "out", "--format", "parquet"]) == 2
    assert capsys.readouterr().err == (
        "ordercast simulate: Parquet traces need pyarrow: pip install 'ordercast[judge]', "
        "or use JSON lines\n"
    )
    assert not (place / "out").exists()


@pytest.mark.parametrize(
    ("version", "sentence"),
    [
        (None, "Spark needs Java, and JAVA_HOME={home} has no bin/java"),
        ("11.0.2", "Spark does not run on Java 11: install Java 17 or newer"),
    ],
)
def test_without_java_no_group_is_started(
    version: str | None,
    sentence: str,
    place: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = place / "java"
    (home / "bin").mkdir(parents=True)
    if version is not None:
        java = home / "bin" / "java"
        java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
        java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert main(["run"]) == 2
    [said] = capsys.readouterr().err.splitlines()
    assert sentence.format(home=home) in said
    assert said.endswith("; or judge without Spark what is small: --here")
    assert not (place / "runs").exists()
