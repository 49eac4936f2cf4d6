"""What a person, a narrow terminal or a pipe gets to see. Takes the session of the tests."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ordercast.cli import main
from ordercast.cli.words import counted
from ordercast.protocols.catalog import DISSEMINATIONS, ORDERINGS

from ..pipeline.builders import Run, run, write

HOLDS = run("r", "s1 d0:1", "d0:1")
BROKEN = run("r", "s1 s2 d0:1 d0:2", "d0:2 d0:1")


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("options", [[], ["--json"]])
@pytest.mark.parametrize(("one", "code"), [(HOLDS, 0), (BROKEN, 1)])
def test_a_reader_that_goes_away_does_not_change_the_verdict(
    tmp_path: Path, one: Run, code: int, options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = write(tmp_path / "t", [one])
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", buffering=1) as nobody:
        monkeypatch.setattr(sys, "stdout", nobody)
        assert main(["verify", str(trace), "--order", "fifo", *options]) == code


def test_a_reader_of_a_table_may_go_away() -> None:
    command = [sys.executable, "-m", "ordercast", "algorithms"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as shown:
        assert shown.stdout is not None
        assert shown.stderr is not None
        shown.stdout.close()
        assert shown.stderr.read() == b""
    assert shown.returncode == 0


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_where_nobody_listens_there_is_nothing_to_complain_of(closed: str, tmp_path: Path) -> None:
    trace = write(tmp_path / "t", [HOLDS])
    for words in ("algorithms", f"export {trace} --format csv -o {tmp_path / 'out.csv'}"):
        command = f"{sys.executable} -m ordercast {words} {closed}"
        done = subprocess.run(["sh", "-c", command], capture_output=True, check=False)
        assert done.returncode == 0
        assert b"Traceback" not in done.stderr
    assert (tmp_path / "out.csv").read_text().startswith("run,")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("verify t --here --order fifo", 1),
        ("verify t --here --order fifo --json", 1),
        ("run --here --messages 2", 0),
        ("node group.toml --me a --json", 0),
        ("simulate --story", 0),
    ],
)
def test_without_a_stdout_the_exit_code_is_the_answer(
    words: str, code: int, tmp_path: Path
) -> None:
    write(tmp_path / "t", [BROKEN])
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    file = f'[group]\nname = "orders"\n[members]\na = "127.0.0.1:{port}"\n'
    (tmp_path / "group.toml").write_text(file)
    command = f"{sys.executable} -m ordercast {words} >&-"
    done = subprocess.run(
        ["sh", "-c", command], capture_output=True, input=b"one\ntwo\n", cwd=tmp_path
    )
    assert done.returncode == code, done.stderr
    assert b"Traceback" not in done.stderr


def test_a_stdout_that_cannot_be_written_is_named() -> None:
    command = f"{sys.executable} -m ordercast algorithms 1< /dev/null"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == (
        "ordercast algorithms: bad file descriptor, while stdout or a file was written\n"
    )


def test_total_order_is_told_beside_the_ladder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for order in ("total_lamport", "causal"):
        main(["simulate", "--order", order, "--trace", str(tmp_path / order)])
        capsys.readouterr()
        assert main(["verify", str(tmp_path / order)]) == 0
        told = capsys.readouterr().out.splitlines()[-1]
        beside = ", and total order" if order == "total_lamport" else ""
        assert told == f"Order held: causal{beside}. What was promised: ✔ holds."
    main(["verify", str(tmp_path / "total_lamport"), "--json"])
    assert json.loads(capsys.readouterr().out)["order_held"] == "causal"


@pytest.mark.usefixtures("spark")
def test_in_few_columns_sentences_stand_below_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["verify", str(write(tmp_path / "t", [BROKEN])), "--order", "fifo"]) == 1
    told = capsys.readouterr().out
    assert max(map(len, told.splitlines())) <= 60
    assert "…" not in told
    words = " ".join(told.split())
    assert "fifo: p0 sent 0:1 and then 0:2, but p1 delivered 0:2 before 0:1" in words
    assert "Not promised: uniform_agreement, causal, " in words


@pytest.mark.parametrize("columns", [60, 80, 100, 120, 200])
def test_names_to_be_typed_are_never_cut(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(["algorithms"]) == 0
    told = capsys.readouterr().out
    assert max(map(len, told.splitlines())) <= columns
    assert "…" not in told
    for name in (*ORDERINGS, *DISSEMINATIONS):
        assert re.search(rf"\b{name}\b", told), name


def test_one_is_not_many() -> None:
    assert [counted(n, "event") for n in (0, 1, 2)] == ["0 events", "1 event", "2 events"]
    assert counted(3, "process") == "3 processes"
