"""What an application may send: bytes, and not too many at a time."""

from __future__ import annotations

from collections.abc import Iterable

from ordercast.errors import UsageError
from ordercast.runtime.frames import PAYLOAD_BYTES_MAX

__all__ = ["checked_payload", "checked_payloads"]


def checked_payloads(payloads: Iterable[bytes]) -> tuple[list[bytes], int]:
    """The messages, and their size in all."""
    try:
        iter(payloads)
    except TypeError:
        what = f"{type(payloads).__name__} is no messages"
        raise UsageError(f"{what}: give several of them, as in send_many([b'…', b'…'])") from None
    those = list(payloads)
    # Of all ways to look at the type of many, this is the fastest.
    if list(map(type, those)).count(bytes) != len(those):
        those = [checked_payload(payload) for payload in those]
    size = sum(map(len, those))
    if size > PAYLOAD_BYTES_MAX:
        those = [checked_payload(payload) for payload in those]
    return those, size


def checked_payload(payload: bytes) -> bytes:
    if payload.__class__ is not bytes:
        if not isinstance(payload, (bytes, bytearray, memoryview)):
            raise UsageError(
                f"a message of type {type(payload).__name__}: send bytes, as in text.encode()"
            )
        payload = bytes(payload)
    if len(payload) > PAYLOAD_BYTES_MAX:
        raise UsageError(
            f"a message of {len(payload)} bytes: {PAYLOAD_BYTES_MAX} is the limit, split it"
        )
    return payload
