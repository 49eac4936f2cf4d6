"""A process of a story: whatever its program starts, ends with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from ordercast.testing.loop import PROCESS

if TYPE_CHECKING:
    from ordercast.testing.network import Server
    from ordercast.testing.transport import Transport
    from ordercast.testing.world import World

__all__ = ["Process"]


class Process:
    """Made by `World.start`. Awaiting it gives what its program returns, or raises what that
    raises; None if it was killed."""

    def __init__(self, world: World, name: str, program: Coroutine[Any, Any, Any]) -> None:
        self.name = name
        self.wills: list[Callable[[], None]] = []
        """What has to be done for it once it is killed, since the real process lives on."""
        self.transports: list[Transport] = []
        self.servers: dict[Server, None] = {}
        self._world = world
        self._loop = world.loop
        self._killed = self._buried = self._paused = False
        self._backlog: list[Any] = []
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._end: asyncio.Future[Any] = self._loop.create_future()
        self._awaited = False
        context = copy_context()
        context.run(PROCESS.set, self)
        self.context = context
        self._main = self._loop.create_task(program, name=name, context=context)
        self._main.add_done_callback(self._ended, context=copy_context())

    def __repr__(self) -> str:
        return f"<Process {self.name}: {self.state}>"

    @property
    def state(self) -> str:
        if self._killed:
            return "killed"
        return "ended" if self._end.done() else "paused" if self._paused else "running"

    @property
    def running(self) -> bool:
        """Has it neither ended nor been killed?"""
        return not self._end.done()

    def __await__(self) -> Generator[Any, None, Any]:
        self._awaited = True
        return asyncio.shield(self._end).__await__()

    def kill(self, *, silently: bool = False) -> None:
        """As `kill -9`: not one more step, not even a `finally`. The others see its connections
        break; `silently`, as after a power loss, they hear nothing at all."""
        if not self.running:
            return
        self._killed = True
        self._close_all(silently=silently)
        for forget in self.wills:
            forget()
        self._end.set_result(None)

    def pause(self) -> None:
        """As SIGSTOP: its time stands still, and whatever comes waits for it."""
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        backlog, self._backlog = self._backlog, []
        # Before whatever has come meanwhile, and was not yet seen to stand still.
        self._loop._ready.extendleft(reversed(backlog))

    async def stop(self) -> None:
        """Cancel its program, and wait for the end; raises what that raises instead."""
        if self.running:
            self.resume()
            self._main.cancel()
            self._awaited = True
            await asyncio.wait((self._end,))
            if not self._end.cancelled():
                self._end.result()

    # What the loop and the world call.

    def lets_run(self, handle: Any) -> bool:
        stands_still = not self._buried if self._killed else self._paused
        if stands_still:
            self._backlog.append(handle)
        return not stands_still

    def keep(self, task: asyncio.Task[Any]) -> None:
        """Or it would be collected once nobody can wake it, and its `finally` would run then."""
        self._tasks[task] = None
        task.add_done_callback(self._let_go)

    async def bury(self) -> None:
        """After the story: what a killed process left behind is cleared away, unseen."""
        self._buried = True
        for task in list(self._tasks):
            task.cancel()
        # A task that was about to run is cancelled when it does.
        steps = [handle for handle in self._backlog if isinstance(_owner(handle), asyncio.Task)]
        self._loop._ready.extend(steps)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _let_go(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and not self._buried:
            self._world.look_at_last(task)

    def _ended(self, main: asyncio.Task[Any]) -> None:
        """Its other tasks are cancelled, as at the end of `asyncio.run`."""
        others = [task for task in self._tasks if task is not main]
        for task in others:
            task.cancel()
        waiting = asyncio.gather(*others, return_exceptions=True)
        waiting.add_done_callback(lambda _: self._finish(main))

    def _finish(self, main: asyncio.Task[Any]) -> None:
        if self._end.done():
            return
        self._close_all(silently=False)
        if main.cancelled():
            self._end.cancel()
        elif (error := main.exception()) is None:
            self._end.set_result(main.result())
        else:
            error.add_note(f"in the process {self.name}")
            self._end.set_exception(error)
            self._end.exception()  # whoever awaits it gets it; if nobody does, the world does
            if not self._awaited:
                self._world.fail(error)

    def _close_all(self, *, silently: bool) -> None:
        """What the system does with the sockets of a process that is no more."""
        for server in self.servers:
            server.vanish()
        for transport in list(self.transports):
            transport.vanish(silently=silently)


def _owner(handle: Any) -> object:
    return getattr(handle._callback, "__self__", None)
