"""Commands that were given here and are not carried out yet, in the order they were given."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from ordercast.errors import OutcomeUnknownError
from ordercast.replica.commands import Command, encode

__all__ = ["Pending"]


class Pending:
    def __init__(self, session: str) -> None:
        self.session = session
        self._given = 0
        self._open: dict[int, tuple[bytes, asyncio.Future[Any]]] = {}
        self._unsent: deque[bytes] = deque()
        self._news = asyncio.Event()

    def __len__(self) -> int:
        return len(self._open)

    def give(self, body: bytes) -> asyncio.Future[Any]:
        """What comes of it when it is carried out here."""
        self._given += 1
        payload = encode(Command(self.session, self._given, body))
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._open[self._given] = payload, future
        self._unsent.append(payload)
        self._news.set()
        return future

    async def unsent(self) -> list[bytes]:
        """Those that have to be sent in this generation, once there are any."""
        while not self._unsent:
            self._news.clear()
            await self._news.wait()
        payloads = list(self._unsent)
        self._unsent.clear()
        return payloads

    def settle(self, number: int, result: Any, error: Exception | None) -> None:
        """Carried out here, with this outcome."""
        _, future = self._open.pop(number)
        if future.done():  # whoever gave it has been cancelled
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def start_anew(self, applied: tuple[str, int] | None) -> None:
        """In another generation: whatever is not carried out by now has to be sent there."""
        if applied is not None and applied[0] == self.session:
            for number in [number for number in self._open if number <= applied[1]]:
                self.settle(number, None, OutcomeUnknownError(_UNKNOWN))
        self._unsent = deque(payload for payload, _ in self._open.values())
        if self._unsent:
            self._news.set()

    def fail(self, error: BaseException) -> None:
        """Nothing will be carried out here any more."""
        for _, future in self._open.values():
            if not future.done():
                future.set_exception(error)
        self._open.clear()
        self._unsent.clear()


_UNKNOWN = (
    "the command was carried out while this replica was cut off from the others, and what came of "
    "it is not known here: look at the state"
)
