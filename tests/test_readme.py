"""The README's commands run, and its sample gives the verdict that it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ordercast import pipeline
from ordercast.cli import VERBS, main, parser

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text()
COMMANDS = re.findall(r"^    ordercast (.+)$", TEXT, re.MULTILINE)


def test_every_command_is_one_that_the_parser_takes() -> None:
    assert len(COMMANDS) >= 5
    for command in COMMANDS:
        parser().parse_args(shlex.split(command))


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.startswith("simulate")])
def test_the_simulations_run(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(command)) == 0


def test_the_sample_log_gives_the_verdict_that_is_told(spark: SparkSession, tmp_path: Path) -> None:
    [sample] = re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)
    file = tmp_path / "events.jsonl"
    file.write_text(sample)
    judgement = pipeline.judge(file, spark=spark, order="causal")
    [causal] = [verdict for verdict in judgement.verdicts if verdict.property == "causal"]
    assert causal.witness is not None
    assert judgement.exit_code == 1
    told = " ".join(TEXT.split())
    assert f"*{causal.witness.sentence}*" in told


def test_the_verbs_that_work_are_the_verbs_that_exist() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .* \| works", TEXT, re.MULTILINE)
    assert sorted(rows) == sorted(verb.__name__.rpartition(".")[2].rstrip("_") for verb in VERBS)
