"""`ordercast run --faults`: from the plan to the verdicts, and what a bad plan is told."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ordercast.cli import main, parser, run
from ordercast.errors import UsageError
from ordercast.runtime.faults import GRAMMAR
from ordercast.runtime.plan import Plan
from ordercast.trace import Trace

PLAN = "kill:1@300ms+300ms,pause:2@100ms+300ms,partition:0|1,2@800ms+500ms,delay:5ms+-5ms,loss:1%"


@pytest.mark.timeout(200)
def test_a_run_with_faults_ends_with_verdicts(tmp_path: Path) -> None:
    command = ["run", "--dissemination", "majority_acks", "--seed", "5", "--faults", PLAN]
    command += ["--timeout", "90"]
    done = subprocess.run(
        [sys.executable, "-m", "ordercast", *command], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    faults = PLAN.replace("+-", "±")
    summary, _, verdicts = done.stdout.partition("property")
    assert "; came to rest in " in summary
    assert f"\nfaults: {faults}\n" in summary
    for words in ("p2 paused", "p1 killed", "p1 back", "0 | 1, 2 parted", "0 | 1, 2 healed"):
        assert re.search(rf"^  \d\.\d{{3}} s  {re.escape(words)}$", summary, re.MULTILINE)
        assert re.search(rf"^\d\.\d{{3}} s  {re.escape(words)}$", done.stderr, re.MULTILINE)
    assert re.search(r"^  \d+ connections through the proxies, \d+ broken by", summary, re.M)
    assert "crashed" not in summary, "it was killed on purpose, and came back"
    assert "What was promised: ✔ holds" in verdicts

    [directory] = (tmp_path / "runs").iterdir()
    [trace] = Trace.load(directory)
    assert trace.manifest.extra["faults"] == faults
    program, *replay = shlex.split(trace.manifest.extra["command"])
    assert program == "ordercast"
    again = parser().parse_args(replay)
    assert again.faults == faults
    assert again.messages == 230, "they talk for a second longer than the faults last"
    assert (again.delay, again.timeout) == ("0..0", 90)
    sent = [event.process for event in trace.events if event.kind == "send"]
    assert [sent.count(process) for process in range(3)] == [230] * 3
    kinds = [event.kind for event in trace.events if event.process == 1]
    assert kinds.count("crash") == kinds.count("recover") == 1


@pytest.mark.parametrize("interval", ["nan", "1e-320", "0.0001", "0"])
def test_an_interval_that_nothing_can_be_counted_by_is_no_traceback(
    interval: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    planned: list[Plan] = []

    def stop(plan: Plan) -> None:
        planned.append(plan)
        raise UsageError("far enough")

    monkeypatch.setattr(run, "_stage", stop)
    arguments = ["run", "--here", "--interval", interval, "--faults", "kill:0@1s"]
    assert main(arguments) == 2
    said = capsys.readouterr().err
    if interval == "nan":
        assert said == "ordercast run: nan ms between messages: choose 0 to an hour\n"
    else:
        assert said == "ordercast run: far enough\n"
        assert [plan.messages for plan in planned] == [run.MESSAGES]


@pytest.mark.parametrize(
    ("order", "why", "instead"),
    [
        (
            "total",
            "p0 is gone, and total_coordinator relies on it",
            "--order total --reliability uniform goes on while more than half are up",
        ),
        (
            "synchronous",
            "p0 is gone, and synchronous relies on everyone",
            "no synchronous ordering goes on then",
        ),
    ],
)
@pytest.mark.timeout(200)
def test_whoever_everyone_relies_on_is_missed_in_words(
    order: str, why: str, instead: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was promised holds, and most of what was sent has come to nobody."""
    command = ["run", "--here", "--order", order, "--faults", "kill:0@300ms", "--json"]
    assert main([*command, "--trace", str(tmp_path / "trace")]) == 0
    undelivered = f"{why}: what the others still held was never delivered"
    told = capsys.readouterr()
    assert f"\n{undelivered}; {instead}\n" in told.err
    assert json.loads(told.out)["undelivered"] == undelivered
    assert f"<li>{undelivered}</li>" in (tmp_path / "trace" / "report.html").read_text()


@pytest.mark.timeout(200)
@pytest.mark.parametrize(
    ("order", "faults"), [("total", "kill:1@300ms"), ("total_lamport", "kill:0@300ms+200ms")]
)
def test_whoever_nobody_relies_on_or_comes_back_is_not_missed(
    order: str, faults: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["run", "--here", "--order", order, "--faults", faults, "--json"]
    assert main([*command, "--trace", str(tmp_path / "trace")]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["undelivered"] is None
    assert "never delivered" not in told.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--faults", "boom"], "character 1, at 'boom': there is no fault 'boom'; write one of"),
        (["--faults", "kill:1@2s,pause:1"], "character 18, at its end"),
        (["--faults", "kill:7@2s"], "names process 7: in a group of 3"),
        (["--faults", "kill:1@90s"], "given up after 60 s"),
        (["--faults", "kill:1@1s+1s", "--delay", "0..30"], "write delay:15ms±15ms among the"),
        (["--trace", ".", "-o", "manifest.jsonl"], "-o manifest.jsonl would be written into what"),
    ],
)
def test_a_bad_plan_gets_one_sentence_and_starts_nothing(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert sentence in said.err
    assert list(tmp_path.iterdir()) == []


def test_the_help_has_every_form(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    shown = "".join(capsys.readouterr().out.split())
    for form in GRAMMAR:
        assert form in shown


def test_the_commands_of_the_page_are_ones_that_the_parser_takes() -> None:
    page = Path(__file__).parents[2] / "docs" / "faults.md"
    commands = re.findall(r"^ordercast (.+)$", page.read_text(), re.MULTILINE)
    assert len(commands) >= 5
    for command in commands:
        options = parser().parse_args(shlex.split(command))
        assert options.verb == "run"
