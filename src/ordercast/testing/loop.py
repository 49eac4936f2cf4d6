"""An event loop whose time is a number: nothing happens between two events, so it leaps there.

Everything runs in one thread, in an order that follows from what was asked for and from the seed
alone. Which process a callback belongs to is in its context, which asyncio hands on by itself.
"""

from __future__ import annotations

import asyncio
import heapq
import socket
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar
from typing import TYPE_CHECKING, Any, NoReturn, Self

from ordercast.errors import UsageError
from ordercast.runtime.surroundings import Surroundings

if TYPE_CHECKING:
    from ordercast.testing.network import Network
    from ordercast.testing.process import Process

__all__ = ["PROCESS", "VirtualLoop", "process_of"]

PROCESS: ContextVar[Process | None] = ContextVar("process", default=None)
"""The process that is running; None: the story itself."""
TURNS_MAX = 100_000
"""Of the loop without a leap: by then, something asks for the next turn for ever."""
EPOCH_US = 1_700_000_000_000_000
"""The time by which events are dated, at the beginning of every story."""


def process_of(context: Context) -> Process | None:
    return context.get(PROCESS)


class _Around(Surroundings):
    threads = False

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._tokens = 0

    def clock_us(self) -> int:
        return EPOCH_US + round(self._loop.time() * 1e6)

    def token(self) -> str:
        self._tokens += 1
        return f"{self._tokens:016x}"

    def on_kill(self, forget: Callable[[], None]) -> None:
        if (process := PROCESS.get()) is not None:
            process.wills.append(forget)


class _Numbered:
    """Sets of these, such as the tasks of a `TaskGroup`, are gone through by their hashes, which by
    default are their places in memory: another order each time."""

    _number: int

    def __new__(cls, *_: Any, number: int, **__: Any) -> Self:
        made = super().__new__(cls)
        made._number = number  # asyncio puts them into sets while they are made
        return made

    def __hash__(self) -> int:
        return self._number


class _Future(_Numbered, asyncio.Future[Any]):
    def __init__(self, *, loop: asyncio.AbstractEventLoop, number: int) -> None:
        super().__init__(loop=loop)


class _Task(_Numbered, asyncio.Task[Any]):
    def __init__(self, coro: Any, *, number: int, **options: Any) -> None:
        super().__init__(coro, **options)


class VirtualLoop(asyncio.BaseEventLoop):
    # What asyncio's own loops inherit and typeshed does not tell.
    _ready: Any
    _scheduled: list[Any]
    _stopping: bool
    _timer_cancelled_count: int

    def __init__(self, network: Network, *, limit_s: float) -> None:
        super().__init__()
        self.surroundings = _Around(self)
        self.network = network
        self._now = 0.0
        self._turns = 0
        self._numbers = 0
        self._limit_s = limit_s

    # Time.

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        """What asyncio does for ever: run what is ready, or see what is next."""
        scheduled = self._scheduled
        while scheduled and scheduled[0].cancelled():
            self._timer_cancelled_count -= 1
            self._pop()
        if self._ready or self._stopping:
            self._turns += 1
            if self._turns > TURNS_MAX:
                self._give_up("time stands still: something asks for the next turn again and again")
        elif not scheduled:
            self._give_up("nothing is left to happen: everyone waits for someone else")
        else:
            self._turns = 0
            self._now = max(self._now, scheduled[0].when())
            if self._now > self._limit_s:
                self._give_up(f"the story has not ended after {self._limit_s:g} s of its time")
        while scheduled and scheduled[0].when() <= self._now:
            self._ready.append(self._pop())
        for _ in range(len(self._ready)):
            handle = self._ready.popleft()
            process = process_of(handle._context)
            if not handle.cancelled() and (process is None or process.lets_run(handle)):
                handle._run()

    def _pop(self) -> Any:
        handle = heapq.heappop(self._scheduled)
        handle._scheduled = False
        return handle

    def _give_up(self, why: str) -> NoReturn:
        self._turns, self._limit_s = 0, float("inf")  # what is left has to be cleared away
        raise UsageError(why)

    def _process_events(self, event_list: object) -> None:
        """There are none from outside."""

    def _write_to_self(self) -> None:
        """Nothing sleeps that would have to be woken."""

    # Tasks and threads.

    def create_future(self) -> asyncio.Future[Any]:
        return _Future(loop=self, number=self._next_number())

    def create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        task = _Task(coro, loop=self, number=self._next_number(), **options)
        context = options.get("context")
        process = PROCESS.get() if context is None else process_of(context)
        if process is not None:
            process.keep(task)
        return task

    def _next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def run_in_executor(  # type: ignore[override]
        self, executor: object, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """At once: nothing else happens meanwhile, whenever it is done."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    # The network.

    def create_server(
        self, protocol_factory: Any, host: Any = None, port: Any = None, **options: Any
    ) -> Coroutine[Any, Any, Any]:
        return self.network.create_server(protocol_factory, host, port, **options)

    def create_connection(
        self, protocol_factory: Any, host: Any = None, port: Any = None, **options: Any
    ) -> Coroutine[Any, Any, Any]:
        return self.network.create_connection(protocol_factory, host, port, **options)

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> list[Any]:
        """Hosts are names here, and mean themselves."""
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, int(port)))]

    def add_signal_handler(  # type: ignore[override]
        self, sig: int, callback: Callable[..., Any], *args: Any
    ) -> None:
        """A program may ask to be told of signals. In a story nobody sends one."""

    def remove_signal_handler(self, sig: int) -> bool:
        return False

    def _absent(self, *_: object, **__: object) -> NoReturn:
        raise UsageError(
            "a story has streams over TCP, and nothing else: no datagrams, no Unix sockets, no "
            "sockets of your own, no subprocesses"
        )

    create_datagram_endpoint = create_unix_connection = create_unix_server = _absent
    subprocess_exec = subprocess_shell = add_reader = add_writer = _absent
    sock_accept = sock_connect = sock_recv = sock_sendall = _absent
