"""What the pages tell a reader to paste works, from an empty directory, page by page."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from ordercast.cli import main

DOCS = Path(__file__).parents[2] / "docs"
PIECE = re.compile(
    r"^(?:[^\n]*?`(?P<file>[\w.-]+)`[^\n`]*\n\n?)?```(?P<kind>\w*)\n(?P<text>.*?)^```"
    r"|^    ordercast (?P<command>[^\n]+)$",
    re.MULTILINE | re.DOTALL,
)
SPARK = ("verify", "report", "sweep", "sort", "stream")


def paste(page: str) -> list[tuple[str, int]]:
    """Save each file that a page shows with its name, and run its commands, but for those on Spark
    or on a cluster. Returns the commands, and how they ended."""
    done = []
    for piece in PIECE.finditer((DOCS / page).read_text()):
        if (command := piece["command"]) is not None:
            words = shlex.split(command)
            if words[0] not in SPARK and "--master" not in words:
                done.append((command, main(words)))
        elif piece["kind"] == "sh":
            lines = piece["text"].replace("\\\n", " ")
            if lines.startswith("ordercast "):
                done.append((lines, main(shlex.split(lines)[1:])))
            else:
                subprocess.run(lines, shell=True, check=True)
        elif piece["file"] is not None:
            Path(piece["file"]).write_text(piece["text"])
    return done


def test_the_program_about_the_simulator_prints_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "simulator.md").read_text()
    [(program, shown)] = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", text, re.DOTALL)
    exec(program, {})
    assert capsys.readouterr().out.startswith(shown)
    assert (tmp_path / "simulated" / "manifest.jsonl").is_file()


@pytest.mark.parametrize(
    ("page", "commands"),
    [("export.md", 11), ("explain.md", 2), ("simulator.md", 3), ("import.md", 10)],
)
def test_a_page_can_be_pasted(
    page: str, commands: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = paste(page)
    assert [command for command, code in done if code != 0] == []
    assert len(done) >= commands


def test_the_page_about_testing_tells_the_truth(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (DOCS / "testing.md").read_text()
    seats, members = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    [shown] = re.findall(r"It prints\n\n```\n(.*?)```", text, re.DOTALL)
    exec(seats, {})
    # How often it goes wrong may differ with the version of Python; that it does, may not.
    often = re.compile(r"(?<=causal: sold twice with )[1-9]\d*")
    assert often.sub("some", capsys.readouterr().out) == often.sub("some", shown)
    (tmp_path / "test_members.py").write_text(members.replace("range(20)", "range(3)"))
    outcome = pytest.main(["-p", "no:cacheprovider", "-c", "/dev/null", str(tmp_path)])
    assert (outcome, "3 passed" in capsys.readouterr().out) == (0, True)
