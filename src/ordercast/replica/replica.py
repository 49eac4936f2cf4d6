"""What a program holds in its hands: the state that is the same on every member."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from ordercast.errors import RemovedError, UsageError
from ordercast.replica.commands import COMMAND_BYTES_MAX
from ordercast.replica.life import Life
from ordercast.replica.rolls import Change
from ordercast.runtime.group import Group
from ordercast.runtime.status import Status
from ordercast.runtime.view import View

__all__ = ["Replica"]


class Replica:
    """Made by `ordercast.replicate`. Any task may give commands."""

    def __init__(self, life: Life) -> None:
        self.me = life.me
        self.loop = life.loop
        """Where it lives: nothing of it may be called from another thread."""
        self._life = life

    def __repr__(self) -> str:
        return f"<Replica {self.me} of {', '.join(self.members)}, generation {self.generation}>"

    def do(self, command: bytes) -> asyncio.Future[Any]:
        """Have a command carried out on every replica; await what it led to. It is on its way,
        whether anybody waits or not; commands that are given in a row are carried out in a row."""
        if not isinstance(command, bytes | bytearray | memoryview):
            raise UsageError(f"a command of type {type(command).__name__}: give bytes")
        if len(command) > COMMAND_BYTES_MAX:
            size = len(command)
            raise UsageError(f"a command of {size} bytes: {COMMAND_BYTES_MAX} is the limit")
        self._check()
        return self._life.pending.give(bytes(command))

    async def sync(self) -> None:
        """Whatever anyone has seen done by now is done here: read the state then."""
        self._check()
        await self._life.pending.give(None)

    async def remove(self, *names: str) -> None:
        """These are not members any more, and may not come back with what they know."""
        self._check()
        lives = await self._life.all_lives()
        for name in names:
            if name not in lives:
                raise UsageError(f"{name!r} is no member: there are {', '.join(lives)}")
        if len(set(names)) == len(lives):
            raise UsageError("somebody has to stay: the last one just closes")
        await self._life.propose(Change({}, {name: lives[name] for name in names}, True))

    async def leave(self) -> None:
        """Be no member any more. Whoever only closes keeps its seat, and is waited for."""
        self._check()
        self._life.leaving = True
        try:
            with contextlib.suppress(RemovedError):
                await self.remove(self.me)
        except UsageError:  # it cannot, and stays
            self._life.leaving = False
            raise

    @property
    def members(self) -> tuple[str, ...]:
        return self._life.members

    @property
    def generation(self) -> int:
        """How often the members have changed, from 1."""
        return self._life.generation

    @property
    def view(self) -> View:
        """Who the members are, and how they look from here."""
        return self._group.view

    def status(self) -> Status:
        """Everything that is counted here; it begins anew with each generation."""
        return self._group.status()

    async def ended(self) -> None:
        """Wait until this replica cannot go on, or was removed, and raise why; returns if it was
        closed, or has left."""
        await self._life.ended.wait()
        if self._life.failure is not None and not self._life.closed:
            raise self._life.failure

    def _check(self) -> None:
        """Raise if nothing can be asked of it, or not from here."""
        try:
            here = asyncio.get_running_loop() is self.loop
        except RuntimeError:  # none runs in this thread
            here = False
        if not here:
            raise UsageError(
                "this replica belongs to another event loop: from another thread, hand a coroutine "
                "that awaits it to asyncio.run_coroutine_threadsafe(…, replica.loop)"
            )
        self._life.check()

    @property
    def _group(self) -> Group:
        """Of this generation, or of the last one."""
        assert self._life.group is not None, "a replica is handed out once it has members"
        return self._life.group
