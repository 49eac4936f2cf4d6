"""Where a member can be asked how it is doing: HTTP, just enough of it for `GET`.

    Watch.on_socket(group, path)      /status (JSON) and /metrics, for this user alone
    Watch.on_port(group, address)     /metrics, for Prometheus
    ask(path)                         the status of the member behind a socket

The status never leaves the machine: it is served on a Unix socket with mode 0600.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgspec

from ordercast.errors import OrdercastError, SetupError, UsageError
from ordercast.runtime.status import Status

if TYPE_CHECKING:
    from ordercast.runtime.discovery import Address
    from ordercast.runtime.group import Group

__all__ = ["Watch", "ask"]

REQUEST_BYTES_MAX = 8 * 2**10
REQUEST_TIMEOUT_S = 5.0
ASK_TIMEOUT_S = 10.0
PATH_BYTES_MAX = 103
"""What every system allows in the address of a Unix socket."""

Page = tuple[str, Callable[[], bytes]]


class Watch:
    def __init__(self, pages: dict[str, Page]) -> None:
        self._pages = pages
        self._server: asyncio.Server | None = None
        self._socket_path: Path | None = None

    @classmethod
    async def on_socket(cls, group: Group, path: Path) -> Self:
        pages = {"/status": _status_page(group)}
        with contextlib.suppress(SetupError):
            pages["/metrics"] = _metrics_page(group)
        watch = cls(pages)
        listening = _bind(path)
        watch._socket_path = path
        watch._server = await asyncio.start_unix_server(
            watch._serve, sock=listening, limit=REQUEST_BYTES_MAX
        )
        return watch

    @classmethod
    async def on_port(cls, group: Group, address: Address) -> Self:
        watch = cls({"/metrics": _metrics_page(group)})
        try:
            watch._server = await asyncio.start_server(
                watch._serve, address.host, address.port, limit=REQUEST_BYTES_MAX
            )
        except OSError as error:
            raise UsageError(f"metrics cannot be served at {address}: {error.strerror}") from None
        return watch

    async def aclose(self) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()
        if self._socket_path is not None:
            self._socket_path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
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
        path = target.partition(b"?")[0].decode("latin-1")
        if path not in self._pages:
            known = " ".join(self._pages)
            return _response("404 Not Found", "text/plain", f"there is: {known}\n".encode())
        kind, body = self._pages[path]
        return _response("200 OK", kind, body())


def ask(path: Path) -> Status:
    """The member behind this socket says how it is doing."""
    connection = _UnixConnection(path)
    try:
        connection.request("GET", "/status")
        return msgspec.json.decode(connection.getresponse().read(), type=Status)
    except (FileNotFoundError, ConnectionRefusedError):
        raise OrdercastError(
            f"no member answers at {path}: is it running, and is that its status socket?"
        ) from None
    except (OSError, http.client.HTTPException, msgspec.MsgspecError) as error:
        raise OrdercastError(f"what is at {path} does not answer as a member: {error}") from None
    finally:
        connection.close()


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("member", timeout=ASK_TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def _bind(path: Path) -> socket.socket:
    """A socket for this user alone, in the place of one that a killed member has left."""
    if len(os.fsencode(path)) > PATH_BYTES_MAX:
        raise UsageError(
            f"{path} is too long for a socket: choose a path of {PATH_BYTES_MAX} bytes"
        )
    listening = socket.socket(socket.AF_UNIX)
    mask = os.umask(0o077)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make_way(path)
        listening.bind(str(path))
        path.chmod(0o600)
    except OSError as error:
        listening.close()
        raise UsageError(f"the status cannot be served at {path}: {error.strerror}") from None
    except BaseException:
        listening.close()
        raise
    finally:
        os.umask(mask)
    listening.setblocking(False)
    return listening


def _make_way(path: Path) -> None:
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
    raise UsageError(f"another member serves its status at {path}: choose another path")


def _status_page(group: Group) -> Page:
    return "application/json", lambda: msgspec.json.encode(group.status())


def _metrics_page(group: Group) -> Page:
    from ordercast.runtime.metrics import exposition  # needs an extra

    return "text/plain; version=0.0.4; charset=utf-8", lambda: exposition(group)


def _response(status: str, kind: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Connection: close\r\n\r\n" + body
