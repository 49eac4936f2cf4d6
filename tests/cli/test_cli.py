"""The command line as a user meets it: what it prints, where, and how it ends."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ordercast.cli import main
from ordercast.trace import Trace
from ordercast.trace.jsonl import encode_event

CAUSAL = ["--ordering", "causal_vector", "--processes", "5", "--messages", "50", "--seed", "7"]


def simulate(*arguments: str) -> int:
    return main(["simulate", *arguments])


def test_the_same_seed_writes_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert simulate(*CAUSAL, "--trace", str(tmp_path / name)) == 0
    for file in ("events.jsonl", "manifest.jsonl"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_the_replay_in_the_manifest_gives_the_same_trace(tmp_path: Path) -> None:
    faults = "crash:0#3, loss:10%, partition:0|1,2@5ms+20ms"
    simulate(
        *("--ordering", "causal_history", "--dissemination", "majority", "--processes", "4"),
        *("--threshold", "3", "--seed", "5", "--faults", faults, "--trace", str(tmp_path / "one")),
    )
    [trace] = Trace.load(tmp_path / "one")
    program, verb, *arguments = _split(trace.manifest.extra["replay"])
    assert (program, verb) == ("ordercast", "simulate")
    simulate(*arguments, "--trace", str(tmp_path / "two"))
    assert Trace.load(tmp_path / "two") == [trace]


def _split(command: str) -> list[str]:
    import shlex

    return shlex.split(command)


def test_simulate_says_what_happened(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert simulate(*CAUSAL, "--json", "--trace", str(tmp_path / "t")) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["sent"], summary["delivered"]) == (250, 1250)
    assert summary["held"] > 0
    assert summary["quiesced"] is True


def test_a_majority_that_is_lost_is_told_as_run_tells_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    simulate("--order", "total_consensus", "--faults", "crash:1@5ms,crash:2@8ms")
    told = "total_consensus waits for more than half of the 3 members, and only 1 is left\n"
    assert f" of virtual time: {told}" in capsys.readouterr().out


def test_who_waits_for_whom_is_told_and_kept(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    simulate(
        *("--ordering", "total_lamport", "--messages", "2", "--faults", "crash:2@1ms"),
        *("--trace", str(tmp_path / "t")),
    )
    told = capsys.readouterr().out
    assert "4 messages sent, 0 deliveries; came to rest" in told  # held for ever, not "for 0 µs"
    assert "p0 still holds 0:1, waiting for word from p2" in told
    [trace] = Trace.load(tmp_path / "t")
    assert {"process": 0, "message": "0:1", "waits_for": [], "waits_on": [2]} in (
        trace.manifest.extra["waiting"]
    )


def test_a_story_is_told_as_it_happens(capsys: pytest.CaptureFixture[str]) -> None:
    simulate("--messages", "3", "--story")
    lines = capsys.readouterr().out.splitlines()
    assert any(" holds " in line and ", waiting for " in line for line in lines)


def test_a_scenario_can_be_played_and_its_trace_kept(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "story.txt"
    file.write_text("group 2 fifo\n\nsend 0\n\npass 0->1\n")
    assert simulate("--scenario", str(file), "--trace", str(tmp_path / "t")) == 0
    assert "p1 delivers 0:1" in capsys.readouterr().out
    [trace] = Trace.load(tmp_path / "t")
    assert [event.kind for event in trace.events] == ["send", "deliver", "receive", "deliver"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "the following arguments are required: VERB"),
        (["fly"], "invalid choice: 'fly'"),
        (["simulat"], "invalid choice: 'simulat' (did you mean simulate?): choose from run, "),
        (["simulate", "--ordering", "best"], "there is no order 'best'"),
        (["simulate", "--order", "casual"], "no order 'casual' (did you mean causal?): choose one"),
        (["run", "--reliability", "unifrom"], "reliability 'unifrom' (did you mean uniform?): cho"),
        (
            ["run", "--dissemination", "gosip"],
            "choice: 'gosip' (did you mean gossip?): choose from",
        ),
        (["sweep", "--dissemination", "gosip"], "there is no 'gosip' (did you mean gossip?): choo"),
        (["verify", "x.jsonl", "--order", "casual"], "'casual' (did you mean causal?): choose one"),
        (["verify", "x.jsonl", "--only", "fifa"], "property 'fifa' (did you mean fifo?): choose f"),
        (["simulate", "--processes", "many"], "argument --processes: 'many' is not a whole number"),
        (["run", "--messages", "1e3"], "argument --messages: '1e3' is not a whole number"),
        (["run", "--timeout", "1min"], "argument --timeout: '1min' is not a number"),
        (["run", "--timeout", "0"], "a timeout of 0 s: choose more than 0"),
        (["run", "--interval", "-1"], ": -1 ms between messages: choose 0 to an hour"),
        (["run", "--trace", ""], "argument --trace: '' is no path: name one"),
        (["keys", "", "--group", "orders", "a"], "argument DIR: '' is no path: name one"),
        (["verify", ""], "argument TRACE: '' is no path: name one"),
        (["simulate", "--processes", "0"], "a group of 0 has no members"),
        (["simulate", "--processes", "1" + "0" * 23], "is too large to simulate: up to 10,000 fit"),
        (["simulate", "--messages", "-1"], "-1 messages of each process: choose from 0 to 1,000"),
        (["simulate", "--messages", "1" + "0" * 23], "messages of each process: choose from 0 to"),
        (["simulate", "--payload", "1" + "0" * 23], "bytes: choose from 0 to 1,073,741,824"),
        (["simulate", "--faults", "rain"], "the fault 'rain' has none of the forms"),
        (["simulate", "--faults", f"crash:0@{'9' * 400}ms"], "… is longer than any run"),
        (["simulate", "--to", "some"], "causal_vector sends to everyone only"),
        (["simulate", "--ordering", "synchronous", "--to", "some"], "sends to one only"),
        (
            ["simulate", "--threshold", "2"],
            "no threshold: choose the dissemination majority or maj",
        ),
        (
            ["simulate", "--order", "total_consensus", "--threshold", "2"],
            "total_consensus waits for more than half of the processes, and only that keeps its pr",
        ),
        (["simulate", "--order", "total_skeen", "--threshold", "2"], "no threshold: leave it out"),
        (
            ["simulate", "--ordering", "total_skeen", "--dissemination", "relay"],
            "total_skeen talks to chosen processes",
        ),
        (["simulate", "--scenario", "nowhere.txt"], "nowhere.txt"),
        (["verify", "nowhere"], "nowhere: there is no such file or directory"),
        (["verify", "."], "not a trace"),
        (["verify", "x.jsonl", "--order", "best"], "there is no order 'best'"),
        (["verify", "x.jsonl", "--order", "causal_vectr"], "(did you mean causal_vector?): choose"),
        (["verify", "x.jsonl", "--order", "total_pairwise"], "there is no order 'total_pairwise'"),
        (["report", "nowhere"], "no such file or directory"),
        (["run", "--order", "best"], "there is no order 'best'"),
        (["run", "--processes", "0"], "0 processes"),
        (["run", "--delay", "soon"], "--delay 'soon' is not of the form"),
    ],
)
def test_bad_input_gets_one_sentence_and_exit_code_2(
    arguments: list[str], sentence: str, tmp_path: Path
) -> None:
    done = ordercast(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    said = [line for line in done.stderr.splitlines() if not line.endswith("…")]
    assert len(said) == 1
    assert sentence in said[0]
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert not list(tmp_path.iterdir())


def test_a_trace_is_not_overwritten(tmp_path: Path) -> None:
    simulate("--messages", "1", "--trace", str(tmp_path / "t"))
    before = (tmp_path / "t" / "events.jsonl").read_bytes()
    assert simulate("--messages", "2", "--trace", str(tmp_path / "t")) == 2
    assert (tmp_path / "t" / "events.jsonl").read_bytes() == before


def test_a_reader_that_goes_away_is_no_error() -> None:
    command = f"{sys.executable} -m ordercast simulate --messages 200 --story | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    assert "Broken pipe" not in done.stderr


@pytest.mark.parametrize("verb", ["node group.toml --me a", "run --here --trace t"])
@pytest.mark.parametrize("limit", [8, 10, 12, 16])
def test_too_few_open_files_are_told_with_their_limit(
    verb: str, limit: int, tmp_path: Path
) -> None:
    (tmp_path / "group.toml").write_text('[group]\nname = "g"\n[members]\na = "127.0.0.1:1"\n')
    command = f"ulimit -n {limit}; exec {sys.executable} -m ordercast {verb}"
    done = subprocess.run(
        ["sh", "-c", command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert done.stderr == (
        f"ordercast {verb.split()[0]}: too many open files: this process may have {limit} "
        "(ulimit -n): allow more, such as with ulimit -n 1024, and start it again\n"
    )
    assert not (tmp_path / "t").exists()


def test_a_full_stdout_is_told_as_such() -> None:
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "ordercast", "algorithms"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert "no space left on device, while stdout or a file was written\n" in done.stderr


@pytest.mark.timeout(60)
def test_a_closed_terminal_ends_a_run_and_leaves_its_trace(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ordercast", "run", "--here", "--messages", "5000"]
    run = subprocess.Popen([*command, "--trace", "t"], cwd=tmp_path, stderr=subprocess.PIPE)
    assert run.stderr is not None
    for line in run.stderr:
        if b"delivering" in line:
            break
    run.send_signal(signal.SIGHUP)
    rest = run.stderr.read().decode()
    run.stderr.close()
    assert run.wait() == 129, rest
    assert "ordercast run: interrupted\n" in rest
    assert "Traceback" not in rest
    assert sorted(path.name for path in (tmp_path / "t").iterdir()) == [
        "events.jsonl",
        "manifest.jsonl",
    ]


@pytest.mark.parametrize("verb", ["run", "simulate", "verify", "report", "algorithms"])
def test_every_verb_has_help_with_an_example(verb: str) -> None:
    done = ordercast(verb, "--help")
    assert done.returncode == 0
    assert f"ordercast {verb}" in done.stdout.partition("example")[2]


def test_algorithms_lists_the_catalog(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["algorithms", "--json"]) == 0
    tables = json.loads(capsys.readouterr().out)
    assert len(tables["orderings"]) == 11
    assert len(tables["disseminations"]) == 6


def test_progress_is_a_bar_on_a_terminal_and_lines_elsewhere(tmp_path: Path) -> None:
    arguments = [sys.executable, "-m", "ordercast", "simulate", "--messages", "2"]
    piped = subprocess.run(arguments, capture_output=True, text=True)
    assert piped.stderr == "simulating 3 processes …\n"
    leader, follower = pty.openpty()
    try:
        subprocess.run(arguments, stderr=follower, stdout=subprocess.DEVNULL, check=True)
        os.close(follower)
        screen = os.read(leader, 65536)
    finally:
        os.close(leader)
    assert b"simulating 3 processes" in screen
    assert b"\x1b[" in screen


def ordercast(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ordercast", *arguments], capture_output=True, text=True, cwd=cwd
    )


def test_encode_is_what_the_writer_writes(tmp_path: Path) -> None:
    simulate("--messages", "1", "--trace", str(tmp_path / "t"))
    [trace] = Trace.load(tmp_path / "t")
    lines = set((tmp_path / "t" / "events.jsonl").read_bytes().splitlines(keepends=True))
    assert lines == {encode_event(event) for event in trace.events}


def test_a_name_that_is_no_text_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["verify", os.fsdecode(b"bad\xff")])
    assert ended.value.code == 2
    told = r"ordercast verify: 'bad\udcff' is not UTF-8: give the file another name"
    assert capsys.readouterr().err.startswith(told)
