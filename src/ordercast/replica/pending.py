"""Commands that were given here and are not carried out yet, in the order they were given."""

from __future__ import annotations

import asyncio
from collections import deque
from itertools import islice
from typing import Any

from ordercast.errors import OutcomeUnknownError
from ordercast.replica.commands import packed

__all__ = ["Pending"]

_UNKNOWN = (
    "the command was carried out while this replica was cut off from the others, and what came of "
    "it is not known here: look at the state"
)


class Pending:
    def __init__(self, session: str) -> None:
        self.session = session
        self._loop = asyncio.get_running_loop()
        self._open: deque[tuple[bytes | None, asyncio.Future[Any]]] = deque()
        self._first = 1
        """The number of the first of them."""
        self._sent = 0
        """So many of them have been sent in this generation."""
        self.decided = False
        """Whether this generation has ended for everyone: in it, none of them is carried out."""
        self._news = asyncio.Event()

    def __len__(self) -> int:
        return len(self._open)

    def give(self, body: bytes | None) -> asyncio.Future[Any]:
        """What comes of it when it is carried out here."""
        future = self._loop.create_future()
        self._open.append((body, future))
        self._news.set()
        return future

    async def unsent(self) -> list[bytes]:
        """What has to be sent in this generation, once there is anything."""
        while self._sent == len(self._open):
            self._news.clear()
            await self._news.wait()
        bodies = [body for body, _ in islice(self._open, self._sent, None)]
        payloads = packed(self.session, self._first + self._sent, bodies)
        self._sent = len(self._open)
        return payloads

    def settle(self, result: Any, error: Exception | None = None) -> None:
        """The first one has been carried out here, with this outcome."""
        _, future = self._open.popleft()
        self._first += 1
        self._sent = max(self._sent - 1, 0)
        if future.done():  # whoever gave it has been cancelled
            return
        if error is None:
            future.set_result(result)
        else:
            _refuse(future, error)

    def start_anew(self, applied: tuple[str, int] | None) -> None:
        """In another generation: whatever is not carried out by now has to be sent there."""
        if applied is not None and applied[0] == self.session:
            while self._first <= applied[1]:
                does_nothing = self._open[0][0] is None
                self.settle(None, None if does_nothing else OutcomeUnknownError(_UNKNOWN))
        self._sent, self.decided = 0, False
        self._news.set()

    def fail(self, error: BaseException) -> None:
        """Nothing will be carried out here any more. Elsewhere it may be, if it was sent."""
        doubt = OutcomeUnknownError(f"{error} (the command was sent: the others may carry it out)")
        doubt.__cause__ = error
        doubtful = 0 if self.decided else self._sent
        for place, (body, future) in enumerate(self._open):
            if not future.done():
                _refuse(future, error if body is None or place >= doubtful else doubt)
        self._open.clear()
        self._sent = 0


def _refuse(future: asyncio.Future[Any], error: BaseException) -> None:
    future.set_exception(error)
    future.exception()  # whoever does not wait for it does not want to know
