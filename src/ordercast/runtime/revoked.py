"""Certificates that are not believed any more: the list of them, as a member heeds it.

The list is a CRL (RFC 5280) that the group's CA has signed, in a file beside `ca.pem`. OpenSSL
looks at it in every handshake. A new list comes to a host as any file does, so a running member
looks whether there is one; `ordercast keys --revoke` makes it.
"""

from __future__ import annotations

import logging
import ssl
from pathlib import Path
from typing import TYPE_CHECKING

from ordercast.errors import UsageError
from ordercast.runtime.logs import about

if TYPE_CHECKING:
    from ordercast.runtime.keys import Credentials

__all__ = ["RevokedList", "heed", "list_beside"]

logger = logging.getLogger(__name__)


def list_beside(ca: Path) -> Path:
    return ca.with_name("revoked.pem")


def heed(context: ssl.SSLContext, file: Path) -> None:
    """From now on, handshakes fail with whoever is on the list. Of several, the newest counts."""
    try:
        context.load_verify_locations(file)
    except ssl.SSLError as error:
        raise UsageError(f"{file} is no list of revoked certificates: {error.reason}") from None
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


class RevokedList:
    """The list of a running member, which began with what was there when it was started."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._file = list_beside(credentials.files.ca)
        self._seen = self._look()
        self._told: object = None
        """Which list was refused last, and why."""

    def renewed(self) -> bool:
        """Whether there is another list than before; if so, it is heeded. One that is of no use is
        told in the log, once, and tried again at every look: it may be half written, or not valid
        yet. What was heeded before still is."""
        now = self._look()
        if now is None or now == self._seen:
            return False
        me = self._credentials.me
        try:
            is_revoked = self._credentials.heed_new_list()
        except UsageError as error:
            self._refuse(now, str(error))
            return False
        self._seen = now
        logger.info(
            "%s: heeds the new %s",
            me,
            self._file,
            extra=about("list_renewed", me, group=self._credentials.group),
        )
        if is_revoked:
            text = (
                "%s: the certificate it was started with is on the new %s: the others shut it out"
            )
            logger.warning(
                text, me, self._file, extra=about("revoked", me, group=self._credentials.group)
            )
        return True

    def _refuse(self, found: tuple[int, int, int], why: str) -> None:
        if self._told == (found, why):
            return
        self._told = found, why
        me = self._credentials.me
        text = "%s: the new list of revoked certificates is not heeded: %s"
        logger.warning(
            text, me, why, extra=about("list_refused", me, group=self._credentials.group)
        )

    def _look(self) -> tuple[int, int, int] | None:
        try:
            found = self._file.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
