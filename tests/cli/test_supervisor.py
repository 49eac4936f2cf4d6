"""What a supervisor hears of `ordercast node`: the datagrams of systemd's `Type=notify`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ordercast.cli.supervisor import Supervisor
from ordercast.testing import World, run

from .test_node import WAIT_S, Member, group_file, members

pytestmark = pytest.mark.timeout(120)


class Ear:
    """Of a supervisor."""

    def __init__(self, listening: socket.socket) -> None:
        self._socket = listening
        self.heard: list[str] = []

    def hears(self, news: str, *, within_s: float = WAIT_S) -> bool:
        deadline = time.monotonic() + within_s
        while (left_s := deadline - time.monotonic()) > 0:
            self._socket.settimeout(left_s)
            with contextlib.suppress(TimeoutError):
                self.heard += self._socket.recv(4096).decode().splitlines()
            if news in self.heard:
                return True
        return False


@contextlib.contextmanager
def supervised(file: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Member, Ear]]:
    """The member a, and whom it tells how it is doing."""
    notify = str(file.parent / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(notify)
        with monkeypatch.context() as environment:
            environment.setenv("NOTIFY_SOCKET", notify)
            environment.setenv("WATCHDOG_USEC", "500000")
            environment.delenv("WATCHDOG_PID", raising=False)
            a = Member(file, "a", "--stay")
        try:
            yield a, Ear(listening)
        finally:
            a.end_input()
            a.process.kill()
            a.process.wait()


def test_a_supervisor_hears_when_it_is_ready_that_it_does_not_hang_and_when_it_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = group_file(tmp_path, "a", "b")
    with supervised(file, monkeypatch) as (a, ear):
        assert ear.hears("STATUS=1 of 2 present")
        assert "READY=1" not in ear.heard
        with members(file, "b", options=("--stay",)):
            assert ear.hears("READY=1")
            assert "STATUS=joined orders: causal_vector over majority_acks" in ear.heard
            ear.heard.clear()
            assert ear.hears("WATCHDOG=1")
            a.process.send_signal(signal.SIGSTOP)
            ear.hears("nothing: only what was said before", within_s=0.3)
            ear.heard.clear()
            assert not ear.hears("WATCHDOG=1", within_s=1.0), "its loop does not turn"
            a.process.send_signal(signal.SIGCONT)
            assert ear.hears("WATCHDOG=1")
            a.process.send_signal(signal.SIGTERM)
            assert ear.hears("STOPPING=1")
            assert a.ends_with() == 0


def test_a_supervisor_hears_twice_as_often_as_it_asks_for(tmp_path: Path) -> None:
    """Once would be too late as soon as anything takes a moment."""
    notify = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind(notify)
        ear.setblocking(False)
        supervisor = Supervisor({"NOTIFY_SOCKET": notify, "WATCHDOG_USEC": "2000000"})

        async def story(world: World) -> None:
            world.start("a", supervisor.keep_awake)
            for _ in range(5):
                await asyncio.sleep(1)
                assert ear.recv(4096) == b"WATCHDOG=1"

        run(story)
        supervisor.close()


def test_one_that_is_stopped_while_it_waits_for_the_others_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with supervised(group_file(tmp_path, "a", "b"), monkeypatch) as (a, ear):
        assert ear.hears("STATUS=1 of 2 present")
        a.process.send_signal(signal.SIGTERM)
        assert ear.hears("STOPPING=1", within_s=20)
        assert a.ends_with() == 0


def test_without_a_supervisor_there_is_no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise AssertionError("nobody is to be told anything")

    monkeypatch.setattr(socket, "socket", none)
    supervisor = Supervisor({"WATCHDOG_USEC": "1000"})
    supervisor.ready("here")
    supervisor.close()


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
