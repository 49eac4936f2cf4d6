"""What a supervisor hears of `ordercast node`: the datagrams of systemd's `Type=notify`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import time
from pathlib import Path

import pytest

from ordercast.cli.supervisor import Supervisor

from .test_node import WAIT_S, Member, group_file, members

pytestmark = pytest.mark.timeout(120)


def test_a_supervisor_hears_when_it_is_ready_that_it_does_not_hang_and_when_it_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []

    def hears(news: str, *, within_s: float) -> bool:
        deadline = time.monotonic() + within_s
        while (left_s := deadline - time.monotonic()) > 0:
            ear.settimeout(left_s)
            with contextlib.suppress(TimeoutError):
                heard.extend(ear.recv(4096).decode().splitlines())
            if news in heard:
                return True
        return False

    file = group_file(tmp_path, "a", "b")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "500000")
        monkeypatch.delenv("WATCHDOG_PID", raising=False)
        a = Member(file, "a", "--stay")
        monkeypatch.delenv("NOTIFY_SOCKET")
        try:
            assert hears("STATUS=1 of 2 present", within_s=WAIT_S)
            assert "READY=1" not in heard
            with members(file, "b", options=("--stay",)):
                assert hears("READY=1", within_s=WAIT_S)
                assert "STATUS=joined orders: causal_vector over majority_acks" in heard
                heard.clear()
                assert hears("WATCHDOG=1", within_s=WAIT_S)
                a.process.send_signal(signal.SIGSTOP)
                hears("nothing: only what was said before", within_s=0.3)
                heard.clear()
                assert not hears("WATCHDOG=1", within_s=1.0), "its loop does not turn"
                a.process.send_signal(signal.SIGCONT)
                assert hears("WATCHDOG=1", within_s=WAIT_S)
                a.process.send_signal(signal.SIGTERM)
                assert hears("STOPPING=1", within_s=WAIT_S)
                assert a.ends_with() == 0
        finally:
            a.end_input()
            a.process.kill()
            a.process.wait()


def test_a_supervisor_that_is_gone_or_means_another_disturbs_nobody(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind(b"\0ordercast-test-" + str(os.getpid()).encode())
        ear.settimeout(WAIT_S)
        name = f"@ordercast-test-{os.getpid()}"
        supervisor = Supervisor(
            {"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}
        )
        asyncio.run(supervisor.keep_awake())  # another process is to do that
        supervisor.ready("here")
        assert ear.recv(4096) == b"READY=1\nSTATUS=here"
    supervisor.stopping()  # nobody listens any more
    supervisor.close()
    for where in ("", "vsock:2:1", str(tmp_path / "nothing")):
        silent = Supervisor({"NOTIFY_SOCKET": where, "WATCHDOG_USEC": "soon"})
        asyncio.run(silent.keep_awake())
        silent.ready("here")
        silent.close()
