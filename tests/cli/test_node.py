"""`ordercast node` as a supervisor starts it: real processes, one TOML file, pipes and signals."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ordercast.cli import main
from ordercast.runtime.ask_status import ask
from ordercast.runtime.keys import make_group

pytestmark = pytest.mark.timeout(120)

WAIT_S = 90


class Member:
    """One process. Its output goes to files, so that nobody has to read it in time."""

    def __init__(self, file: Path, me: str, *options: str, stdout: int | None = None) -> None:
        self._out, self._err = (file.parent / f"{me}.{what}" for what in ("out", "err"))
        command = "from ordercast.cli import main; raise SystemExit(main())"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-c", command, "node", str(file), "--me", me, *options],
                stdin=subprocess.PIPE,
                stdout=out if stdout is None else stdout,
                stderr=err,
            )

    def say(self, *lines: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(line + b"\n" for line in lines))
        self.process.stdin.flush()

    def end_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def lines(self) -> list[str]:
        return self._out.read_text().splitlines()

    def complaints(self) -> str:
        return self._err.read_text()

    def joined(self) -> bool:
        return "joined" in self.complaints()

    def ends_with(self) -> int:
        return self.process.wait(timeout=WAIT_S)


@contextlib.contextmanager
def members(
    file: Path, *names: str, options: tuple[str, ...] = (), stdout_of_b: int | None = None
) -> Iterator[list[Member]]:
    started = [
        Member(file, name, *options, stdout=stdout_of_b if name == "b" else None) for name in names
    ]
    try:
        wait_until(lambda: all(member.joined() or member.process.poll() for member in started))
        yield started
    finally:
        for member in started:
            with contextlib.suppress(BrokenPipeError):
                member.end_input()
            member.process.kill()
            member.process.wait()


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    found = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return found


def group_file(directory: Path, *names: str, node: str = "", order: str = "causal") -> Path:
    places = "\n".join(
        f'{name} = "127.0.0.1:{port}"' for name, port in zip(names, ports(len(names)), strict=True)
    )
    file = directory / "group.toml"
    file.write_text(
        f'[group]\nname = "orders"\norder = "{order}"\n[members]\n{places}\n'
        f'[node]\nstatus = "{{me}}.status"\n{node}\n'
    )
    return file


def test_lines_are_sent_and_deliveries_printed(tmp_path: Path) -> None:
    with members(group_file(tmp_path, "a", "b", "c"), "a", "b", "c") as (a, b, c):
        a.say(b"one", b"", b"three")
        wait_until(lambda: len(b.lines()) == 3)
        b.say(b"an answer")
        a.end_input()
        assert a.ends_with() == 0
        wait_until(lambda: len(c.lines()) == 4)
        assert c.lines() == b.lines() == ["a:1 one", "a:2 ", "a:3 three", "b:1 an answer"]
        assert a.lines()[:3] == ["a:1 one", "a:2 ", "a:3 three"]
        assert "1 of 3 present\n" in a.complaints()
        assert "3 of 3 present\njoined orders: causal_vector over majority_acks\n" in a.complaints()


def test_a_line_may_be_for_some(tmp_path: Path) -> None:
    order = 'causal_matrix"\nreliability = "direct'
    file = group_file(tmp_path, "a", "b", "c", order=order)
    with members(file, "a", "b", "c", options=("--addressed",)) as (a, b, c):
        a.say(b"b,c for two", b"*  for all", b"nobody hello", b"alone", b"c for one")
        wait_until(lambda: len(c.lines()) == 3)
        assert c.lines() == ["a:1 for two", "a:2  for all", "a:3 for one"]
        wait_until(lambda: len(b.lines()) == 2)
        assert b.lines() == ["a:1 for two", "a:2  for all"]
        assert "line 3 was not sent: 'nobody' is no member of 'orders'" in a.complaints()
        assert "line 4 was not sent: it should say whom it is for" in a.complaints()


@pytest.mark.parametrize("addressed", [False, True])
def test_a_line_that_is_too_long_is_told_and_the_next_one_sent(
    addressed: bool, tmp_path: Path
) -> None:
    mark = b"* " if addressed else b""
    options = ("--addressed",) if addressed else ()
    with members(group_file(tmp_path, "a"), "a", options=options) as (a,):
        a.say(mark + b"small", mark + bytes(17 << 20), mark + b"after")
        wait_until(lambda: len(a.lines()) == 2)
        assert a.lines() == ["a:1 small", "a:2 after"]
        assert "line 2 was not sent: a message of more than 15728640 bytes" in a.complaints()


def test_without_a_stdin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONWARNINGS", "always::ResourceWarning")
    file = group_file(tmp_path, "a")
    command = shlex.join([sys.executable, "-m", "ordercast", "node", str(file), "--me", "a"])
    done = subprocess.run(["sh", "-c", f"{command} <&-"], capture_output=True, timeout=WAIT_S)
    assert done.returncode == 0, done.stderr
    assert b"Warning" not in done.stderr


def test_who_is_told_to_stay_stays(tmp_path: Path) -> None:
    with members(group_file(tmp_path, "a", "b"), "a", "b", options=("--stay",)) as (a, b):
        for member in (a, b):
            member.end_input()
        time.sleep(1)
        assert (a.process.poll(), b.process.poll()) == (None, None)
        a.process.send_signal(signal.SIGTERM)
        assert a.ends_with() == 0


def test_everything_that_was_sent_has_arrived_when_the_sender_is_gone(tmp_path: Path) -> None:
    count = 30_000
    file = group_file(tmp_path, "a", "b", order="fifo")
    with members(file, "a", "b") as (a, b):
        a.say(*(b"%d" % number for number in range(count)))
        a.end_input()
        assert a.ends_with() == 0
        wait_until(lambda: len(b.lines()) == count)
        assert b.lines() == [f"a:{number + 1} {number}" for number in range(count)]
        assert a.lines() == b.lines()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_makes_it_leave_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    file = group_file(tmp_path, "a", "b")
    with members(file, "a", "b") as (a, b):
        a.say(b"last words")
        wait_until(lambda: b.lines() == ["a:1 last words"])
        assert (tmp_path / "a.status").exists()
        a.process.send_signal(number)
        assert a.ends_with() == 0
        assert a.lines() == ["a:1 last words"]
        assert "Traceback" not in a.complaints()
        assert not (tmp_path / "a.status").exists()


def test_nohup_keeps_a_closed_terminal_from_it(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        a = Member(group_file(tmp_path, "a"), "a")
    finally:
        signal.signal(signal.SIGHUP, before)
    wait_until(a.joined)
    a.process.send_signal(signal.SIGHUP)
    a.say(b"still here")
    wait_until(lambda: a.lines() == ["a:1 still here"])
    a.end_input()
    assert a.ends_with() == 0


def test_a_stdout_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        a = Member(group_file(tmp_path, "a"), "a", stdout=full.fileno())
    a.say(b"one")
    assert a.ends_with() == 2
    a.end_input()
    assert "ordercast node: stdout cannot be written: No space left on device\n" in a.complaints()


def by_default(directory: Path, node: str) -> Path:
    """A group of one that does not say where its status is served."""
    file = group_file(directory, "a", node=node)
    file.write_text(file.read_text().replace('status = "{me}.status"\n', ""))
    return file


def test_a_member_that_is_started_twice_is_told_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = by_default(tmp_path, 'journal = "journals/{me}"')
    with members(file, "a", options=("--stay",)):
        assert main(["node", str(file), "--me", "a"]) == 2
    assert capsys.readouterr().err == (
        "ordercast node: a member with this journal runs already (its status is served at "
        f"{tmp_path}/journals/a.status): a member runs once; stop the other one first\n"
    )


def test_one_that_waits_for_the_others_is_not_disturbed_by_a_second_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = group_file(tmp_path, "a", "b")
    a = Member(file, "a", "--stay")
    try:
        wait_until(lambda: "1 of 2 present" in a.complaints())
        assert main(["node", str(file), "--me", "a", "--status"]) == 2
        waits = "ordercast node: a has not joined yet: 1 of 2 present, waiting for b\n"
        assert capsys.readouterr().err == waits
        assert main(["node", str(file), "--me", "a"]) == 2
        assert "another member serves its status at" in capsys.readouterr().err
        with members(file, "b"):
            wait_until(a.joined)
            assert ask(tmp_path / "a.status").present == ("a", "b")
    finally:
        a.end_input()
        a.process.kill()
        a.process.wait()


def test_a_journal_in_an_impossible_place_is_what_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    for place in ("file", "file/{me}"):
        assert main(["node", str(by_default(tmp_path, f'journal = "{place}"')), "--me", "a"]) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"ordercast node: the journal in {tmp_path}/file")
        assert said.endswith(f"cannot be opened: {tmp_path}/file is a file: name a directory\n")


def test_a_journal_that_is_removed_ends_the_member(tmp_path: Path) -> None:
    file = group_file(tmp_path, "a", node='journal = "journals/{me}"')
    with members(file, "a", options=("--stay",)) as (a,):
        shutil.rmtree(tmp_path / "journals")
        assert a.ends_with() == 2
        assert a.complaints().count("is lost: ") == 1
        assert f"ordercast node: the journal in {tmp_path}/journals/a is lost" in a.complaints()


def test_a_signal_ends_the_wait_for_the_others(tmp_path: Path) -> None:
    a = Member(group_file(tmp_path, "a", "b"), "a")
    wait_until(lambda: "1 of 2 present" in a.complaints())
    a.process.send_signal(signal.SIGTERM)
    assert a.ends_with() == 0
    a.end_input()
    assert a.complaints() == "1 of 2 present\n"


def test_waiting_in_vain_is_told(tmp_path: Path) -> None:
    a = Member(group_file(tmp_path, "a", "b", node="timeout_s = 0.5"), "a")
    assert a.ends_with() == 2
    a.end_input()
    assert "ordercast node: after 0.5 s there is no connection with b" in a.complaints()


def test_json_says_everything_and_bytes_survive(tmp_path: Path) -> None:
    file = group_file(tmp_path, "a")
    odd = b"\xff\x00 odd"
    with members(file, "a", options=("--json",)) as (a,):
        a.say("schön".encode(), odd)
        a.end_input()
        assert a.ends_with() == 0
        first, second = (json.loads(line) for line in a.lines())
    assert (first["id"], first["sender"], first["number"]) == ("a:1", "a", 1)
    assert (first["position"], first["text"]) == (1, "schön")
    assert abs(first["time_us"] / 1e6 - time.time()) < 100
    assert base64.b64decode(second["base64"]) == odd
    assert "text" not in second


def test_what_would_disturb_a_terminal_is_escaped(tmp_path: Path) -> None:
    with members(group_file(tmp_path, "a"), "a") as (a,):
        a.say(b"\x1b[2J\rgone\t\xff", "fein: äöü 漢字".encode())
        a.end_input()
        assert a.ends_with() == 0
        assert a.lines() == [r"a:1 \x1b[2J\rgone" + "\t" + r"\xff", "a:2 fein: äöü 漢字"]


def test_a_line_without_an_end_is_sent_too(tmp_path: Path) -> None:
    with members(group_file(tmp_path, "a"), "a") as (a,):
        assert a.process.stdin is not None
        a.process.stdin.write(b"no newline")
        a.end_input()
        assert a.ends_with() == 0
        assert a.lines() == ["a:1 no newline"]


@pytest.mark.parametrize("flags", [(), ("--me", "a")])
def test_a_file_that_is_not_there_has_no_status(
    flags: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["node", str(tmp_path / "gruop.toml"), "--status", *flags]) == 2
    assert capsys.readouterr().err == (
        f"ordercast node: there is no file {tmp_path}/gruop.toml: name the group's TOML file, "
        "with --me NAME, or the status socket of a member that is running\n"
    )


def test_status_as_a_table_and_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = group_file(tmp_path, "a", "b", node='journal = "journals/{me}"')
    with members(file, "a", "b", options=("--stay",)) as (a, b):
        a.say(b"one", b"two")
        wait_until(lambda: len(b.lines()) == 2 and len(a.lines()) == 2)
        assert main(["node", str(file), "--me", "a", "--status"]) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert said.startswith("a in orders: causal_vector over majority_acks, process ")
        assert "present 2 of 2: a, b sent 2 messages, 0 about to leave" in said
        assert "delivered 2 messages, the last at position 2" in said
        assert "held nothing" in said
        assert f"journal {tmp_path}/journals/a, segment 1 at" in said
        assert "│ b │ connected │" in said
        assert main(["node", str(tmp_path / "b.status"), "--status", "--json"]) == 0
        status = json.loads(capsys.readouterr().out)
        assert (status["me"], status["delivered"], status["present"]) == ("b", 2, ["a", "b"])
        assert status["peers"][0]["name"] == "a"
        assert status["pid"] == b.process.pid
    assert main(["node", str(file), "--me", "a", "--status"]) == 2
    assert "no member answers at" in capsys.readouterr().err


def test_a_killed_member_comes_back_and_replays(tmp_path: Path) -> None:
    file = group_file(tmp_path, "a", "b", node='journal = "journals/{me}"')
    with members(file, "a", "b", options=("--stay",)) as (a, b):
        a.say(b"one", b"two")
        wait_until(lambda: len(b.lines()) == 2)
        b.process.kill()
        b.process.wait()
        a.say(b"three")
        with members(file, "b", options=("--stay",)) as (again,):
            wait_until(lambda: again.lines() == ["a:3 three"])
            again.process.send_signal(signal.SIGTERM)
            assert again.ends_with() == 0
        with members(file, "b", options=("--stay", "--replay-from", "2")) as (again,):
            wait_until(lambda: again.lines() == ["a:2 two", "a:3 three"])


@pytest.mark.parametrize("options", [(), ("--replay-from", "2")])
def test_who_remembers_leaves_when_all_that_is_here_is_printed(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    """What is left for the next life need not be left for it."""
    count = 30_000
    file = group_file(tmp_path, "a", order="fifo", node='journal = "journals/{me}"')
    lines = [f"a:{number + 1} {number}" for number in range(count)]
    with members(file, "a") as (a,):
        a.say(*(b"%d" % number for number in range(count)))
        a.end_input()
        assert a.ends_with() == 0
        assert a.lines() == lines
    with members(file, "a", options=options) as (again,):
        again.end_input()
        assert again.ends_with() == 0
        assert again.lines() == (lines[1:] if options else [])


def test_a_slow_reader_gets_all_before_a_member_leaves(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    file = group_file(tmp_path, "a", "b", order="fifo")
    with members(file, "a", "b", stdout_of_b=writing) as (a, b):
        os.close(writing)
        a.say(*(b"x" * 1000 for _ in range(300)))
        wait_until(lambda: ask(tmp_path / "b.status").delivered == 300)
        b.end_input()
        time.sleep(6)  # longer than a member that is told to leave waits for its reader
        with os.fdopen(reading, "rb") as reader:
            assert len(reader.readlines()) == 300
        assert b.ends_with() == 0


def test_metrics_and_keys_and_logs(tmp_path: Path) -> None:
    make_group(tmp_path / "keys", "orders", ["a"], days=2)
    [port] = ports(1)
    file = group_file(tmp_path, "a", node=f'keys = "keys"\nmetrics = "127.0.0.1:{port}"')
    with members(file, "a", options=("--log-json", "--stay")) as (a,):
        url = f"http://127.0.0.1:{port}/metrics"
        wait_until(lambda: 'ordercast_members{group="orders",member="a"} 1.0' in fetched(url))
        logged = [json.loads(line) for line in a.complaints().splitlines()]
        assert [line["event"] for line in logged if "event" in line] == ["presence", "joined"]
        assert logged[-1]["message"].startswith("a: joined 'orders': ")
        assert (logged[-1]["group"], logged[-1]["member"]) == ("orders", "a")


def fetched(url: str) -> str:
    with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=WAIT_S) as answer:
        text: str = answer.read().decode()
        return text
    return ""


def test_whoever_does_not_read_blocks_neither_heartbeats_nor_the_end(tmp_path: Path) -> None:
    settings = "[settings]\nwindow_bytes = 20_000"
    file = group_file(tmp_path, "a", "b", order="fifo", node=settings)
    reading, writing = os.pipe()  # of which nobody ever reads
    with members(file, "a", "b", options=("--stay",), stdout_of_b=writing) as (a, b):
        os.close(writing)
        # More than b's pipe and the window take; and the rest fits into a's own.
        a.say(*(b"x" * 1000 for _ in range(140)))
        wait_until(lambda: ask(tmp_path / "a.status").window_used_bytes > 15_000)
        time.sleep(3)  # longer than a silent member is trusted
        assert ask(tmp_path / "a.status").suspected == ()
        assert ask(tmp_path / "b.status").queued > 0
        b.process.send_signal(signal.SIGTERM)
        assert b.ends_with() == 0
    os.close(reading)


def test_what_cannot_be_delivered_is_told_at_the_end(tmp_path: Path) -> None:
    file = group_file(tmp_path, "a", "b", "c", node="timeout_s = 10")
    with members(file, "a", "b", "c") as (a, b, c):
        for other in (b, c):
            other.process.send_signal(signal.SIGTERM)
            assert other.ends_with() == 0
        a.say(b"nobody is left to hold it")
        a.end_input()
        assert a.ends_with() == 2
        assert "has been delivered by a after 10 s; a:1 waits for word from b, c" in a.complaints()


def test_what_is_in_the_way_shows_before_anyone_joins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = group_file(tmp_path, "a", "b")
    (tmp_path / "a.status").write_text("")
    assert main(["node", str(file), "--me", "a"]) == 2
    assert capsys.readouterr().err == (
        f"ordercast node: {tmp_path}/a.status is in the way of the status socket: move it, or "
        "choose another\n"
    )


def without_a_resolver(known: Callable[..., Any]) -> Callable[..., Any]:
    def look_up(host: Any, *rest: Any, **options: Any) -> Any:
        if host == "no.such.host.invalid":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return known(host, *rest, **options)

    return look_up


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["group.toml"], "which member is this? Say --me NAME"),
        (["group.toml", "--status"], "describes all members: say which one with --me NAME"),
        (["group.toml", "--me", "x"], "group.toml, [members]: 'x' is not one of a"),
        (["gone.toml", "--me", "a"], "gone.toml cannot be read: No such file or directory"),
        (["gone.status", "--status"], "no member answers at gone.status: is it running"),
        (
            ["group.toml", "--me", "a", "--replay-from", "1"],
            "--replay-from: group.toml names no journal to replay from: give node.journal",
        ),
        (["group.toml", "--me", "a", "--replay-from", "0"], "0: positions are counted from 1"),
        (
            ["abroad.toml", "--me", "a"],
            "10.1.2.3 is not on this machine, and without keys everything would travel in",
        ),
        (
            ["measured.toml", "--me", "a"],
            "metrics cannot be served at no.such.host.invalid:9100: Name or service not known",
        ),
        (
            ["lost.toml", "--me", "a"],
            "group.toml: it is a file: name a directory that all members can write to",
        ),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    group = group_file(tmp_path, "a").read_text()
    metrics = 'metrics = "no.such.host.invalid:9100"'
    files = {
        "abroad.toml": f'{group}listen = "10.1.2.3"\n',
        "measured.toml": f"{group}{metrics}\n",
        "lost.toml": '[group]\nname = "orders"\npeers = "registry:group.toml?size=1"\n',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(socket, "getaddrinfo", without_a_resolver(socket.getaddrinfo))
    assert main(["node", *arguments]) == 2
    out, complaint = capsys.readouterr()
    assert out == ""
    assert complaint.startswith("ordercast node: ")
    assert said in complaint
    assert complaint.count("\n") == 1
