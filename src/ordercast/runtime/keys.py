"""Who speaks: mutual TLS 1.3 between the members of a group.

A group has a certificate authority (CA) of its own, and every member a certificate from it with
exactly one identity, the URI `ordercast://GROUP/NAME`. Both sides of a connection show theirs and
trust nothing but the group's CA, so a name is known before the first frame is read, and nobody
can speak for another. Host names play no part: a member may move.

Loading needs the standard library only: `ssl` shows the fields of no certificate but a verified
peer's, so a member shakes hands with itself in memory, which also proves that its files work.
"""

from __future__ import annotations

import logging
import re
import ssl
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, NoReturn, Self

from msgspec import Struct

from ordercast.errors import PeerError, SetupError, UsageError

__all__ = ["Credentials", "KeyFiles", "Made", "check_name", "identity", "make_group", "peer_name"]

DAYS = 365
EXPIRES_SOON_S = 30 * 86_400
HANDSHAKE_TURNS = 10
"""Far more than TLS 1.3 takes: two each."""

# What neither a URI, a file name, a log line nor a shell has to escape.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_IDENTITY = re.compile(r"ordercast://([^/]*)/([^/]*)")

# OpenSSL's numbers of what can be wrong with a certificate (X509_V_ERR_...).
NOT_YET_VALID = 9
EXPIRED = 10
OTHER_ISSUER = {7, 18, 19, 20, 21, 30}

logger = logging.getLogger(__name__)


def check_name(name: str, what: str = "member") -> str:
    """The name itself, if it can be that of a member or a group."""
    if not _NAME.fullmatch(name):
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
    try:
        from ordercast.runtime import certificates
    except ModuleNotFoundError as error:
        raise SetupError(
            f"making keys needs the package {error.name}: pip install 'ordercast[keys]'"
        ) from None
    return certificates.make(
        Path(directory), group, tuple(names), days=days, now=now or datetime.now(UTC)
    )


class KeyFiles(NamedTuple):
    """The three files that a member needs, and all it needs."""

    ca: Path
    certificate: Path
    key: Path

    @classmethod
    def of(cls, directory: Path | str, me: str) -> Self:
        """As `make_group` names them."""
        home = Path(directory)
        return cls(home / "ca.pem", home / f"{me}.pem", home / f"{me}.key")


class Credentials(Struct, frozen=True, kw_only=True):
    """What a member shows to others, and what it asks of them."""

    group: str
    me: str
    server: ssl.SSLContext
    client: ssl.SSLContext
    expires: datetime

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
        server = _context(files, serves=True)
        client = _context(files, serves=False)
        own = _own_certificate(files, server, client)
        found = _identity_of(own)
        if found != (group, me):
            says = f"is of member {found[1]!r} of group {found[0]!r}" if found else "names nobody"
            raise UsageError(f"{files.certificate} {says}: give one of {me!r} of group {group!r}")
        expires_s = ssl.cert_time_to_seconds(str(own["notAfter"]))
        expires = datetime.fromtimestamp(expires_s, UTC)
        if expires_s - time.time() < EXPIRES_SOON_S:
            logger.warning("%s expires on %s: make a new one", files.certificate, expires.date())
        return cls(group=group, me=me, server=server, client=client, expires=expires)


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


def _context(files: KeyFiles, *, serves: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if serves else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # who it is stands in the certificate, not where it is
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    if serves:
        context.num_tickets = 0  # every connection shows its certificate anew
    try:
        context.load_verify_locations(files.ca)
    except ssl.SSLError as error:
        raise UsageError(f"{files.ca} holds no certificate: {error.reason}") from None
    if not context.get_ca_certs():
        raise UsageError(f"{files.ca} is not the certificate of a CA: give the group's ca.pem")

    def password() -> NoReturn:  # without it OpenSSL would ask on the terminal
        raise UsageError(f"{files.key} is encrypted: give a key without a password")

    try:
        context.load_cert_chain(files.certificate, files.key, password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise UsageError(f"{files.key} is not the key of {files.certificate}") from None
        raise UsageError(
            f"{files.certificate} and {files.key} are not a certificate and its key in PEM form"
        ) from None
    return context


def _own_certificate(
    files: KeyFiles, server: ssl.SSLContext, client: ssl.SSLContext
) -> Mapping[str, object]:
    """Shake hands with oneself, and look at what has been shown."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    calling = client.wrap_bio(to_client, to_server)
    called = server.wrap_bio(to_server, to_client, server_side=True)
    pending = [calling, called]
    try:
        for _ in range(HANDSHAKE_TURNS):
            pending = [end for end in pending if not _advance(end)]
    except ssl.SSLCertVerificationError as error:
        raise UsageError(_flaw(files, client, error)) from None
    except ssl.SSLError as error:
        raise UsageError(f"{files.certificate} cannot be used: {error.reason}") from None
    assert not pending, "a handshake in memory that does not end"
    return calling.getpeercert() or {}


def _advance(end: ssl.SSLObject) -> bool:
    """Whether its handshake is over."""
    try:
        end.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


def _flaw(files: KeyFiles, context: ssl.SSLContext, error: ssl.SSLCertVerificationError) -> str:
    ends = [ssl.cert_time_to_seconds(str(ca["notAfter"])) for ca in context.get_ca_certs()]
    if error.verify_code == EXPIRED and max(ends) < time.time():
        return f"the group's CA in {files.ca} has expired: make the keys of the group anew"
    if error.verify_code == EXPIRED:
        return f"{files.certificate} has expired: make a new one with 'ordercast keys'"
    if error.verify_code == NOT_YET_VALID:
        return f"{files.certificate} is not valid yet: is the clock of this machine right?"
    if error.verify_code in OTHER_ISSUER:
        return f"{files.certificate} was not issued by the CA in {files.ca}: take both of one group"
    return f"{files.certificate} cannot be used: {error.verify_message}"
