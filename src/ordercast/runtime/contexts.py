"""A member's files as contexts for `ssl`, tried out.

Loading needs the standard library only: `ssl` shows the fields of no certificate but a verified
peer's, so a member shakes hands with itself in memory, which also proves that its files work.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, NoReturn, Self

from ordercast.errors import UsageError
from ordercast.runtime.revoked import heed, list_beside

__all__ = [
    "EXPIRED",
    "NOT_YET_VALID",
    "OTHER_ISSUER",
    "REVOKED",
    "KeyFiles",
    "make_context",
    "own_certificate",
    "try_list",
]

HANDSHAKE_TURNS = 10
"""Far more than TLS 1.3 takes: two each."""

# OpenSSL's numbers of what can be wrong with a certificate (X509_V_ERR_...).
NOT_YET_VALID = 9
EXPIRED = 10
REVOKED = 23
OTHER_ISSUER = {7, 18, 19, 20, 21, 30}
_LIST_NOT_YET_VALID = 11
_LIST_LAPSED = 12
_USELESS_LIST = {3, 5, 8, _LIST_NOT_YET_VALID, _LIST_LAPSED}
_AFTER_THE_LIST = {NOT_YET_VALID, EXPIRED, REVOKED}
"""What OpenSSL finds only once it has found nothing wrong with the list itself."""


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


def make_context(files: KeyFiles, *, serves: bool) -> ssl.SSLContext:
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
    except OSError as error:
        raise UsageError(f"{files.ca} cannot be read: {error.strerror}") from None
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
    except OSError as error:
        raise UsageError(
            f"{files.certificate} and {files.key} cannot be read: {error.strerror}"
        ) from None
    if (revoked := list_beside(files.ca)).exists():
        heed(context, revoked)
    return context


def own_certificate(
    files: KeyFiles, server: ssl.SSLContext, client: ssl.SSLContext
) -> Mapping[str, object]:
    """Shake hands with oneself, and look at what has been shown."""
    calling, called = _ends(client, server)
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


def try_list(file: Path, *, trusting: ssl.SSLContext, showing: ssl.SSLContext) -> bool:
    """Whether our own certificate is on the list, which must be one of the CA that we trust.

    It is tried on what is in memory since the start: the member's files may have expired since, or
    be replaced just now, and others are to be shut out all the same.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags = trusting.verify_flags
    context.load_verify_locations(cadata=b"".join(trusting.get_ca_certs(binary_form=True)))
    heed(context, file)
    calling, called = _ends(context, showing)
    try:
        for _ in range(HANDSHAKE_TURNS):
            if _advance(calling):  # it has seen the certificate, and that is all we want
                return False
            _advance(called)
    except ssl.SSLCertVerificationError as error:
        if error.verify_code in _AFTER_THE_LIST:
            return error.verify_code == REVOKED
        raise UsageError(_flaw_of_list(file, error, "the CA of this member")) from None
    raise AssertionError("a handshake in memory that does not end")


def _ends(client: ssl.SSLContext, server: ssl.SSLContext) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Of a connection in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    calling = client.wrap_bio(to_client, to_server)
    return calling, server.wrap_bio(to_server, to_client, server_side=True)


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
    if error.verify_code == REVOKED:
        return f"{files.certificate} has been revoked: make a new one with 'ordercast keys'"
    if error.verify_code in _USELESS_LIST:
        return _flaw_of_list(list_beside(files.ca), error, f"the CA in {files.ca}")
    if error.verify_code in OTHER_ISSUER:
        return f"{files.certificate} was not issued by the CA in {files.ca}: take both of one group"
    return f"{files.certificate} cannot be used: {error.verify_message}"


def _flaw_of_list(file: Path, error: ssl.SSLCertVerificationError, ca: str) -> str:
    if error.verify_code == _LIST_LAPSED:
        return f"{file} is not valid any more: make a new list"
    if error.verify_code == _LIST_NOT_YET_VALID:
        return f"{file} is not valid yet: is the clock of this machine right?"
    if error.verify_code in _USELESS_LIST:
        return f"{file} is not a list that {ca} has signed"
    return f"{file} cannot be used: {error.verify_message}"
