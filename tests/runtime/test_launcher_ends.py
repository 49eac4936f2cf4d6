"""How a launcher's own process may end, from a Ctrl-C to a kill -9, and what is left then."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ordercast.errors import OrdercastError
from ordercast.runtime.launcher import launch
from ordercast.runtime.plan import Plan
from ordercast.trace import Trace
from ordercast.trace.directory import MANIFEST
from ordercast.trace.spans import read_log

from .processes import Members

pytestmark = pytest.mark.timeout(60)

PROGRAM = """
import asyncio, sys
from pathlib import Path
from ordercast.runtime.launcher import launch
from ordercast.runtime.plan import Plan

def progress(step):
    if step.phase == "running" and step.delivered > 20:
        print("running", flush=True)

plan = Plan(run="long", messages=10_000, interval_ms=5)
try:
    asyncio.run(launch(plan, directory=Path(sys.argv[1]), progress=progress))
except KeyboardInterrupt:
    sys.exit(130)
"""


def wait_until(condition: Callable[[], bool], *, within_s: float = 10) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def start_launcher(
    directory: Path, program: str = PROGRAM, *, bytes_max: int | None = None
) -> subprocess.Popen[str]:
    """`bytes_max`: no file may become larger."""

    def prepare() -> None:
        # Whoever runs the tests in the background makes their children ignore Ctrl-C.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if bytes_max is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_max, bytes_max))

    return subprocess.Popen(
        [sys.executable, "-c", program, str(directory)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=prepare,
    )


def running_launcher(directory: Path) -> subprocess.Popen[str]:
    launcher = start_launcher(directory)
    assert launcher.stdout is not None
    assert launcher.stdout.readline() == "running\n"
    return launcher


def test_ctrl_c_ends_the_members_and_writes_the_trace(tmp_path: Path, members: Members) -> None:
    launcher = running_launcher(tmp_path)
    assert len(members.pids()) == 3
    start = time.monotonic()
    os.killpg(launcher.pid, signal.SIGINT)  # as a terminal does, to the foreground group
    _, errors = launcher.communicate(timeout=10)
    assert time.monotonic() - start < 4
    assert launcher.returncode == 130
    assert errors == ""
    assert members.pids() == []

    (trace,) = Trace.load(tmp_path)
    assert not trace.manifest.quiesced
    assert trace.manifest.complete
    assert {event.kind for event in trace.events} == {"send", "receive", "deliver"}
    assert {event.process for event in trace.events} == {0, 1, 2}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["events.jsonl", "manifest.jsonl"]


@pytest.mark.parametrize("after_s", [0.1, 0.25, 0.4])
def test_ctrl_c_before_the_group_is_there(tmp_path: Path, members: Members, after_s: float) -> None:
    launcher = start_launcher(tmp_path)
    time.sleep(after_s)
    os.killpg(launcher.pid, signal.SIGINT)
    launcher.communicate(timeout=10)
    assert members.pids() == []
    assert not (tmp_path / "members").exists()


def test_an_impatient_second_ctrl_c(tmp_path: Path, members: Members) -> None:
    """A frozen member makes the first one slow; the second still leaves nothing behind."""
    launcher = running_launcher(tmp_path)
    os.kill(members.pid_of(1), signal.SIGSTOP)
    os.killpg(launcher.pid, signal.SIGINT)
    time.sleep(0.3)
    os.killpg(launcher.pid, signal.SIGINT)
    start = time.monotonic()
    _, errors = launcher.communicate(timeout=10)
    assert time.monotonic() - start < 1
    assert errors == ""
    wait_until(lambda: members.pids() == [], within_s=2)
    (trace,) = Trace.load(tmp_path)
    assert not trace.manifest.quiesced
    assert not (tmp_path / "members").exists()


def test_members_vanish_when_their_launcher_is_killed(tmp_path: Path, members: Members) -> None:
    launcher = running_launcher(tmp_path)
    launcher.kill()
    launcher.communicate(timeout=10)
    wait_until(lambda: members.pids() == [], within_s=5)
    logs = sorted((tmp_path / "members").iterdir())
    assert [log.name for log in logs] == [f"p{me}-0001.spans" for me in range(3)]
    for me, log in enumerate(logs):
        head, spans = read_log(log)
        assert (head.run, head.process, head.position) == ("long", me, 0)
        assert len(spans) > 20


def test_a_launcher_killed_before_its_members_are_up(tmp_path: Path, members: Members) -> None:
    launcher = start_launcher(tmp_path)
    wait_until(lambda: members.pids() != [])
    launcher.kill()
    launcher.communicate(timeout=10)
    wait_until(lambda: members.pids() == [], within_s=5)


def test_a_paused_member_ends_with_its_launcher(tmp_path: Path, members: Members) -> None:
    """It cannot notice anything while it stands still; the kernel sees to it."""
    arguments = ("--faults", "pause:1@100ms+50s", "--trace", str(tmp_path / "trace"))
    with subprocess.Popen(
        [sys.executable, "-m", "ordercast", "run", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as launcher:
        try:
            wait_until(lambda: any(map(is_stopped, members.pids())), within_s=30)
        finally:
            launcher.kill()
    wait_until(lambda: members.pids() == [], within_s=5)


def is_stopped(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    return False


def test_a_member_whose_launcher_died_before_it_looked(tmp_path: Path) -> None:
    """Its stdin is still open, but who started it is not the one that it should belong to."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait(timeout=30)
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "ordercast.runtime.member", str(gone.pid)],
        stdin=subprocess.PIPE,
    ) as member:
        assert member.wait(timeout=30) == 3


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_trace_that_does_not_fit_is_told_and_the_logs_are_kept(
    tmp_path: Path, interrupted: bool
) -> None:
    """A limit on the size of files, which the logs of members keep and the trace does not."""
    short = PROGRAM.replace("messages=10_000, interval_ms=5", "messages=300, interval_ms=0")
    program = PROGRAM if interrupted else short
    launcher = start_launcher(tmp_path / "t", program, bytes_max=60_000)
    if interrupted:
        assert launcher.stdout is not None
        while launcher.stdout.readline() != "running\n":
            assert launcher.poll() is None
        time.sleep(1)  # until there is more to write than may be
        launcher.send_signal(signal.SIGINT)
    _, errors = launcher.communicate(timeout=40)
    assert f"{tmp_path}/t: the trace cannot be written: File too large; what members" in errors
    assert launcher.returncode == (130 if interrupted else 1)
    assert ("Traceback" in errors) is not interrupted  # which this program does not catch
    assert sum(len(read_log(file)[1]) for file in (tmp_path / "t" / "members").glob("*.spans")) > 3


def test_the_logs_are_kept_until_all_of_the_trace_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifest comes last: where there is no room for it, the logs are all there is."""
    write = Path.write_bytes

    def write_bytes(path: Path, data: bytes) -> int:
        if path.name == MANIFEST:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", write_bytes)
    with pytest.raises(OrdercastError, match="No space left on device; what members wrote is in"):
        asyncio.run(launch(Plan(run="r", processes=2, messages=3), directory=tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["members"]
    assert len(list((tmp_path / "members").glob("*.spans"))) == 2
