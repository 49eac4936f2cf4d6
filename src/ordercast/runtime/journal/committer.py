"""Group commit: one thread writes and syncs; what arrives meanwhile shares the next sync.

There is never more than one batch in the file that is not on the disk yet, so that after a power
loss only the last one can be torn.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Committer"]

GROUP_BYTES = 8 << 20
"""No more commits join a batch that is as large as this."""


@dataclass(frozen=True, slots=True)
class _Commit:
    parts: list[bytes]
    bytes: int
    then: Callable[[], None]
    loop: asyncio.AbstractEventLoop


class Committer:
    """Calls `write` (a batch, to the disk) and whatever else it is given, in order, in a thread.

    After an error nothing is written any more, and no commit is confirmed; `failed` is told, in
    that thread.
    """

    def __init__(
        self, write: Callable[[list[bytes]], None], failed: Callable[[Exception], None]
    ) -> None:
        self._write = write
        self._failed = failed
        self._work: deque[_Commit | Callable[[], None]] = deque()
        self._ready = threading.Condition()
        self._closing = self._over = False
        self._last: Callable[[], None] | None = None
        """What the thread does at its end."""
        self._thread = threading.Thread(target=self._run, name="ordercast-journal", daemon=True)
        self._thread.start()

    def commit(self, parts: list[bytes], size: int, then: Callable[[], None]) -> None:
        self._put(_Commit(parts, size, then, asyncio.get_running_loop()))

    def call(self, step: Callable[[], None]) -> None:
        """After all commits so far, and before those to come."""
        self._put(step)

    def close(self) -> None:
        """Returns when everything is on the disk, or has failed."""
        self._end_with(None)
        self._thread.join()

    async def closed(self, then: Callable[[], None]) -> None:
        """As `close`, while the loop turns. The thread does `then` at its end, and does it even if
        nobody waits for that any more."""
        loop = asyncio.get_running_loop()
        over = loop.create_future()

        def tell() -> None:
            if not over.done():
                over.set_result(None)

        def last() -> None:
            try:
                then()
            except Exception as error:
                self._failed(error)
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(tell)

        if not self._end_with(last):
            last()
        await over

    def _end_with(self, last: Callable[[], None] | None) -> bool:
        """When all that there is has been done. Says whether the thread will do it."""
        with self._ready:
            self._closing, self._last = True, last
            self._ready.notify()
            return not self._over

    def _put(self, item: _Commit | Callable[[], None]) -> None:
        with self._ready:
            self._work.append(item)
            self._ready.notify()

    def _run(self) -> None:
        try:
            while (work := self._take()) is not None:
                if callable(work):
                    work()
                else:
                    parts = [part for commit in work for part in commit.parts]
                    if parts:
                        self._write(parts)
                    _confirm(work)
        except Exception as error:
            self._failed(error)
        with self._ready:
            self._over, last = True, self._last
        if last is not None:
            last()

    def _take(self) -> list[_Commit] | Callable[[], None] | None:
        """All commits that may share a sync, or the step that comes next; None at the end."""
        with self._ready:
            while not self._work:
                if self._closing:
                    return None
                self._ready.wait()
            commits: list[_Commit] = []
            size = 0
            while self._work and size < GROUP_BYTES:
                first = self._work[0]
                if not isinstance(first, _Commit):
                    if commits:
                        break
                    self._work.popleft()
                    return first
                self._work.popleft()
                commits.append(first)
                size += first.bytes
            return commits


def _confirm(commits: list[_Commit]) -> None:
    """On the loops that they came from, in their order."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Callable[[], None]]] = {}
    for commit in commits:
        by_loop.setdefault(commit.loop, []).append(commit.then)
    for loop, callbacks in by_loop.items():
        try:
            loop.call_soon_threadsafe(_call_all, loop, callbacks)
        except RuntimeError:  # the loop is closed, and nobody waits any more
            continue


def _call_all(loop: asyncio.AbstractEventLoop, callbacks: list[Callable[[], None]]) -> None:
    for callback in callbacks:
        try:
            callback()
        except Exception as error:  # as the loop itself does: the others are called all the same
            loop.call_exception_handler(
                {"message": "a callback of the journal failed", "exception": error}
            )
