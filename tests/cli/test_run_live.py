"""`ordercast run --live`: who is let in, what is told, and that nothing is left behind."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from ordercast.cli import main
from ordercast.cli.live import staged
from ordercast.cli.live_board import Board
from ordercast.errors import UsageError
from ordercast.runtime.plan import Plan
from ordercast.trace import Trace
from tests.cli.live_run import Visitor, ask, live_run

PLAN = Plan(run="shown", live=True, messages=None)


@pytest.fixture
def address(capsys: pytest.CaptureFixture[str]) -> Iterator[str]:
    """Of a page whose group has yet to start."""
    with staged(PLAN):
        [address] = re.findall(r"^live: (\S+)$", capsys.readouterr().err, re.MULTILINE)
        yield address


# Who is let in


def test_the_address_lets_in_one_visitor_once(address: str) -> None:
    parts = urlsplit(address)
    assert parts.hostname == "127.0.0.1"
    first = Visitor(address)
    assert ask(address, "GET", f"/?{parts.query}").status == 403, "the token is worthless now"
    page = first.ask("GET", "/")
    assert page.status == 200
    assert "causal_vector over best_effort" in page.body


def test_the_cookie_is_for_this_page_alone(address: str) -> None:
    parts = urlsplit(address)
    answer = ask(address, "GET", f"/?{parts.query}")
    assert answer.headers["Location"] == "/", "the token does not stay in the address"
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith(f"ordercast-{parts.port}=")
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; ")[1:])
    assert parts.query.partition("=")[2] not in cookie


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/"), ("GET", "/events"), ("POST", "/act"), ("GET", "/elsewhere")]
)
def test_nothing_is_answered_without_the_cookie(address: str, method: str, path: str) -> None:
    origin = f"http://{urlsplit(address).netloc}"
    assert ask(address, method, path, Origin=origin).status == 403
    forged = f"ordercast-{urlsplit(address).port}=guess"
    assert ask(address, method, path, Origin=origin, Cookie=forged).status == 403
    assert ask(address, method, f"{path}?token=guess", Origin=origin).status == 403


def test_whoever_only_peeks_does_not_use_the_token_up(address: str) -> None:
    assert ask(address, "HEAD", f"/?{urlsplit(address).query}").status == 403
    Visitor(address)


def test_another_host_name_is_refused(address: str) -> None:
    """A page elsewhere whose name is made to point here (DNS rebinding) has another one."""
    port, query = urlsplit(address).port, urlsplit(address).query
    for host in (f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{(port or 0) + 1}", ""):
        assert ask(address, "GET", f"/?{query}", Host=host).status == 403
    visitor = Visitor(address)
    for path in ("/", "/events"):
        assert visitor.ask("GET", path, Host=f"evil.example:{port}").status == 403
    assert visitor.ask("GET", "/", Host=f"localhost:{port}").status == 200


def test_a_wish_from_another_origin_is_refused(address: str) -> None:
    visitor, port = Visitor(address), urlsplit(address).port
    wish = '{"act": "finish"}'
    for origin in ("http://evil.example", "null", f"https://127.0.0.1:{port}", ""):
        assert visitor.ask("POST", "/act", wish, Origin=origin).status == 403
    assert visitor.ask("POST", "/act", wish, Origin=f"http://localhost:{port}").status == 403
    assert visitor.ask("GET", "/act").status == 405, "a link is no wish"


def test_the_page_lets_nobody_frame_it_and_asks_nothing_elsewhere(address: str) -> None:
    answer = Visitor(address).ask("GET", "/")
    assert answer.headers["Content-Security-Policy"] == "frame-ancestors 'none'"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] == "no-store"
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]+)"', answer.body)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "connect-src 'self'" in policy
    assert not re.search(r"(src|href)=\"(?!data:,|#)", answer.body)


def test_a_wish_that_makes_no_sense_gets_a_sentence(address: str) -> None:
    visitor = Visitor(address)
    assert visitor.act("kill", 1) == "There is no group to do that to at this moment."
    assert "unknown field" in visitor.ask("POST", "/act", '{"act": "kill", "x": 1}').body
    assert "Nobody wishes for so much" in visitor.ask("POST", "/act", "x" * 5000).body


def test_names_of_processes_are_not_capitalised(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(board: Board, what: str, process: int | None) -> None:
        raise UsageError(f"p{process} is paused already")

    monkeypatch.setattr(Board, "act", refuse)
    assert Visitor(address).act("pause", 1) == "p1 is paused already."


# What is told


@pytest.mark.timeout(200)
def test_the_stream_tells_all_that_is_in_the_trace_and_ends_with_the_verdicts(
    tmp_path: Path,
) -> None:
    run = ("--messages", "10", "--interval", "150", "--dissemination", "majority_acks")
    with live_run(tmp_path, *run) as command:
        told: list[tuple[str, int, int, int]] = []
        times, phases, names = [0], [], []
        html = ""
        with Visitor(command.address).events() as events:
            for name, news in events:
                names.append(name)
                if name == "verdicts":
                    html = news["html"]
                    continue
                phases.append(news["phase"])
                times.append(news["now"])
                told += [(kind, p, origin, n) for p, kind, _, origin, n in news["moments"]]
                assert news["every"] == 1
                last = news["members"]
        code, out = command.ends()
        port = command.port
    assert code == 0, out
    assert names[0] == "begin"
    assert set(names[1:-1]) == {"step"}
    assert names[-1] == "verdicts"
    assert times == sorted(times)
    order = ["starting", "running", "finishing", "judging"]
    assert phases == sorted(phases, key=order.index)
    assert set(phases) >= {"running", "judging"}
    assert [(member["sent"], member["delivered"], member["held"]) for member in last] == [
        (10, 30, 0)
    ] * 3
    assert [(member["stable"], member["bundles"]) for member in last] == [(10, 10)] * 3
    assert "Causal order held" in html
    assert 'class="ladder"' in html

    [directory] = (tmp_path / "runs").iterdir()
    [trace] = Trace.load(directory)
    rows = [event for event in trace.events if event.number is not None]
    assert Counter(told) == Counter((e.kind, e.process, e.origin, e.number) for e in rows)
    assert "sending ends" not in command.said, "nobody pressed anything"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


@pytest.mark.timeout(100)
def test_ctrl_c_leaves_no_process_no_port_and_no_file(tmp_path: Path) -> None:
    with live_run(tmp_path, "--processes", "3", "--interval", "50") as command:
        with Visitor(command.address).events() as events:
            for _, news in events:
                if news["members"] and news["members"][0]["sent"] > 3:
                    break
            members = children(command.process.pid)
            assert len(members) == 3
            command.interrupt()
            end = list(events)[-1]
        code, _ = command.ends()
        port = command.port
    assert code == 130
    assert end == ("verdicts", {"html": None, "failure": "The run was interrupted."})
    assert command.said[-1] == "ordercast run: interrupted\n"
    assert not any(Path(f"/proc/{child}").exists() for child in members)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    [directory] = (tmp_path / "runs").iterdir()
    assert sorted(file.name for file in directory.iterdir()) == ["events.jsonl", "manifest.jsonl"]
    [trace] = Trace.load(directory)
    assert not trace.manifest.quiesced


def children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]


# What cannot be


def test_without_the_extra_one_sentence_says_what_to_install(tmp_path: Path) -> None:
    for missing in ("starlette", "uvicorn"):
        program = (
            "import sys\n"
            f"sys.modules['{missing}'] = None\n"
            "from ordercast.cli import main\n"
            "sys.exit(main(['run', '--live']))\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path
        )
        assert done.returncode == 2
        assert done.stderr == (
            "ordercast run: a live run needs the packages starlette and uvicorn: "
            "pip install 'ordercast[live]'\n"
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--faults", "loss:1%,kill:1@2s"], "the fault 'kill:1@2s': in a live run people kill,"),
        (["--delay", "0..30"], "write delay:15ms±15ms among the faults instead"),
        (["--messages", "-1"], "--messages -1: nothing to judge: choose 1 or more"),
    ],
)
def test_what_a_live_run_cannot_be_is_said_before_anything_starts(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", "--live", *arguments]) == 2
    said = capsys.readouterr()
    assert len(said.err.splitlines()) == 1
    assert sentence in said.err
    assert list(tmp_path.iterdir()) == []
