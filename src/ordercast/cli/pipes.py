"""stdin and stdout of a member that must not stop for either: its heart has to go on beating."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TypeVar

from ordercast.errors import OrdercastError, UsageError
from ordercast.runtime.frames import PAYLOAD_BYTES_MAX

__all__ = ["lines", "sendable", "write"]

READ_BYTES = 2**18
_LINE_BYTES_MAX = PAYLOAD_BYTES_MAX + READ_BYTES
"""Of a line that is longer, the rest is not kept: how long it was is not known then."""

Result = TypeVar("Result")


async def lines() -> AsyncIterator[bytes]:
    """Of stdin, which may be a pipe, a file, a terminal or nothing at all."""
    if sys.stdin is None:  # closed: what has the number 0 now is something else
        return
    rest = b""
    while data := await _apart(partial(os.read, 0, READ_BYTES)):
        *whole, rest = (rest + data).split(b"\n") if b"\n" in data else [rest + data]
        for line in whole:
            yield line
        rest = rest[:_LINE_BYTES_MAX]  # `sendable` says that it is too long
    if rest:
        yield rest


def sendable(payload: bytes) -> bytes:
    """What a line says, if it is not too long; its size is not told, since it may be cut."""
    if len(payload) > PAYLOAD_BYTES_MAX:
        raise UsageError(
            f"a message of more than {PAYLOAD_BYTES_MAX} bytes, which is the limit: split it"
        )
    return payload


async def write(data: bytes) -> None:
    """To stdout; returns when whoever reads it has taken it."""
    await _apart(partial(_write, data))


def _apart(work: Callable[[], Result]) -> asyncio.Future[Result]:
    """In a thread that nobody waits for: what reads stdin or writes stdout may never come back."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Result] = loop.create_future()

    def settle(result: Result | None, error: Exception | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, flaw = None, None
        try:
            result = work()
        except Exception as error:
            flaw = error
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, result, flaw)

    threading.Thread(target=run, daemon=True).start()
    return done


def _write(data: bytes) -> None:
    try:
        while data:
            data = data[os.write(1, data) :]
    except BrokenPipeError:  # the reader has seen enough
        raise
    except OSError as error:
        raise OrdercastError(f"stdout cannot be written: {error.strerror}") from error
