"""Making the list of certificates that are not believed any more. Needs `cryptography`."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization

from ordercast.errors import UsageError
from ordercast.runtime.certificates import CLOCKS_DIFFER, Authority, the_authority, write_new
from ordercast.runtime.keys import KeyFiles, Revoked, check_name
from ordercast.runtime.revoked import list_beside

__all__ = ["revoke"]


def revoke(directory: Path, group: str, names: tuple[str, ...], *, now: datetime) -> Revoked:
    """See `keys.revoke_members`."""
    authority = the_authority(directory, group)
    certificates = {name: _certificate(directory, name, authority) for name in names}
    file = list_beside(directory / "ca.pem")
    before = _read(file, authority) if file.exists() else None
    serials = {entry.serial_number: entry for entry in before or ()}
    for certificate in certificates.values():
        serials.setdefault(certificate.serial_number, _entry(certificate, now))
    made = _sign(authority, list(serials.values()), before, now=now)
    new = file.with_suffix(".new")
    new.unlink(missing_ok=True)
    write_new(new, made.public_bytes(serialization.Encoding.PEM), 0o644)
    os.replace(new, file)  # a member that looks just now sees the old list or the new one
    return Revoked(directory=directory, group=group, members=names, file=file, total=len(serials))


def _certificate(directory: Path, name: str, authority: Authority) -> x509.Certificate:
    file = KeyFiles.of(directory, check_name(name)).certificate
    try:
        certificate = x509.load_pem_x509_certificate(file.read_bytes())
        certificate.verify_directly_issued_by(authority.certificate)
    except FileNotFoundError:
        raise UsageError(
            f"there is no file {file}: put the certificate there that is to be revoked"
        ) from None
    except (ValueError, TypeError, InvalidSignature):
        raise UsageError(f"{file} is no certificate that the CA beside it has issued") from None
    return certificate


def _read(file: Path, authority: Authority) -> x509.CertificateRevocationList:
    try:
        found = x509.load_pem_x509_crl(file.read_bytes())
    except ValueError:
        raise UsageError(
            f"{file} is no list of revoked certificates: put the last one there again; or move it "
            "away, and revoke all that were on it anew"
        ) from None
    if not found.is_signature_valid(authority.key.public_key()):
        raise UsageError(f"{file} was not signed by the CA beside it: move it away first")
    return found


def _entry(certificate: x509.Certificate, now: datetime) -> x509.RevokedCertificate:
    entry = x509.RevokedCertificateBuilder().serial_number(certificate.serial_number)
    return entry.revocation_date(now).build()


def _sign(
    authority: Authority,
    entries: list[x509.RevokedCertificate],
    before: x509.CertificateRevocationList | None,
    *,
    now: datetime,
) -> x509.CertificateRevocationList:
    """It holds as long as the CA does, since a list that lapses would shut everyone out; and it is
    later than the one before, by which OpenSSL tells the newer one."""
    since, number = now - CLOCKS_DIFFER, 1
    if before is not None:
        since = max(since, before.last_update_utc + timedelta(seconds=1))
        number = before.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number + 1
    issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(authority.certificate.subject)
        .last_update(since)
        .next_update(authority.certificate.not_valid_after_utc)
        .add_extension(issuer_key, critical=False)
        .add_extension(x509.CRLNumber(number), critical=False)
    )
    for entry in entries:
        builder = builder.add_revoked_certificate(entry)
    return builder.sign(authority.key, hashes.SHA256())
