"""Tell a supervisor how a member is doing, in the way of systemd's `Type=notify`.

Whoever started this process names a socket in NOTIFY_SOCKET, and gets a datagram for each piece of
news. With WATCHDOG_USEC it takes a process that has been silent for so long to hang, and restarts
it. The event loop is what says that all is well, so one that is stuck says nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Mapping

__all__ = ["Supervisor"]


class Supervisor:
    """Without a socket nobody is told anything."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._address = _address(environment.get("NOTIFY_SOCKET", ""))
        self._socket: socket.socket | None = None
        self._patience_s: float | None = None
        if self._address:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._socket.setblocking(False)  # a supervisor that does not read holds nobody up
            self._patience_s = _patience_s(environment)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()

    def status(self, text: str) -> None:
        """For people: `systemctl status` shows it."""
        self._tell(f"STATUS={text}")

    def ready(self, text: str) -> None:
        self._tell(f"READY=1\nSTATUS={text}")

    def stopping(self) -> None:
        self._tell("STOPPING=1\nSTATUS=leaving")

    async def keep_awake(self) -> None:
        """Show that the loop turns, twice as often as is asked for."""
        while self._patience_s is not None:
            self._tell("WATCHDOG=1")
            await asyncio.sleep(self._patience_s / 2)

    def _tell(self, news: str) -> None:
        if self._socket is not None:
            # Whether anyone still listens is the supervisor's affair: a member has others to serve.
            with contextlib.suppress(OSError):
                self._socket.sendto(news.encode(), self._address)


def _address(name: str) -> str | bytes:
    """A path, or a name in Linux's abstract namespace; other kinds are for virtual machines."""
    if name.startswith("@"):
        return b"\0" + os.fsencode(name[1:])
    return name if name.startswith("/") else ""


def _patience_s(environment: Mapping[str, str]) -> float | None:
    """How long we may be silent; None if nobody minds, or another process is meant."""
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    microseconds = environment.get("WATCHDOG_USEC", "")
    return int(microseconds) / 1e6 if microseconds.isdecimal() and int(microseconds) else None
