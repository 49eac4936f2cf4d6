"""TLS handshakes that failed: counted by reason, and told in the log, but not one by one.

asyncio drops such a connection before its protocol hears of it. What does hear of it is the object
that speaks TLS, and a context lets us say of which class that is (`SSLContext.sslobject_class`).
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Callable
from typing import ClassVar, Literal, get_args

from ordercast.runtime.contexts import EXPIRED, NOT_YET_VALID, OTHER_ISSUER, REVOKED
from ordercast.runtime.logs import about
from ordercast.runtime.sparing import Sparing

__all__ = ["REASONS", "Handshakes", "Reason", "reason_of"]

Reason = Literal[
    "expired",
    "revoked",
    "not_yet_valid",
    "other_authority",
    "bad_certificate",
    "no_certificate",
    "not_tls",
    "old_tls",
    "refused_by_peer",
    "unfinished",
    "other",
]
REASONS: tuple[Reason, ...] = get_args(Reason)

_BY_CODE: dict[int, Reason] = {
    EXPIRED: "expired",
    REVOKED: "revoked",
    NOT_YET_VALID: "not_yet_valid",
    **dict.fromkeys(OTHER_ISSUER, "other_authority"),
}
# As OpenSSL 3 names them.
_BY_NAME: dict[str, Reason] = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "no_certificate",
    "UNSUPPORTED_PROTOCOL": "old_tls",
    "HTTP_REQUEST": "not_tls",
    "HTTPS_PROXY_REQUEST": "not_tls",
    "WRONG_VERSION_NUMBER": "not_tls",
    "UNEXPECTED_MESSAGE": "not_tls",
    "RECORD_LAYER_FAILURE": "not_tls",
    "PACKET_LENGTH_TOO_LONG": "not_tls",
    "BAD_PACKET_LENGTH": "not_tls",
    "UNKNOWN_PROTOCOL": "not_tls",
}

logger = logging.getLogger(__name__)


def reason_of(error: ssl.SSLError) -> Reason:
    if isinstance(error, ssl.SSLCertVerificationError):
        return _BY_CODE.get(error.verify_code, "bad_certificate")
    name = _name_of(error)
    return "refused_by_peer" if "ALERT" in name else _BY_NAME.get(name, "other")


def _name_of(error: ssl.SSLError) -> str:
    """OpenSSL's; what was raised by Python has none."""
    return getattr(error, "reason", None) or ""


class Handshakes:
    """Those of one member, with whoever came to its door and with whom it went to see."""

    def __init__(
        self, group: str, name: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.failed: dict[Reason, int] = dict.fromkeys(REASONS, 0)
        self._group = group
        self._name = name
        self._sparing = Sparing(clock=clock)
        self.last: str | None = None
        """Why the last one that failed did."""

    def watch(self, context: ssl.SSLContext, *, timeout_s: float) -> None:
        """Notice what fails with this context. After `timeout_s` the server gives up."""

        class Watched(_Watched):
            watcher = self
            patience_s = timeout_s

        context.sslobject_class = Watched

    def fail(self, error: ssl.SSLError, peer: str | None = None) -> None:
        self._count(reason_of(error), _name_of(error) or str(error), peer)

    def give_up(self) -> None:
        self._count("unfinished", "it hung up, or was silent for too long", None)

    def _count(self, reason: Reason, text: str, peer: str | None) -> None:
        self.failed[reason] += 1
        self.last = f"{reason.replace('_', ' ')} ({text})"
        more = self._sparing.end_of_line(reason)
        if more is None:
            return
        logger.warning(
            "%s: no secure connection with %s: %s (%s%s)",
            *(self._name, peer or "a stranger", reason.replace("_", " "), text, more),
            extra=about("handshake_failed", self._name, peer, group=self._group),
        )


class _Watched(ssl.SSLObject):
    watcher: ClassVar[Handshakes]
    patience_s: ClassVar[float]
    _patience: asyncio.TimerHandle | None = None

    def do_handshake(self) -> None:
        """Called again whenever more has come, until it ends. If nothing comes any more it is not,
        and whoever is behind may be gone: hence a timer, which keeps nothing of this alive."""
        if self._patience is None:
            loop = asyncio.get_running_loop()
            self._patience = loop.call_later(self.patience_s, self.watcher.give_up)
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            self._patience.cancel()
            self.watcher.fail(error)
            raise
        self._patience.cancel()
