"""`ordercast import`, and `verify --format`, as a user meets them."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from ordercast.cli import main, parser
from ordercast.trace import Event, Trace, becoming
from ordercast.trace.importers import FORMATS, sink, store

DOCS = Path(__file__).parent.parent.parent / "docs" / "import.md"
LOGS = {"1.output": "b 1\nd 1 1\nd 2 1\n", "2.output": "d 1 1\nb 1\nd 2 1\n"}


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    directory = tmp_path / "output"
    directory.mkdir()
    for name, text in LOGS.items():
        (directory / name).write_text(text)
    return directory


def test_import_says_what_it_did(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "trace"
    assert main(["import", str(logs), "-o", str(out), "--run", "r", "--quiesced"]) == 0
    done = capsys.readouterr()
    assert done.out == (
        f"broadcast: 6 events: r (2 processes)\ntrace: {out} (judge it: ordercast verify {out})\n"
    )
    assert done.err == "importing 2 files …\n"
    assert [path.name for path in sorted(out.iterdir())] == ["events", "manifest.jsonl"]
    [trace] = Trace.load(out)
    assert trace.manifest.quiesced


def test_json_and_json_lines(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "trace"
    (logs / "2.output").write_text("d 9 1\nnonsense\n")
    options = ["--format", "broadcast", "--jsonl", "--json", "--skip-bad-rows"]
    assert main(["import", str(logs), "-o", str(out), *options]) == 0
    done = capsys.readouterr()
    said = json.loads(done.out)
    assert (said["events"], said["skipped"], said["complete"]) == (4, 1, False)
    assert said["runs"] == {"output": ["1", "2", "9"]}
    assert "Left out as unusable: 1 row, so" in done.err
    assert "2.output, line 2: expected 'b SEQ'" in done.err
    assert (out / "events.jsonl").read_text().count("\n") == 4


def test_help_has_an_example_and_names_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["import", "--help"])
    said = capsys.readouterr().out
    assert "ordercast import" in said.partition("example")[2]
    assert all(name in said for name in FORMATS)


def test_without_pyarrow_it_is_json_lines(logs: Path, tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "for name in ('pyspark', 'pyarrow', 'pandas', 'numpy'): sys.modules[name] = None\n"
        "from ordercast.cli import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    arguments = ["import", str(logs), "-o", str(tmp_path / "t")]
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "t" / "events.jsonl").is_file()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere"], "nowhere: there is no such file or directory"),
        (["output", "--map", "process"], "'process' is not of the form NAME=VALUE,…"),
        (["output", "--format", "jpeg"], "invalid choice: 'jpeg'"),
        (["output", "--order", "best"], "there is no order 'best'"),
        (
            ["output", "--format", "broadcast", "--parser", "x"],
            "--parser is about other formats than broadcast",
        ),
        (["output", "--format", "dslab"], "1.output, line 1: expected an entry such as"),
        (["output/1.output", "empty"], "empty: there is no file in it"),
        (["output", "--master", "spark://h:7077"], "put both where all of them see them"),
        (
            ["table.csv", "--format", "table", "--map", "process=who", "--master", "local"],
            "table.csv: there is no column 'who' for process",
        ),
    ],
)
def test_what_cannot_be_gets_one_sentence(
    arguments: list[str],
    sentence: str,
    logs: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(logs.parent)
    (logs.parent / "empty").mkdir()
    (logs.parent / "table.csv").write_text("host,kind,message\na,send,m\n")
    try:
        code = main(["import", *arguments, "-o", "trace"])
    except SystemExit as ended:
        code = int(ended.code or 0)
    done = capsys.readouterr()
    assert (code, done.out) == (2, "")
    [said] = [line for line in done.err.splitlines() if not line.endswith("…")]
    assert sentence in said
    assert sorted(path.name for path in logs.parent.iterdir()) == ["empty", "output", "table.csv"]


def test_a_pipe_is_called_a_pipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    for source, what in ((tmp_path / "pipe", "a pipe"), (Path(os.devnull), "neither a file nor a")):
        assert main(["import", str(source), "-o", str(tmp_path / "trace")]) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert f"{source}: it is {what}" in said
        assert "save the log to a file first" in said


@pytest.fixture
def dependencies(logs: Path, tmp_path: Path) -> str:
    """What 3 delivers first depends on what it delivers then."""
    (logs / "3.output").write_text("d 2 1\nd 1 1\n")
    config = tmp_path / "config"
    config.write_text("1\n1\n2 1\n3\n")
    return str(config)


def test_localized_order_decides_the_exit_code(
    logs: Path, dependencies: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["import", str(logs), "-o", str(tmp_path / "t"), "--dependencies", dependencies]
    assert main(command) == 1
    assert "localized_causal violated (6 checked): 1:1 depends on 0:1, but 3 delivered 1:1" in (
        capsys.readouterr().err
    )


def test_localized_order_is_among_the_verdicts(
    logs: Path, dependencies: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--format", "broadcast", "--dependencies", dependencies, "--quiesced", "--here"]
    assert main(["verify", str(logs), *options]) == 1
    *_, promised, too = capsys.readouterr().out.splitlines()
    assert promised.endswith("What was promised: ✔ holds.")
    assert too == "Asked for as well, localized_causal: ✘ violated."
    assert main(["verify", str(logs), *options, "--json"]) == 1
    last = json.loads(capsys.readouterr().out)["verdicts"][-1]
    assert (last["property"], last["verdict"], last["checked"]) == (
        "localized_causal",
        "violated",
        6,
    )
    assert last["witness"]["messages"] == ["0:1", "1:1"]


def test_rows_that_the_import_left_out_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.csv"
    log.write_text("process,kind,message\na,send,q\nb,what,q\nb,deliver,q\n")
    command = ["verify", str(log), "--format", "table", "--here", "--json", "--skip-bad-rows"]
    main(command)
    assert json.loads(capsys.readouterr().out)["skipped"] == 1


@pytest.mark.usefixtures("spark")
def test_verify_takes_other_formats(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["verify", str(logs), "--format", "broadcast", "--quiesced", "--run", "r", "--json"]
    assert main(command) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["events"], said["order_held"]) == (6, "synchronous")
    (logs / "1.output").write_text("b 1\nd 2 1\nd 1 1\n")
    assert main(command) == 1
    config = logs.parent / "config"
    config.write_text("1\n1\n2\n")
    localized = ["--dependencies", str(config)]
    assert main([*command, *localized]) == 0


@pytest.mark.usefixtures("spark")
def test_verify_imports_where_it_judges(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (logs / "1.output").write_text("b 1\nd 2 1\nd 1 1\n")
    command = ["verify", str(logs), "--format", "broadcast", "--quiesced", "--run", "r", "--json"]
    assert main(command) == 1
    here = capsys.readouterr()
    assert "importing 2 files …" in here.err
    assert main([*command, "--master", "local[2]"]) == 1
    there = capsys.readouterr()
    assert "importing 2 files on Spark …" in there.err
    assert there.out == here.out


@pytest.mark.usefixtures("spark")
def test_what_one_machine_must_read_is_read_here(
    logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = logs.parent / "config"
    config.write_text("1\n1\n2\n")
    command = ["verify", str(logs), "--format", "broadcast", "--dependencies", str(config)]
    assert main([*command, "--quiesced", "--master", "local[2]"]) == 0
    reason = "the log is imported on this machine: localized causal order is judged on one machine"
    assert f"note: {reason}" in capsys.readouterr().err


def test_verify_refuses_options_without_a_format(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "x.jsonl", "--send", "sends"]) == 2
    words = "--send is about logs of other systems: give it with --format"
    assert words in capsys.readouterr().err


def test_a_broken_promise_leads_back_to_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, page = tmp_path / "log.csv", tmp_path / "page.html"
    rows = ["a,send,red", "a,send,green", "b,deliver,green", "b,deliver,red\x1b<b>"]
    rows[0] += "\x1b<b>"
    source.write_text("\n".join(["process,kind,message", *rows]))
    assert main(["verify", str(source), "--format", "table", "--here"]) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "log: 4 events"  # and not filled up with blanks
    assert told[-3:] == ["In the log:", "  0:1  red\\x1b<b>", "  0:2  green"]
    assert main(["import", str(source), "-o", str(tmp_path / "trace")]) == 0
    assert main(["report", str(tmp_path / "trace"), "-o", str(page), "--here"]) == 0
    text = page.read_text()
    assert "0:1 is <code>red\\x1b&lt;b&gt;</code>, " in text
    assert "in the log green" in text  # when one points at it
    assert "log.csv (table)" in text
    assert "0:2 green" not in text


def test_rows_of_others_are_told_how_to_be_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "app.jsonl"
    source.write_text('\n{"ts":1.5,"host":"a","event":{"type":"send","id":"x"}}\n')
    how = "columns with --map process=…,kind=…,message=…"
    assert main(["verify", str(source), "--here"]) == 2
    told = capsys.readouterr().err
    assert "its rows have ts, host, event, and not a trace's run, process, position" in told
    assert how in told
    assert main(["verify", str(source), "--here", "--format", "auto"]) == 2
    assert f"name its {how}" in capsys.readouterr().err


def test_verify_takes_a_map_for_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "app.log"
    source.write_text(
        '{"host":"a","kind":"send","id":"x"}\n{"host":"b","kind":"deliver","id":"x"}\n'
    )
    assert main(["verify", str(source), "--map", "process=host,message=id", "--here"]) == 0
    assert "app: 2 events" in capsys.readouterr().out


def test_the_page_shows_every_format_with_a_command_that_parses() -> None:
    text = DOCS.read_text()
    _, *parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    for name in FORMATS:
        section = next(body for title, body in sections.items() if title.startswith(f"`{name}`"))
        samples = re.findall(r"^```\w*\n(.*?)```", section, flags=re.MULTILINE | re.DOTALL)
        commands = re.findall(r"^    (ordercast .+)$", section, flags=re.MULTILINE)
        assert samples
        assert 3 <= samples[0].count("\n") <= 6, f"{name}: about three lines of sample"
        assert commands, f"{name}: a command"
    for command in re.findall(r"^    ordercast (.+)$", text, flags=re.MULTILINE):
        parser().parse_args(shlex.split(command))


TABLE = "process,position,kind,message\n" + "".join(
    f"{p},{2 * n + k},{kind},{p}-{n}\n"
    for p in "ab"
    for n in range(2000)
    for k, kind in enumerate(("send", "deliver"))
)


@pytest.mark.parametrize("verb", ["import", "verify"])
def test_a_full_disk_is_named(
    verb: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A store of few pages is as good as a disk of few."""
    monkeypatch.setattr(store, "SCHEMA", f"PRAGMA max_page_count = 12;{store.SCHEMA}")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    (tmp_path / "log.csv").write_text(TABLE)
    aims = {"import": ["-o", str(tmp_path / "out" / "trace")], "verify": ["--here"]}
    assert main([verb, str(tmp_path / "log.csv"), "--format", "table", *aims[verb]]) == 2
    place, way_out = {
        "import": (tmp_path / "out", "write the trace to another disk"),
        "verify": (tmp_path / "tmp", "set TMPDIR to a directory with more of it"),
    }[verb]
    [_, told] = capsys.readouterr().err.splitlines()
    assert told == (
        f"ordercast {verb}: {place}: no room is left where the log is put in order: make room "
        f"there, or {way_out}"
    )
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == ["log.csv"]


def test_of_two_imports_at_once_the_second_hears_of_the_first(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "trace"
    write = sink.TraceSink.write

    def overtaken(self: sink.TraceSink, events: Iterable[Event]) -> int:
        out.mkdir()
        (out / "manifest.jsonl").touch()
        return write(self, events)

    monkeypatch.setattr(sink.TraceSink, "write", overtaken)
    assert main(["import", str(logs), "-o", str(out)]) == 2
    assert f"import: {out}: there is something here already" in capsys.readouterr().err
    assert sorted(file.name for file in tmp_path.iterdir()) == ["output", "trace"]


def test_what_a_killed_import_has_left_is_removed_by_the_next(logs: Path, tmp_path: Path) -> None:
    """Not what belongs to somebody who goes on, or to another trace."""
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        pass
    left = tmp_path / f".trace.{gone.pid}"
    kept = {f".trace.{os.getppid()}", f".other.{gone.pid}", ".trace.old", f".trace.{'9' * 30}"}
    for name in {left.name, *kept}:
        (tmp_path / name).mkdir()
        (tmp_path / name / "records.sqlite").touch()
    assert main(["import", str(logs), "-o", str(tmp_path / "trace")]) == 0
    assert {file.name for file in tmp_path.iterdir()} == {"output", "trace", *kept}


def test_what_is_locked_goes_on_elsewhere(logs: Path, tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        pass
    far = tmp_path / f".trace.{gone.pid}"
    far.mkdir()
    lock = becoming._locked(far)
    assert lock is not None
    assert main(["import", str(logs), "-o", str(tmp_path / "trace")]) == 0
    assert far.exists()
    os.close(lock)
