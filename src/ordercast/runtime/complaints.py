"""What a loop complains of: a server without file descriptors for those who knock is one line in
the log now and then.

asyncio would write hundreds of tracebacks a second (python/cpython#151615). In debug mode it also
writes one for each stranger whose handshake fails, and that has a line in the log already.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from ordercast.runtime.logs import about

__all__ = ["Complaints"]

TELL_EVERY_S = 60.0
NOT_SHAKEN = "Error on transport creation for incoming connection"
"""What asyncio calls a handshake that failed."""

logger = logging.getLogger(__name__)


class Complaints:
    """What a loop calls when something fails that nobody waits for, if its program has not said.

    Of other servers, and of everything else, it does what asyncio does. A program's own handler is
    left alone, and this one leaves with the last server.
    """

    ours: tuple[type[asyncio.BaseProtocol], ...] = ()
    """Protocols of members: handshakes of theirs that fail are counted and told elsewhere."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._names: dict[asyncio.Server, tuple[str, str]] = {}
        """Of the group and the member that it is of."""
        self._next_line_s: dict[asyncio.Server, float] = {}

    @classmethod
    def of(cls, loop: asyncio.AbstractEventLoop) -> Complaints:
        found = loop.get_exception_handler()
        if isinstance(found, cls):
            return found
        made = cls(loop)
        if found is None:
            loop.set_exception_handler(made)
        return made

    def heed(self, server: asyncio.Server, group: str, name: str) -> None:
        self._names[server] = group, name

    def forget(self, server: asyncio.Server) -> None:
        self._names.pop(server, None)
        self._next_line_s.pop(server, None)
        if not self._names and self._loop.get_exception_handler() is self:
            self._loop.set_exception_handler(None)

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if context.get("message") == NOT_SHAKEN and isinstance(context.get("protocol"), self.ours):
            return
        server = self._server_of(context.get("socket"))
        if server is None or not isinstance(error, OSError):
            loop.default_exception_handler(context)
        elif loop.time() >= self._next_line_s.get(server, 0.0):
            self._next_line_s[server] = loop.time() + TELL_EVERY_S
            group, name = self._names[server]
            logger.warning(
                "%s: nobody can come in: %s (how many a process may have says 'ulimit -n')",
                *(name, error.strerror),
                extra=about("cannot_accept", name, group=group),
            )

    def _server_of(self, listening: Any) -> asyncio.Server | None:
        """Which of ours could not accept a connection."""
        if listening is None:
            return None
        wanted = listening.fileno()
        return next(
            (one for one in self._names if wanted in [each.fileno() for each in one.sockets]), None
        )
