"""`ordercast export` as a user meets it."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ordercast.cli import main, parser
from ordercast.oracle import judge
from ordercast.trace import Trace
from ordercast.trace.directory import event_files
from ordercast.trace.exporters import FORMATS

from ..pipeline.builders import Run, run, write

DOCS = Path(__file__).parent.parent.parent / "docs" / "export.md"

# The third hears the answer before the question; the fourth has no part in it.
EARLY = run("r", "s1 d0:1", "d0:1 s1 d1:1", "d1:1 d0:1", "d0:1 d1:1")
WITNESS = [
    "sequenceDiagram",
    *(f"  participant p{process} as p{process}" for process in range(3)),
    "  Note over p0: sends 0:1",
    "  p0-)p1: 0:1",
    "  Note over p0: delivers 0:1",
    "  Note over p1: sends 1:1",
    "  p1-)p2: 1:1",
    "  p0-)p2: 0:1",
    "  Note over p1: delivers 1:1",
]


@pytest.fixture(params=["jsonl", "parquet"])
def early(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return write(tmp_path / "early", [EARLY], request.param)


def export(*arguments: object) -> int:
    return main(["export", *map(str, arguments)])


@pytest.mark.parametrize("format", FORMATS)
def test_every_format(
    format: str, early: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert export(early, "--format", format, "-o", out) == 0
    done = capsys.readouterr()
    told = done.out.splitlines()
    assert told[0] == f"{format}: 9 events: {out}"
    assert told[1:] == ([FORMATS[format].note] if FORMATS[format].note else [])
    assert done.err == f"exporting {early} …\n"
    assert out.stat().st_size > 0
    assert f"{format}`" in DOCS.read_text()


def test_shiviz_says_how_to_read_it(
    early: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export(early, "--format", "shiviz", "-o", tmp_path / "out") == 0
    parser_told = (
        capsys.readouterr().out.splitlines()[1].removeprefix("ShiViz reads it with the parser ")
    )
    python = re.sub(r"\(\?<(\w+)>", r"(?P<\1>", parser_told)
    found = list(re.finditer(python, (tmp_path / "out").read_text()))
    assert len(found) == 9
    assert all(json.loads(match["clock"])[match["host"]] > 0 for match in found)


def test_a_witness(early: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.mmd"
    assert export(early, "--format", "mermaid", "-o", out, "--witness", "causal") == 0
    assert out.read_text().splitlines() == WITNESS


def test_a_witness_that_proves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is unknown is no violation, and whoever sees the picture is told so."""
    lacking = run("r", "s1 d0:1", "d0:1 s1 d1:1", "d1:1")
    holes = Run(replace(lacking.manifest, complete=False), lacking.events)
    trace = write(tmp_path / "holes", [holes], "jsonl")
    wish = ("--format", "mermaid", "--witness", "causal")
    assert export(trace, *wish, "-o", tmp_path / "out") == 0
    assert "note: causal is unknown, not violated; shown is what may break it: 0:1 came before" in (
        capsys.readouterr().out
    )
    assert export(write(tmp_path / "t", [EARLY], "jsonl"), *wish, "-o", tmp_path / "out") == 0
    assert "note: " not in capsys.readouterr().out


def test_a_witness_that_was_found_before(early: Path, tmp_path: Path) -> None:
    [trace] = Trace.load(early)
    [verdict] = judge(trace, ["causal"])
    stored = tmp_path / "verdicts.json"
    assert verdict.witness is not None
    row = {
        **{name: getattr(verdict, name) for name in ("run", "property", "verdict", "checked")},
        "violations": 1,
        "witness": {"process": 2, "messages": ["0:1", "1:1"], "sentence": "…"},
    }
    stored.write_text(json.dumps({"runs": 1, "events": 9, "verdicts": [row]}))
    out = tmp_path / "out.mmd"
    options = ("--witness", "causal", "--verdicts", stored)
    assert export(early, "--format", "mermaid", "-o", out, *options) == 0
    assert out.read_text().splitlines() == WITNESS


@pytest.mark.usefixtures("spark")
def test_a_witness_in_a_run_that_only_spark_can_judge(tmp_path: Path) -> None:
    more = " ".join(f"s{number}" for number in range(2, 600))
    one = run("r", f"s1 d0:1 {more}", "d0:1 s1 d1:1", "d1:1 d0:1", "d0:1 d1:1")
    trace, out = write(tmp_path / "t", [one]), tmp_path / "out.mmd"
    assert export(trace, "--format", "mermaid", "-o", out, "--witness", "causal") == 0
    assert out.read_text().splitlines() == WITNESS


def test_a_witness_with_its_surroundings(early: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    options = ("--witness", "causal", "--events", "5")
    assert export(early, "--format", "jsonl", "-o", out, *options) == 0
    [left] = Trace.load(out)
    assert len(left.events) == 9


def test_options_that_cut(early: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    options = shlex.split("--processes p2,3 --messages 0:1 --around 1:1 --events 1")
    assert export(early, "--format", "jsonl", "-o", out, *options) == 0
    [left] = Trace.load(out)
    assert [(event.process, event.position) for event in left.events] == [(2, 1), (3, 0)]


def test_a_file_needs_a_place(
    early: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for out, words in (
        (tmp_path, "is a directory"),
        (tmp_path / "a" / "b", "there is no directory"),
    ):
        before = sorted(tmp_path.iterdir())
        assert export(early, "--format", "csv", "-o", out) == 2
        assert f"{out}: {words}" in capsys.readouterr().err
        assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "name", ["manifest.jsonl", "events.jsonl", "events/part-0.parquet", "events/deep/er", "link"]
)
def test_a_trace_is_not_written_into(
    name: str, early: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [events] = event_files(early)
    (early / "link").symlink_to(events)
    before = {file: file.read_bytes() for file in early.rglob("*") if file.is_file()}
    out = early / name
    # What it is said to be read from, and by what way, matters as little as what is cut.
    for trace in (early, early / ".." / "early"):
        assert export(trace, "--format", "jsonl", "-o", out, "--processes", "0") == 2
        words = f"-o {out} would be written into what is read, {trace}: choose another place\n"
        assert capsys.readouterr().err == f"ordercast export: {words}"
    assert {file: file.read_bytes() for file in early.rglob("*") if file.is_file()} == before


@pytest.mark.parametrize("format", FORMATS)
def test_what_contradicts_itself_is_not_exported(
    format: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "t", [EARLY]) / "events.jsonl"
    file.write_bytes(file.read_bytes() * 2)
    assert export(file.parent, "--format", format, "-o", tmp_path / "out") == 2
    words = f"{file.parent}: run 'r' has two events of process 0 at position 0"
    assert capsys.readouterr().err.splitlines()[-1] == f"ordercast export: {words}"
    assert not list(tmp_path.glob("out*"))


def test_nor_is_anything_else_that_is_read(
    early: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [events] = event_files(early)
    assert export(events, "--format", "csv", "-o", events) == 2
    verdicts = tmp_path / "verdicts.json"
    known = ("--witness", "fifo", "--verdicts", verdicts)
    assert export(early, "--format", "csv", "-o", verdicts, *known) == 2
    assert capsys.readouterr().err.count("would be written into what is read") == 2
    assert export(early, "--format", "csv", "-o", early / "events.csv") == 0


@pytest.mark.parametrize("format", FORMATS)
def test_a_pipe_is_written_to_and_not_replaced(format: str, early: Path, tmp_path: Path) -> None:
    file, pipe = tmp_path / "file", tmp_path / "pipe"
    os.mkfifo(pipe)
    assert export(early, "--format", format, "-o", file) == 0
    with open(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
        assert export(early, "--format", format, "-o", pipe) == 0
        assert reader.read() == file.read_bytes()
    assert pipe.is_fifo()


@pytest.mark.parametrize("place", ["-", "/dev/stdout", "/dev/fd/1"])
@pytest.mark.parametrize("redirected", [False, True])
def test_on_stdout_there_are_only_the_data(place: str, redirected: bool, tmp_path: Path) -> None:
    trace = write(tmp_path / "early", [EARLY])
    file, out = tmp_path / "file", tmp_path / "out"
    assert export(trace, "--format", "shiviz", "-o", file) == 0
    out.write_text("before\n")
    command = [sys.executable, "-m", "ordercast", "export", str(trace), "--format", "shiviz"]
    with out.open("ab") as added:
        done = subprocess.run(
            [*command, "-o", place],
            stdout=added if redirected else subprocess.PIPE,
            stderr=subprocess.PIPE,
            check=True,
        )
    data = out.read_bytes().removeprefix(b"before\n") if redirected else done.stdout
    assert data == file.read_bytes()
    assert out.read_bytes().startswith(b"before\n")
    told = done.stderr.decode().splitlines()
    assert told[1:] == [f"shiviz: 9 events: {place}", FORMATS["shiviz"].note]


@pytest.mark.parametrize("format", FORMATS)
def test_an_empty_trace(format: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    assert export(empty, "--format", format, "-o", tmp_path / "out") == 2
    assert f"{empty}: there is no event in it" in capsys.readouterr().err


def test_a_link_stays_one(early: Path, tmp_path: Path) -> None:
    link, file = tmp_path / "link.csv", tmp_path / "file.csv"
    link.symlink_to(file)
    for _ in range(2):
        assert export(early, "--format", "csv", "-o", link) == 0
        assert link.is_symlink()
    assert file.read_text().startswith("run,")


def test_rows_of_all_runs_or_of_one(tmp_path: Path) -> None:
    trace = write(tmp_path / "t", [run("a", "s1"), run("b", "s1 s2")])
    out = tmp_path / "out.jsonl"
    for options, runs in (((), ["a", "b"]), (("--run", "b"), ["b"])):
        assert export(trace, "--format", "jsonl", "-o", out, *options) == 0
        assert [one.manifest.run for one in Trace.load(out)] == runs


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--format dot", "there are several runs, 'a' and 'b' among them: choose one with --run"),
        ("--format dot --run c", "there is no event of a run 'c' in it"),
        ("--format csv --run a --processes 9", "there is no process '9' in it"),
        ("--format csv --messages 1", "'1' is not a message: say its origin and its number"),
        ("--format csv --messages 0:9", "nothing is left after the cut"),
        ("--format csv --around 0:9", "there is no message 0:9 in the trace"),
        ("--format csv --from 1ms", "the events have no times: cut with --around instead"),
        ("--format csv --events 3", "--events is about surroundings: give it with --around"),
        ("--format csv --around 0:1 --events -1", "--events cannot be less than 0"),
        ("--format csv --around 0:1 --witness fifo", "both choose the place: give one of them"),
        ("--format csv --verdicts x", "--verdicts says where a witness is"),
        ("--format csv --run a --witness speed", "there is no property 'speed'"),
        ("--format csv --run a --witness fifo", "no witness says that fifo is violated in run 'a'"),
        ("--format csv --run a --witness fifo --verdicts {bad}", "not the output of 'ordercast"),
        (
            "--format csv --run a --witness fifo --verdicts no",
            "no: there is no such file",
        ),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = write(tmp_path / "t", [run("a", "s1", "d0:1"), run("b", "s1", "d0:1")])
    (tmp_path / "bad").write_text("[]")
    words = arguments.format(bad=tmp_path / "bad").split()
    assert export(trace, *words, "-o", tmp_path / "out") == 2
    done = capsys.readouterr()
    assert done.out == ""
    assert sentence in done.err.splitlines()[-1]
    assert not list(tmp_path.glob("out*"))


@pytest.mark.parametrize(
    "options", ["--format png", "--format csv --from soon", f"--format csv --from {'9' * 400}s"]
)
def test_what_the_parser_refuses(options: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        export("t", *options.split(), "-o", "out")
    assert exit.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_commands_of_the_page_are_ones_that_the_parser_takes() -> None:
    commands = re.findall(r"^    ordercast (.+)$", DOCS.read_text(), re.MULTILINE)
    assert len(commands) >= 5
    for command in commands:
        parser().parse_args(shlex.split(command))


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_full_disk_is_named(
    format: str,
    early: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "Error writing bytes to file. Detail: [errno 28] No space")

    assert export(early, "--format", format, "-o", "/dev/full") == 2
    assert "export: /dev/full: no space left on device\n" in capsys.readouterr().err
    out = tmp_path / "out"
    out.write_text("before")
    monkeypatch.setitem(FORMATS, format, replace(FORMATS[format], write=full))
    assert export(early, "--format", format, "-o", out) == 2
    assert f"export: {out}: no space left on device\n" in capsys.readouterr().err
    assert out.read_text() == "before"
