"""Where a member can be asked how it is doing: HTTP, just enough of it for `GET`.

    Watch.on_socket(path)       /status (JSON) and /metrics, for this user alone
    Watch.beside(path, journal) the same, where nobody has chosen the path: its directory is made
    Watch.on_port(address)      /metrics, for Prometheus

The status never leaves the machine: it is served on a Unix socket with mode 0600.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

import msgspec

from ordercast.errors import SetupError, UsageError
from ordercast.runtime.discovery.address import words
from ordercast.runtime.journal import Journal

if TYPE_CHECKING:
    from ordercast.runtime.discovery import Address
    from ordercast.runtime.group import Group

__all__ = ["Watch"]

REQUEST_BYTES_MAX = 8 * 2**10
REQUEST_TIMEOUT_S = 5.0
PATH_BYTES_MAX = 103
"""What every system allows in the address of a Unix socket."""

_METRICS = "ordercast.runtime.metrics"
"""Needs an extra."""

Page = tuple[str, Callable[[], bytes]]


class Watch:
    """Opened before a member joins, so that what is in the way shows then, and whoever asks is told
    that it has not joined yet; serves when it has."""

    def __init__(self, listening: socket.socket, *paths: str) -> None:
        self.not_yet = "this member has not joined yet"
        """What is said until it has."""
        self._socket = listening
        self._paths = paths
        self._pages: dict[str, Page] = {}
        self._lacking: dict[str, str] = {}
        """Why there is no such page."""
        self._server: asyncio.Server | None = None
        self._file: _File | None = None

    @classmethod
    def on_socket(cls, path: Path) -> Self:
        """At a path that the user has chosen."""
        if not path.parent.is_dir():
            raise UsageError(
                f"the status cannot be served at {path}: there is no directory {path.parent}: "
                "make it first"
            )
        return cls._at(
            path, taken=f"another member serves its status at {path}: choose another path"
        )

    @classmethod
    def beside(cls, path: Path, journal: Path | None) -> Self:
        """At the default path of a member: whoever serves there is the same one, and what is in
        the way there is mostly in the way of its journal."""
        what = "name" if journal is None else "journal"
        taken = (
            f"a member with this {what} runs already (its status is served at {path}): a member "
            "runs once; stop the other one first"
        )
        mask = os.umask(0o077)
        try:
            with contextlib.suppress(OSError):  # it shows right after
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        finally:
            os.umask(mask)
        try:
            return cls._at(path, taken=taken)
        except _UnservedError:
            if journal is not None:
                Journal.prepare(journal)
            raise

    @classmethod
    def _at(cls, path: Path, *, taken: str) -> Self:
        watch = cls(_bind(path, taken), "/status", "/metrics")
        watch._file = _File.at(path)
        return watch

    @classmethod
    def on_port(cls, address: Address) -> Self:
        import_module(_METRICS)  # says what to install
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        try:
            socket.getaddrinfo(*address)  # says what a server would not: that nobody is called so
            return cls(socket.create_server(address, family=family), "/metrics")
        except OSError as error:
            raise UsageError(f"metrics cannot be served at {address}: {words(error)}") from None

    async def open(self) -> None:
        """Answer from now on."""
        start = asyncio.start_server if self._file is None else asyncio.start_unix_server
        self._server = await start(self._answer_one, sock=self._socket, limit=REQUEST_BYTES_MAX)

    def serve(self, group: Group) -> None:
        """The member has joined."""
        for path in self._paths:
            try:
                self._pages[path] = _PAGES[path](group)
            except SetupError as error:
                self._lacking[path] = str(error)

    async def aclose(self) -> None:
        if self._file is not None:
            self._file.remove()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
        self._socket.close()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                request = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._answer(request))
                await writer.drain()
        except (OSError, EOFError, asyncio.LimitOverrunError):
            writer.transport.abort()  # whoever asks like that needs no answer
        finally:
            writer.close()

    def _answer(self, request: bytes) -> bytes:
        method, target, *_ = *request.split(maxsplit=2), b"", b""
        if method != b"GET":
            return _response("405 Method Not Allowed", "text/plain", b"only GET\n")
        if not self._pages:
            return _response("503 Service Unavailable", "text/plain", f"{self.not_yet}\n".encode())
        path = target.partition(b"?")[0].decode("latin-1")
        if path not in self._pages:
            why = self._lacking.get(path, f"there is: {' '.join(self._pages)}")
            return _response("404 Not Found", "text/plain", f"{why}\n".encode())
        kind, body = self._pages[path]
        return _response("200 OK", kind, body())


class _File(NamedTuple):
    """The name of a socket. While that is open, its inode is no other's."""

    path: Path
    device: int
    inode: int

    @classmethod
    def at(cls, path: Path) -> Self:
        found = path.lstat()
        return cls(path, found.st_dev, found.st_ino)

    def remove(self) -> None:
        """Somebody may have taken the name away meanwhile, and given it to another."""
        with contextlib.suppress(FileNotFoundError):
            if self == _File.at(self.path):
                self.path.unlink()


class _UnservedError(UsageError):
    """The system does not let us."""


def _bind(path: Path, taken: str) -> socket.socket:
    """A socket for this user alone, in the place of one that a killed member has left."""
    if len(os.fsencode(path)) > PATH_BYTES_MAX:
        raise UsageError(
            f"{path} is too long for a socket: choose a path of {PATH_BYTES_MAX} bytes"
        )
    listening = socket.socket(socket.AF_UNIX)
    mask = os.umask(0o077)
    try:
        _make_way(path, taken)
        listening.bind(str(path))
        path.chmod(0o600)
        listening.listen()  # whoever finds one where nobody listens takes it for a dead member's
    except OSError as error:
        listening.close()
        raise _UnservedError(
            f"the status cannot be served at {path}: {error.strerror}; choose another path with "
            "node.status"
        ) from None
    except BaseException:
        listening.close()
        raise
    finally:
        os.umask(mask)
    listening.setblocking(False)
    return listening


def _make_way(path: Path, taken: str) -> None:
    try:
        kind = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(kind):
        raise UsageError(f"{path} is in the way of the status socket: move it, or choose another")
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
    raise UsageError(taken)


def _status_page(group: Group) -> Page:
    return "application/json", lambda: msgspec.json.encode(group.status())


def _metrics_page(group: Group) -> Page:
    exposition = import_module(_METRICS).exposition
    return "text/plain; version=0.0.4; charset=utf-8", lambda: exposition(group)


_PAGES = {"/status": _status_page, "/metrics": _metrics_page}


def _response(status: str, kind: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Connection: close\r\n\r\n" + body
