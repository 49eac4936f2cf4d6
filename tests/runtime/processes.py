"""Looking at the machine's processes from outside of what is tested (Linux only)."""

from __future__ import annotations

import contextlib
import os
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

MARK = "ORDERCAST_TEST_MARK"
MEMBER = b"ordercast.runtime.member"


class Members:
    """The member processes that one test started, however they came about: by their environment."""

    def __init__(self, mark: str) -> None:
        self._mark = f"{MARK}={mark}".encode()

    def pids(self) -> list[int]:
        return [int(path.name) for path in Path("/proc").iterdir() if self._is_one(path)]

    def pid_of(self, me: int) -> int:
        """A member is told by the log that it has open."""
        (pid,) = (pid for pid in self.pids() if _has_open(pid, f"p{me}-0001.spans"))
        return pid

    def _is_one(self, process: Path) -> bool:
        if not process.name.isdigit():
            return False
        try:
            command = (process / "cmdline").read_bytes().split(b"\0")
            return MEMBER in command and self._mark in (process / "environ").read_bytes()
        except OSError:  # it ended while we looked
            return False


@pytest.fixture
def members(monkeypatch: pytest.MonkeyPatch) -> Iterator[Members]:
    """Fails the test if one of its members is left at the end."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv(MARK, mark)
    found = Members(mark)
    yield found
    left = found.pids()
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []


def _has_open(pid: int, name: str) -> bool:
    with contextlib.suppress(OSError):
        return any(
            Path(os.readlink(link)).name == name for link in Path(f"/proc/{pid}/fd").iterdir()
        )
    return False
