"""Who speaks: mutual TLS 1.3 between the members of a group.

A group has a certificate authority (CA) of its own, and every member a certificate from it with
exactly one identity, the URI `ordercast://GROUP/NAME`. Both sides of a connection show theirs and
trust nothing but the group's CA, so a name is known before the first frame is read, and nobody
can speak for another. Host names play no part: a member may move.
"""

from __future__ import annotations

import contextlib
import logging
import re
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from msgspec import Struct

from ordercast.errors import PeerError, SetupError, UsageError
from ordercast.runtime.contexts import KeyFiles, make_context, own_certificate, try_list
from ordercast.runtime.revoked import heed, list_beside

__all__ = [
    "Credentials",
    "KeyFiles",
    "Made",
    "Revoked",
    "check_name",
    "identity",
    "make_group",
    "peer_name",
    "revoke_members",
]

DAYS = 365
EXPIRES_SOON_S = 30 * 86_400

# What neither a URI, a file name, a log line nor a shell has to escape.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_IDENTITY = re.compile(r"ordercast://([^/]*)/([^/]*)")

logger = logging.getLogger(__name__)


def check_name(name: str, what: str = "member") -> str:
    """The name itself, if it can be that of a member or a group."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be the name of a {what}: take 1 to 63 letters, digits, '.', '_' "
            "and '-', a letter or digit first"
        )
    return name


def identity(group: str, name: str) -> str:
    """The URI in a member's certificate; allowed names need no escapes in it."""
    return f"ordercast://{group}/{name}"


class Made(Struct, frozen=True, kw_only=True):
    """What `make_group` has written."""

    directory: Path
    group: str
    members: tuple[str, ...]
    files: tuple[Path, ...]
    new_authority: bool
    """The group's CA was made as well; otherwise the one that was there has signed."""
    expires: datetime


def make_group(
    directory: Path | str,
    group: str,
    names: Iterable[str],
    *,
    days: int = DAYS,
    now: datetime | None = None,
) -> Made:
    """Write a certificate and a key for each name, and the group's CA if there is none yet.

    Nothing is ever overwritten, and after an error nothing new is left behind.
    """
    with _the_extra():
        from ordercast.runtime import certificates
    return certificates.make(
        Path(directory), group, tuple(names), days=days, now=now or datetime.now(UTC)
    )


class Revoked(Struct, frozen=True, kw_only=True):
    """What `revoke_members` has written."""

    directory: Path
    group: str
    members: tuple[str, ...]
    file: Path
    total: int
    """Certificates on the list, with those that were there before."""


def revoke_members(
    directory: Path | str, group: str, names: Iterable[str], *, now: datetime | None = None
) -> Revoked:
    """Put the certificates of these members that are in the directory on the group's list of
    those that are not believed any more; a new certificate for the same name is."""
    with _the_extra():
        from ordercast.runtime import revoking
    return revoking.revoke(Path(directory), group, tuple(names), now=now or datetime.now(UTC))


@contextlib.contextmanager
def _the_extra() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise SetupError(
            f"making keys needs the package {error.name}: pip install 'ordercast[keys]'"
        ) from None


class Credentials(Struct, frozen=True, kw_only=True):
    """What a member shows to others, and what it asks of them."""

    group: str
    me: str
    server: ssl.SSLContext
    client: ssl.SSLContext
    mirror: ssl.SSLContext
    """Shows our certificate to nobody but ourselves, when there is a list to try on it."""
    expires: datetime
    files: KeyFiles

    @classmethod
    def load(cls, where: Path | str | KeyFiles, *, group: str, me: str) -> Self:
        """Read the member's three files, from their directory or one by one, and try them out."""
        check_name(group, "group")
        check_name(me)
        files = where if isinstance(where, KeyFiles) else KeyFiles.of(where, me)
        for file in files:
            if not file.is_file():
                raise UsageError(
                    f"there is no file {file}: make keys with 'ordercast keys "
                    f"{file.parent} --group {group} {me}', or copy them from where they were made"
                )
        if files.key.stat().st_mode & 0o077:
            logger.warning("%s can be read by others: chmod 600 %s", files.key, files.key)
        server = make_context(files, serves=True)
        client = make_context(files, serves=False)
        own = own_certificate(files, server, client)
        found = _identity_of(own)
        if found != (group, me):
            says = f"is of member {found[1]!r} of group {found[0]!r}" if found else "names nobody"
            raise UsageError(f"{files.certificate} {says}: give one of {me!r} of group {group!r}")
        expires_s = ssl.cert_time_to_seconds(str(own["notAfter"]))
        expires = datetime.fromtimestamp(expires_s, UTC)
        if expires_s - time.time() < EXPIRES_SOON_S:
            logger.warning("%s expires on %s: make a new one", files.certificate, expires.date())
        return cls(
            group=group,
            me=me,
            server=server,
            client=client,
            mirror=make_context(files, serves=True),
            expires=expires,
            files=files,
        )

    def heed_new_list(self) -> bool:
        """Heed the list of revoked certificates that is there now, once it has been tried out.
        Whether our own is on it."""
        file = list_beside(self.files.ca)
        found = try_list(file, trusting=self.client, showing=self.mirror)
        for context in (self.server, self.client):
            heed(context, file)
        return found


def peer_name(peer: ssl.SSLObject | ssl.SSLSocket | Mapping[str, object] | None, group: str) -> str:
    """The member at the other end, by its verified certificate (or the connection that has it)."""
    certificate = peer.getpeercert() if isinstance(peer, ssl.SSLObject | ssl.SSLSocket) else peer
    if not certificate:
        raise PeerError("the peer has shown no certificate")
    found = _identity_of(certificate)
    if found is None:
        raise PeerError("the peer's certificate names no single member of a group")
    if found[0] != group:
        raise PeerError(f"the peer is {found[1]!r} of group {found[0]!r}, and this is {group!r}")
    return found[1]


def _identity_of(certificate: Mapping[str, object]) -> tuple[str, str] | None:
    """Group and name, if the certificate says exactly one."""
    alternatives = certificate.get("subjectAltName", ())
    assert isinstance(alternatives, tuple)
    uris = [value for kind, value in alternatives if kind == "URI"]
    found = [match for uri in uris if (match := _IDENTITY.fullmatch(uri))]
    if len(found) != 1 or not all(map(_NAME.fullmatch, found[0].groups())):
        return None
    return found[0][1], found[0][2]
