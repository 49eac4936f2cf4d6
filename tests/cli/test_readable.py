"""What strangers wrote is escaped before a person sees it: on a terminal, it could do anything."""

from __future__ import annotations

import json
import re
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ordercast.cli import main
from ordercast.cli.steps import Steps, steps
from ordercast.cli.watch_board import Board
from ordercast.readable import readable
from ordercast.trace.event import Event
from ordercast.trace.jsonl import encode_event
from ordercast.trace.manifest import Manifest
from ordercast.trace.news import Flaw, Said
from ordercast.trace.verdicts import Verdict, Witness

NASTY = "\x1b[2J\x9b31m\u202eX\u2066\u2028\n"
SEEN = r"\x1b[2J\x9b31m\u202eX\u2066\u2028\n"
COMMANDS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Each process owes a delivery, and each name wants to be a command."""
    lines = []
    for run in (NASTY, f"{NASTY}2"):
        lines.append(Manifest(run, (NASTY, "b"), quiesced=True).to_json())
        events = Event(run, 0, 0, "send", 0, 1), Event(run, 0, 1, "deliver", 0, 1)
        (tmp_path / "trace").mkdir(exist_ok=True)
        with (tmp_path / "trace" / "events.jsonl").open("ab") as file:
            file.writelines(map(encode_event, events))
    (tmp_path / "trace" / "manifest.jsonl").write_bytes(b"\n".join(lines))
    return tmp_path / "trace"


def one_run(trace: Path) -> Path:
    for name, lines in (("manifest.jsonl", 1), ("events.jsonl", 2)):
        file = trace / name
        file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:lines]))
    return trace


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    main([str(one) for one in arguments])
    done = capsys.readouterr()
    assert not COMMANDS.findall(done.out + done.err)
    return done.out + done.err


def test_what_is_escaped_and_what_is_not() -> None:
    assert readable(NASTY + "\ud800") == SEEN + r"\ud800"
    for text in ("é 漢字 привет שלום مرحبا", "👩‍👩‍👧 🏴󠁧󠁢󠁳󠁣󠁴󠁿 ❤️", "a\tb\xa0c", r"C:\new"):
        assert readable(text) == text


@pytest.mark.parametrize("columns", ["60", "200"])
def test_verdicts(
    trace: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    columns: str,
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert f"{SEEN}2: agreement" in said(capsys, "verify", trace, "--here").replace("\n", "")
    words = said(capsys, "verify", one_run(trace), "--here")
    assert words.count(SEEN[:12]) >= 2, "the run's name, and the sentence"


def test_explanations_and_errors(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"{NASTY!r} and " in said(capsys, "explain", trace, "0:1", "--at", "0")
    one_run(trace)
    assert f"{SEEN} delivered {SEEN}:1" in said(capsys, "explain", trace, "0:1", "--at", "0")
    told = said(capsys, "explain", trace, "0:1", "--at", "5")
    assert told.endswith(f"choose from {SEEN}, b\n")


def test_imported_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"process": "a", "kind": "send", "message": NASTY, "to": ["b", f"{NASTY}c"], "run": NASTY},
        {"process": "b", "kind": "deliver", "message": NASTY, "run": NASTY},
        {"process": "b", "kind": NASTY, "message": NASTY, "run": NASTY},
    ]
    log, out = tmp_path / "log.jsonl", tmp_path / "out"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    names = "process=process,kind=kind,message=message,destinations=to,run=run"
    words = said(
        capsys, "import", log, "-o", out, "--format", "table", "--map", names, "--skip-bad-rows"
    )
    assert f"there is no log of {SEEN}c" in words
    assert f"{SEEN} (3 processes)" in words
    assert f"a:1  {SEEN}" in said(capsys, "explain", out, "a:1", "--at", "b")


def test_a_watch(capsys: pytest.CaptureFixture[str]) -> None:
    witness = Witness(0, ("0:1",), f"{NASTY} did it")
    board = Board(Steps(None))
    now = datetime.now(UTC)
    violated = Said(now, Verdict(NASTY, "fifo", "violated", 1, 1, witness), "")
    board.hear([violated, Flaw(NASTY, now, NASTY)])
    done = capsys.readouterr()
    assert f"{SEEN}: fifo ✘ violated: {SEEN} did it" in done.out
    assert done.err == f"{SEEN}: {SEEN}\n"


def test_progress_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name is no markup, either."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    with steps() as progress:
        progress.begin(f"[/] [red]{NASTY}")
        progress.note(f"noted: {NASTY}")
    said = capsys.readouterr().err
    assert f"[/] [red]{SEEN}" in said
    assert f"noted: {SEEN}" in said
    assert "\x1b[2J" not in said


def test_a_page(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    said(capsys, "report", one_run(trace), "--here", "-o", page)
    assert not set(COMMANDS.findall(page.read_text())) - {"\t", "\u2028"}


def test_what_programs_read_stays_as_it_is(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["verify", str(one_run(trace)), "--here", "--json"])
    assert json.loads(capsys.readouterr().out)["verdicts"][0]["run"] == NASTY
