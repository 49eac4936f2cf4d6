"""Making the certificates of a group: the one module that needs the package `cryptography`.

Keys are on the curve P-256: with it a handshake costs what it costs with Ed25519, and every TLS
library, hardware key store and FIPS build knows it.
"""

from __future__ import annotations

import os
import secrets
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ordercast.errors import UsageError
from ordercast.runtime.keys import KeyFiles, Made, check_name, identity

__all__ = ["CLOCKS_DIFFER", "Authority", "make", "the_authority", "write_new"]

AUTHORITY_DAYS = 3650
DAYS_MAX = 36_500
CLOCKS_DIFFER = timedelta(hours=1)
"""A certificate is valid on hosts whose clock is this much behind, too."""


class Authority:
    """The CA of one group."""

    def __init__(
        self, group: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey
    ) -> None:
        self.group = group
        self.certificate = certificate
        self.key = key

    @classmethod
    def new(cls, group: str, *, now: datetime, days: int) -> Authority:
        key = ec.generate_private_key(ec.SECP256R1())
        name = _subject("ordercast group", group)
        usage = _usage(key_cert_sign=True, crl_sign=True)
        certificate = (
            _builder(name, name, key.public_key(), now=now, until=now + timedelta(days=days))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(_uri(f"ordercast://{group}"), critical=False)
            .sign(key, hashes.SHA256())
        )
        return cls(group, certificate, key)

    @classmethod
    def load(cls, certificate_file: Path, key_file: Path) -> Authority:
        try:
            certificate = x509.load_pem_x509_certificate(certificate_file.read_bytes())
            key = serialization.load_pem_private_key(key_file.read_bytes(), password=None)
            names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
            [uri] = names.value.get_values_for_type(x509.UniformResourceIdentifier)
        except (ValueError, TypeError, x509.ExtensionNotFound):  # TypeError: it has a password
            raise UsageError(
                f"{certificate_file} and {key_file} are not the CA of a group as 'ordercast keys' "
                "makes it: give another directory"
            ) from None
        if not isinstance(key, ec.EllipticCurvePrivateKey) or (
            key.public_key() != certificate.public_key()
        ):
            raise UsageError(f"{key_file} is not the key of {certificate_file}")
        return cls(uri.removeprefix("ordercast://"), certificate, key)

    def issue(self, name: str, *, now: datetime, until: datetime) -> tuple[bytes, bytes]:
        """A member's certificate and key, in PEM form."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _subject("ordercast member", name)
        both_ways = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        certificate = (
            _builder(subject, self.certificate.subject, key.public_key(), now=now, until=until)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(digital_signature=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage(both_ways), critical=False)
            .add_extension(issuer_key, critical=False)
            .add_extension(_uri(identity(self.group, name)), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        return _certificate_pem(certificate), _key_pem(key)


def make(directory: Path, group: str, names: tuple[str, ...], *, days: int, now: datetime) -> Made:
    """See `keys.make_group`."""
    _check(directory, group, names, days=days)
    authority, is_new = _authority(directory, group, now=now, days=days)
    until = now + timedelta(days=days)
    ca_until = authority.certificate.not_valid_after_utc
    if until > ca_until + timedelta(seconds=1):
        raise UsageError(
            f"the group's CA expires on {ca_until.date()}, before {days} days are over: "
            "ask for fewer days, or make a new group in another directory"
        )
    contents: list[tuple[Path, bytes, int]] = []
    if is_new:
        contents.append((directory / "ca.key", _key_pem(authority.key), 0o600))
        contents.append((directory / "ca.pem", _certificate_pem(authority.certificate), 0o644))
    for name in names:
        certificate, key = authority.issue(name, now=now, until=until)
        files = KeyFiles.of(directory, name)
        contents.append((files.key, key, 0o600))
        contents.append((files.certificate, certificate, 0o644))
    _make_directory(directory)
    _write_all(contents)
    return Made(
        directory=directory,
        group=group,
        members=names,
        files=tuple(path for path, _, _ in contents),
        new_authority=is_new,
        expires=until,
    )


def _check(directory: Path, group: str, names: tuple[str, ...], *, days: int) -> None:
    check_name(group, "group")
    if not names:
        raise UsageError("name at least one member to make keys for")
    if not 1 <= days <= DAYS_MAX:
        raise UsageError(f"{days} days: choose from 1 to {DAYS_MAX}")
    for name in names:
        check_name(name)
        if name.lower() in ("ca", "revoked"):
            raise UsageError(f"a member cannot be called {name!r}: {name}.pem is the group's own")
        if names.count(name) > 1:
            raise UsageError(f"{name!r} is named twice")
        for file in KeyFiles.of(directory, name)[1:]:
            if file.exists():
                raise UsageError(f"{file} exists and is not overwritten: move it away first")


def _make_directory(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        file = next(path for path in (directory, *directory.parents) if path.exists())
        raise UsageError(
            f"no keys can be written to {directory}: {file} is a file: name a directory"
        ) from None
    except OSError as error:
        raise UsageError(
            f"no keys can be written to {directory}: {error.strerror}: name another directory"
        ) from None


def _authority(directory: Path, group: str, *, now: datetime, days: int) -> tuple[Authority, bool]:
    """The CA that is there, or a new one."""
    certificate, key = directory / "ca.pem", directory / "ca.key"
    if not certificate.exists() and not key.exists():
        return Authority.new(group, now=now, days=max(days, AUTHORITY_DAYS)), True
    return the_authority(directory, group), False


def the_authority(directory: Path, group: str) -> Authority:
    """The CA that is there, and is that of this group."""
    certificate, key = directory / "ca.pem", directory / "ca.key"
    if not certificate.exists() and not key.exists():
        raise UsageError(f"there is no CA in {directory}: give the directory of ca.pem and ca.key")
    for file, other in ((certificate, key), (key, certificate)):
        if not file.exists():
            raise UsageError(f"there is {other} and no {file.name}: put both into {directory}")
    authority = Authority.load(certificate, key)
    if authority.group != group:
        raise UsageError(
            f"{certificate} is the CA of group {authority.group!r}, not of {group!r}: "
            "give each group a directory of its own"
        )
    return authority


def _write_all(contents: list[tuple[Path, bytes, int]]) -> None:
    """All of the files, or none."""
    written: list[Path] = []
    try:
        for path, data, mode in contents:
            write_new(path, data, mode)
            written.append(path)
    except BaseException:
        for path in written:
            path.unlink()
        raise


def write_new(path: Path, data: bytes, mode: int) -> None:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, path)  # a rename would replace what somebody has put there meanwhile
    except FileExistsError:
        raise UsageError(f"{path} exists and is not overwritten: move it away first") from None
    finally:
        temporary.unlink()


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    *,
    now: datetime,
    until: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCKS_DIFFER)
        .not_valid_after(until)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _subject(kind: str, name: str) -> x509.Name:
    """For people; the kind keeps a member apart from a group of the same name."""
    organization = x509.NameAttribute(NameOID.ORGANIZATION_NAME, kind)
    return x509.Name([organization, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _uri(uri: str) -> x509.SubjectAlternativeName:
    return x509.SubjectAlternativeName([x509.UniformResourceIdentifier(uri)])


def _usage(
    *, digital_signature: bool = False, key_cert_sign: bool = False, crl_sign: bool = False
) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        encipher_only=False,
        decipher_only=False,
    )


def _certificate_pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
