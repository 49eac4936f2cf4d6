"""Where a member listens."""

from __future__ import annotations

import ipaddress
import os
import re
from socket import gaierror
from ssl import SSLError
from typing import NamedTuple, Self

from ordercast.errors import UsageError

__all__ = ["Address", "words"]

PORT_MAX = 65_535

_BRACKETED = re.compile(r"\[([^\[\]]+)\]:([0-9]{1,5})")
_PLAIN = re.compile(r"([A-Za-z0-9._-]{1,253}):([0-9]{1,5})")


class Address(NamedTuple):
    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Of `127.0.0.1:7001`, `[::1]:7001` or `name:7001`."""
        bracketed = _BRACKETED.fullmatch(text)
        found = bracketed or _PLAIN.fullmatch(text)
        if found is None or (bracketed and not _is_ipv6(bracketed[1])):
            raise UsageError(
                f"{text!r} is no address: write '127.0.0.1:7001', '[::1]:7001' or 'name:7001'"
            )
        port = int(found[2])
        if not 1 <= port <= PORT_MAX:
            raise UsageError(f"the port of {text!r} is not from 1 to {PORT_MAX}")
        _check_host(found[1])
        return cls(found[1], port)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_wildcard(self) -> bool:
        """Good for listening on all interfaces, and nowhere to be reached at."""
        return self.host in ("", "0.0.0.0", "::")  # noqa: S104

    @property
    def is_loopback(self) -> bool:
        """Whether what is sent there cannot leave this machine."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def _check_host(host: str) -> None:
    """Looking it up would raise what is no `OSError`."""
    try:
        host.encode("idna")
    except UnicodeError:
        raise UsageError(
            f"{host!r} is no name of a host: between its dots, write from 1 to 63 characters"
        ) from None


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def words(error: OSError) -> str:
    """In the words of the system, without its numbers."""
    if isinstance(error, gaierror):
        return error.strerror or str(error)
    if isinstance(error, SSLError):  # its numbers are OpenSSL's
        return str(error)
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return os.strerror(error.errno) if error.errno else str(error) or "the connection broke"
