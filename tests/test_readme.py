"""The README's commands run, and its sample gives the verdict that it says."""

from __future__ import annotations

import asyncio
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import ordercast
from ordercast import pipeline
from ordercast.cli import VERBS, main, parser
from ordercast.trace.spans import log_files
from tests.runtime.test_join import addresses

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text()
COMMANDS = re.findall(r"^    ordercast (.+)$", TEXT, re.MULTILINE)
PROGRAMS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def test_every_command_is_one_that_the_parser_takes() -> None:
    assert len(COMMANDS) >= 5
    for command in COMMANDS:
        parser().parse_args(shlex.split(command))


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.startswith("simulate")])
def test_the_simulations_run(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(command)) == 0


def test_the_story_can_be_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    *_, story = PROGRAMS
    monkeypatch.chdir(tmp_path)

    async def program(me: str) -> None:
        peers = {name: f"127.0.0.1:{port}" for port, name in enumerate("abc", 7001)}
        async with ordercast.join("g", me=me, peers=peers, trace="trace") as group:
            await group.send(me.encode())
            async for _ in group:
                pass

    exec(story, {"asyncio": asyncio, "program": program})
    assert len(list((tmp_path / "trace").iterdir())) == 3


@pytest.mark.timeout(60)
def test_the_program_runs_as_it_stands(tmp_path: Path) -> None:
    """As three processes, twice: the second time they come back from their journals. And what
    they did is judged."""
    program, _, check, _ = PROGRAMS
    for name, address in addresses("a", "b", "c").items():
        program = re.sub(rf'"{name}": "[^"]+"', f'"{name}": "{address}"', program)
    (tmp_path / "orders.py").write_text(program)
    for life in (1, 2):
        members = {
            me: subprocess.Popen(
                [sys.executable, "orders.py", me], cwd=tmp_path, stdout=subprocess.PIPE, text=True
            )
            for me in "abc"
        }
        for me, member in members.items():
            said, _ = member.communicate(timeout=40)
            assert member.returncode == 0
            assert sorted(said.splitlines()) == [
                f"{me} got {sender}:{life} created by {sender}" for sender in "abc"
            ]
    assert len(log_files(tmp_path / "trace")) == 3
    check = f"from pathlib import Path; from ordercast import pipeline\n{check}"
    subprocess.run([sys.executable, "-c", check], cwd=tmp_path, check=True)


def test_the_sample_log_gives_the_verdict_that_is_told(spark: SparkSession, tmp_path: Path) -> None:
    [sample] = re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)
    assert (ROOT / "docs" / "img" / "witness.jsonl").read_text() == sample, "the picture is of it"
    file = tmp_path / "events.jsonl"
    file.write_text(sample)
    judgement = pipeline.judge(file, spark=spark, order="causal")
    [causal] = [verdict for verdict in judgement.verdicts if verdict.property == "causal"]
    assert causal.witness is not None
    assert judgement.exit_code == 1
    told = " ".join(TEXT.split())
    assert f"*{causal.witness.sentence}*" in told


def test_the_verbs_of_the_table_are_the_verbs_that_exist() -> None:
    table = TEXT.partition("| verb | does |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    assert sorted(rows) == sorted(VERBS)
