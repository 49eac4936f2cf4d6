"""Ask a member on this machine how it is doing, at the socket where `watching` answers."""

from __future__ import annotations

import http.client
import socket
from http import HTTPStatus
from pathlib import Path

import msgspec

from ordercast.errors import OrdercastError
from ordercast.runtime.status import Status

__all__ = ["ask"]

ASK_TIMEOUT_S = 10.0


def ask(path: Path) -> Status:
    """The member behind this socket says how it is doing."""
    connection = _UnixConnection(path)
    try:
        connection.request("GET", "/status")
        answer = connection.getresponse()
        body = answer.read()
        if answer.status == HTTPStatus.SERVICE_UNAVAILABLE:
            raise OrdercastError(body.decode(errors="replace").strip())
        return msgspec.json.decode(body, type=Status)
    except (FileNotFoundError, ConnectionRefusedError):
        raise OrdercastError(
            f"no member answers at {path}: is it running, and is that its status socket?"
        ) from None
    except (OSError, http.client.HTTPException, msgspec.MsgspecError) as error:
        raise OrdercastError(
            f"what is at {path} does not answer as a member: {str(error).strip()}"
        ) from None
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
