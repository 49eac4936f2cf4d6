"""A story: processes, a network between them, and what befalls them, in a time of its own."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Collection, Coroutine
from typing import Any, ParamSpec, TypeVar, cast

from ordercast.errors import UsageError
from ordercast.testing.loop import PROCESS, VirtualLoop
from ordercast.testing.network import Network
from ordercast.testing.process import Process

__all__ = ["World", "run"]

P = ParamSpec("P")
T = TypeVar("T")


class World:
    """What `run` hands to the story."""

    def __init__(self, loop: VirtualLoop, network: Network, dice: random.Random) -> None:
        self.loop = loop
        self.random = dice
        """For whatever the story leaves to chance: it follows from the seed."""
        self._network = network
        self._processes: list[Process] = []
        self.failure: BaseException | None = None
        """What nobody else would get to know."""
        self._story: asyncio.Task[Any] | None = None
        self._over: list[asyncio.Task[Any]] = []

    @property
    def now(self) -> float:
        """Seconds since the story began; what `asyncio` goes by, too."""
        return self.loop.time()

    def start(
        self, name: str, program: Callable[P, Coroutine[Any, Any, Any]], /,
        *args: P.args, **options: P.kwargs,
    ) -> Process:  # fmt: skip
        """A process that runs `program(*args)`; one that has ended may be started again. Its name
        is how `cut` knows it. If it fails, and nobody awaits it, the story fails."""
        if PROCESS.get() is not None:
            raise UsageError("a process cannot start another: the story does that")
        if any(other.name == name and other.running for other in self._processes):
            raise UsageError(f"{name!r} is running already: choose another name, or end it first")
        process = Process(self, name, program(*args, **options))
        self._processes.append(process)
        return process

    def cut(self, *sides: Collection[str]) -> None:
        """Nothing passes from one of these sides to another until `heal`: `cut("a", ["b", "c"])`,
        or `cut("a", "bc")` for names of one letter. What is under way waits."""
        if len(sides) < 2:
            raise UsageError('a cut has two sides or more, such as cut("a", ["b", "c"])')
        known = {process.name for process in self._processes}
        sides = tuple([side] if isinstance(side, str) and side in known else side for side in sides)
        for side in sides:
            if missing := [name for name in side if name not in known]:
                name = side if isinstance(side, str) else missing[0]
                raise UsageError(
                    f"there is no process {name!r} to cut off: there are {', '.join(sorted(known))}"
                    if known
                    else f"there is no process {name!r} to cut off, nor any other yet"
                )
        self._network.cut(*sides)

    def heal(self) -> None:
        self._network.heal()

    def slow_down(self, delay_s: tuple[float, float], loss: float = 0.0) -> None:
        """From now on, whatever is sent takes so long, and such a share of it longer."""
        _check(delay_s, loss)
        self._network.delay_s, self._network.loss = delay_s, loss

    # What `run` and the processes call.

    def fail(self, error: BaseException) -> None:
        """Something went wrong that nobody waits for: it ends the story."""
        if self.failure is None:
            self.failure = error
            if self._story is not None:
                self._story.cancel()

    def look_at_last(self, task: asyncio.Task[Any]) -> None:
        """This one is over. Has anyone asked how it ended, when the story does?"""
        if _unseen(task):
            self._over.append(task)

    async def play(self, story: Callable[[World], Awaitable[T]]) -> T:
        self._story = asyncio.current_task()
        try:
            return await story(self)
        except asyncio.CancelledError:
            if self.failure is not None:
                raise self.failure from None
            raise
        finally:
            self._story = None

    async def close(self) -> None:
        self._network.heal()
        for process in self._processes:
            try:
                await process.stop()
            except Exception as error:
                self.fail(error)
        for task in filter(_unseen, self._over):
            self.fail(cast(BaseException, task.exception()))
        failure = self.failure
        for process in self._processes:
            await process.bury()
        self.failure = failure


def run(
    story: Callable[[World], Awaitable[T]],
    *,
    seed: int = 0,
    delay_s: tuple[float, float] = (0.0002, 0.002),
    loss: float = 0.0,
    limit_s: float = 3600.0,
) -> T:
    """Play a story to its end: what it returns, or raises. The same seed plays it the same way.

    story     a coroutine function that gets the `World`, and starts processes in it
    delay_s   how long it takes from one process to another: from the first to the second
    loss      the share of what is sent that arrives only after TCP has sent it again
    limit_s   of the story's own time, after which it has failed
    """
    _check(delay_s, loss)
    _check_here(limit_s)
    network = Network(random.Random(f"{seed}/network"), delay_s, loss)
    loop = network.loop = VirtualLoop(network, limit_s=limit_s)
    world = World(loop, network, random.Random(f"{seed}/story"))
    loop.set_exception_handler(lambda _, context: _blame(world, context))
    try:
        found = loop.run_until_complete(world.play(story))
        loop.run_until_complete(world.close())
        if world.failure is not None:
            raise world.failure
        return found
    except BaseException as error:
        error.add_note(f"seed {seed}, {loop.time():.6f} s after the beginning")
        raise
    finally:
        _clear(world)
        loop.close()


def _check(delay_s: tuple[float, float], loss: float) -> None:
    if not isinstance(delay_s, tuple | list) or len(delay_s) != 2:
        raise UsageError(f"a delay of {delay_s!r}: give the least and the most, as (0.001, 0.01)")
    if not 0 <= delay_s[0] <= delay_s[1]:
        raise UsageError(
            f"a delay from {delay_s[0]} s to {delay_s[1]} s: choose 0 or more, in order"
        )
    if not 0 <= loss < 1:
        raise UsageError(f"a loss of {loss}: choose from 0 to less than 1")


def _check_here(limit_s: float) -> None:
    if not limit_s > 0:
        raise UsageError(f"a limit of {limit_s} s: choose more than 0")
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise UsageError("a story has a loop of its own: call run() from a plain function, not here")


def _blame(world: World, context: dict[str, Any]) -> None:
    """What asyncio would have logged. Nothing that goes wrong in a story is passed over."""
    error = context.get("exception")
    # Python 3.11 takes a server's connection that was cancelled for one that went wrong.
    if error is not None and not isinstance(error, asyncio.CancelledError):
        error.add_note(str(context.get("message")))
        world.fail(error)


def _unseen(task: asyncio.Task[Any]) -> bool:
    """Whether it has failed, and nobody has got to know."""
    return bool(getattr(task, "_log_traceback", False))


def _clear(world: World) -> None:
    """As at the end of `asyncio.run`, whatever state it is in."""
    loop = world.loop
    for rest in (world.close, _cancel_all, loop.shutdown_asyncgens):
        with contextlib.suppress(Exception):
            loop.run_until_complete(rest())


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
