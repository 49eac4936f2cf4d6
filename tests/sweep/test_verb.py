"""The verb as a user meets it: what it prints, where, and how it ends."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from ordercast import pipeline
from ordercast.cli import main
from ordercast.pipeline import jobs
from ordercast.report.sweeps import read_sweep
from ordercast.trace.verdicts import PROPERTIES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WEAK = [
    *("--ordering", "unordered", "--dissemination", "majority", "--threshold", "1"),
    *("--processes", "4", "--messages", "2", "--faults", "crash:0#1, loss:50%"),
]


def sweep(*arguments: str) -> int:
    return main(["sweep", *arguments])


def test_a_sweep_on_spark_from_flags_to_files(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        *("--ordering", "fifo,total_skeen", "--dissemination", "direct,relay"),
        *("--processes", "3,4", "--messages", "3", "--faults", "", "--faults", "loss:5%"),
        *("--seeds", "5..9", "--output", str(tmp_path), "--traces"),
    ]
    assert sweep(*arguments, "--json") == 0
    told = capsys.readouterr()
    answer = json.loads(told.out)
    assert (answer["runs"], answer["outcome"]) == (12 * 5, "holds")
    assert [one["count"] for one in answer["left_out"]] == [4]
    assert re.search(r"left out: total_skeen talks .* \(and 3 more like it\)", told.err)
    assert "sweeping 12 configurations × 5 seeds …" in told.err
    assert "60 of 60 runs …" in told.err
    table = pq.read_table(tmp_path / "sweep" / "configurations.parquet")
    assert table.to_pylist() == answer["configurations"]
    for row in answer["configurations"]:
        assert sum(row["verdicts"]["fifo"].values()) == row["runs"] == row["quiesced"] == 5
        assert list(row["verdicts"]) == list(PROPERTIES)
        assert 1_000 <= row["latency_us"]["p50"] <= row["latency_us"]["max"]

    judgement = pipeline.judge(tmp_path / "traces", spark=spark)
    assert (judgement.runs, judgement.outcome) == (60, "holds")

    assert sweep(*arguments) == 0
    again = capsys.readouterr()
    assert "60 of 60 runs done already" in again.err
    assert "What was promised: ✔ holds." in again.out


def test_a_failing_seed_prints_its_replay(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sweep(*WEAK, "--seeds", "10") == 1
    lines = capsys.readouterr().out.splitlines()
    [place] = [i for i, line in enumerate(lines) if " violated with seed " in line]
    assert re.fullmatch(r"\w+ violated with seed \d: p\d .* 0:1.*", lines[place])
    assert re.fullmatch(
        r"  ordercast simulate --ordering unordered .* --seed \d .* --threshold 1", lines[place + 1]
    )
    assert lines[-1] == "What was promised: ✘ violated."


@pytest.mark.usefixtures("spark")
def test_in_few_columns_no_verdict_and_no_number_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        *("--ordering", "causal_coordinator,total_skeen", "--processes", "12", "--messages", "3"),
        *("--faults", "", "--faults", "loss:10%, delay:1ms..90ms", "--seeds", "2"),
        *("--output", str(tmp_path)),
    ]
    assert sweep(*arguments, "--json") == 0
    configurations = json.loads(capsys.readouterr().out)["configurations"]
    for columns in (60, 80, 100, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert sweep(*arguments) == 0
        *lines, _ = capsys.readouterr().out.splitlines()  # the last is the name of a file
        assert max(map(len, lines)) <= columns
        assert not [line for line in lines if "…" in line]
        assert any(line.startswith("No room for ") for line in lines)
        calm, _, stormy = "\n".join(lines).partition("under ")
        for one in configurations:
            row = re.compile(rf"^ {one['ordering']} +direct +12  ✔ holds .*$", re.MULTILINE)
            [line] = row.findall(stormy if one["faults"] else calm)
            if columns >= 80:
                assert f"{one['latency_us']['p99'] / 1000:.1f} " in line


@pytest.mark.usefixtures("spark")
def test_an_empty_pass_is_seen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = ["--faults", "loss:10%, crash:1@15ms", "--seeds", "6", "--output", str(tmp_path)]
    assert sweep("--ordering", "total_skeen", "--processes", "4", "--messages", "6", *plan) == 0
    lines = capsys.readouterr().out.splitlines()
    [row] = [line for line in lines if "total_skeen" in line]
    assert re.search(r" 4 +✔ holds, all empty +- ", row)
    empty = "Empty: in 6 of 6 runs nothing was delivered, so there was nothing to check."
    assert empty in lines
    [configuration] = read_sweep(tmp_path)
    assert configuration.standing == "empty"


def test_help_ends_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"^0$"):
        sweep("--help")
    assert "ordercast sweep" in capsys.readouterr().out.partition("example:")[2]


def test_the_page_shows_what_is_printed(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = Path(__file__).parent.parent.parent / "docs" / "sweep.md"
    shown = re.findall(
        r"^    \$ ordercast (.+)\n((?:    .*\n|\n)+)", page.read_text(), re.MULTILINE
    )
    assert len(shown) == 2
    monkeypatch.chdir(tmp_path)
    for command, output in shown:
        main(shlex.split(command))
        printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
        assert printed == dedent(output).rstrip().splitlines()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--ordering", "best"], "there is no order 'best': choose one of causal, "),
        (["--dissemination", "relay,"], "--dissemination: there is no '': choose from direct, "),
        (["--to", "nobody"], "--to: there is no 'nobody': choose from everyone, one, some, all"),
        (["--processes", "three"], "--processes 'three' is not a list of numbers"),
        (["--processes", "3,0"], "a group of 0 has no members: use at least one process"),
        (["--processes", "9" * 5000], "is too large to simulate: up to 10,000 fit"),
        (["--messages", "-1"], "--messages and --payload count from 0 upwards"),
        (["--faults", "rain"], "the fault 'rain' has none of the forms"),
        (["--seeds", "some"], "--seeds 'some' is neither a number nor of the form A..B"),
        (["--seeds", "5..4"], "--seeds '5..4' is no seed at all"),
        (["--seeds", "0"], "--seeds '0' is no seed at all"),
        (["--seeds", "9" * 20], f"--seeds '{'9' * 20}' is too many: choose up to 1,000,000"),
        (["--seeds", "5..1000005"], "--seeds '5..1000005' is too many: choose up to 1,000,000"),
        (["--seeds", f"{'9' * 5000}..1"], "none of more than 18 digits"),
        (["--to", "some"], "there is nothing to sweep: causal_vector sends to everyone only"),
        (["--threshold", "2"], "there is nothing to sweep: best_effort waits for no majority"),
        (["--traces"], "--traces needs a place to write them: give --output DIR"),
        (["--conf", "loud"], "--conf 'loud' is not of the form KEY=VALUE"),
        (["--output", "file"], "file"),
    ],
)
def test_bad_input_gets_one_sentence_before_spark_starts(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    monkeypatch.delattr(jobs, "session")
    assert sweep(*arguments) == 2
    told = capsys.readouterr()
    assert told.out == ""
    [line] = told.err.splitlines()
    assert line.startswith("ordercast sweep: ")
    assert sentence in line
