"""Stories without a group: time, processes, and streams between them."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import ssl
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ordercast.errors import UsageError
from ordercast.testing import World, run

PORT = 7000


def test_time_leaps() -> None:
    async def story(world: World) -> float:
        await asyncio.sleep(86_400)
        async with asyncio.timeout(5):
            await asyncio.sleep(4.5)
        return world.now

    began = time.monotonic()
    assert run(story, limit_s=1e6) == 86_404.5
    assert time.monotonic() - began < 30


async def waits_for_ever(world: World) -> None:
    await asyncio.Event().wait()


async def never_waits(world: World) -> None:
    while True:  # noqa: ASYNC110
        await asyncio.sleep(0)


async def goes_on_and_on(world: World) -> None:
    while True:  # noqa: ASYNC110
        await asyncio.sleep(1)


async def speaks_in_code(world: World) -> None:
    await asyncio.open_connection("h", PORT, ssl=ssl.create_default_context())


async def calls_a_program(world: World) -> None:
    await asyncio.create_subprocess_exec("true")


async def throws_letters(world: World) -> None:
    loop = asyncio.get_running_loop()
    await loop.create_datagram_endpoint(asyncio.DatagramProtocol, remote_addr=("h", PORT))


async def starts_twice(world: World) -> None:
    world.start("a", asyncio.sleep, 1)
    world.start("a", asyncio.sleep, 1)


async def starts_inside(world: World) -> None:
    async def program() -> None:
        world.start("b", asyncio.sleep, 1)

    await world.start("a", program)


async def cuts_off_nobody(world: World) -> None:
    world.cut("a", "b")


async def cuts_off_a_stranger(world: World) -> None:
    world.start("ann", asyncio.sleep, 1)
    world.start("bob", asyncio.sleep, 1)
    world.cut("ann", "zoe")


async def cuts_off_from_nobody(world: World) -> None:
    world.start("ann", asyncio.sleep, 1)
    world.cut("ann")


@pytest.mark.parametrize(
    ("story", "sentence"),
    [
        (waits_for_ever, "nothing is left to happen: everyone waits for someone else"),
        (never_waits, "time stands still"),
        (goes_on_and_on, "the story has not ended after 3600 s of its time"),
        (speaks_in_code, "there is no TLS in a story"),
        (calls_a_program, "a story has streams over TCP, and nothing else"),
        (throws_letters, "no datagrams, no Unix sockets"),
        (starts_twice, "'a' is running already"),
        (starts_inside, "a process cannot start another"),
        (cuts_off_nobody, "there is no process 'a' to cut off"),
        (cuts_off_a_stranger, "there is no process 'zoe' to cut off: there are ann, bob"),
        (cuts_off_from_nobody, "a cut has two sides or more"),
    ],
)
def test_what_cannot_be_is_said(
    story: Callable[[World], Awaitable[None]], sentence: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError, match=sentence):
        run(story)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"delay_s": (2, 1)}, "a delay from 2 s to 1 s: choose 0 or more, in order"),
        ({"delay_s": (-1, 1)}, "a delay from -1 s"),
        ({"delay_s": 3}, r"a delay of 3: give the least and the most, as \(0.001, 0.01\)"),
        ({"loss": 1.0}, "a loss of 1.0: choose from 0 to less than 1"),
        ({"limit_s": -1}, "a limit of -1 s: choose more than 0"),
    ],
)
def test_a_network_that_cannot_be_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        run(goes_on_and_on, **options)


def test_a_story_within_a_coroutine_is_refused() -> None:
    async def test() -> None:
        run(goes_on_and_on)

    with pytest.raises(UsageError, match="from a plain function, not here"):
        asyncio.run(test())


def test_a_program_may_ask_for_signals() -> None:
    """Those of production do, and run here as they are."""

    async def program() -> bool:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, loop.stop)
        await asyncio.sleep(1)
        return loop.remove_signal_handler(signal.SIGTERM)

    async def story(world: World) -> bool:
        told: bool = await world.start("a", program)
        return told

    assert run(story) is False


async def fails(after_s: float) -> None:
    await asyncio.sleep(after_s)
    raise ValueError("no more tea")


def test_a_process_that_fails_ends_the_story() -> None:
    async def story(world: World) -> None:
        world.start("a", fails, 2.5)
        await asyncio.sleep(100)

    with pytest.raises(ValueError, match="no more tea") as caught:
        run(story, seed=3)
    assert caught.value.__notes__ == ["in the process a", "seed 3, 2.500000 s after the beginning"]


def test_whoever_awaits_a_process_gets_what_it_raises() -> None:
    async def story(world: World) -> float:
        with pytest.raises(ValueError, match="no more tea"):
            await world.start("a", fails, 1)
        assert await world.start("a", asyncio.sleep, 2, "done") == "done"
        return world.now

    assert run(story) == 3


def test_what_nobody_awaits_is_not_passed_over() -> None:
    """Neither a callback nor a task nor what a process does when it is cancelled."""

    async def callback() -> None:
        asyncio.get_running_loop().call_later(1, "x".index, "y")
        await asyncio.sleep(5)

    async def task() -> None:
        asyncio.create_task(fails(1))  # noqa: RUF006
        await asyncio.sleep(5)

    async def ending() -> None:
        try:
            await asyncio.sleep(5)
        finally:
            raise ValueError("no more tea")

    for program in (callback, task, ending):

        async def story(world: World, program: Any = program) -> None:
            world.start("a", program)
            await asyncio.sleep(2)

        with pytest.raises(ValueError, match=r"no more tea|substring not found"):
            run(story)


async def counts(told: list[str], step_s: float = 1) -> None:
    try:
        for number in range(1000):
            told.append(str(number))
            await asyncio.sleep(step_s)
    finally:
        told.append("finally")


def test_a_killed_process_takes_not_one_more_step() -> None:
    told: list[str] = []

    async def story(world: World) -> list[str]:
        process = world.start("a", counts, told)
        await asyncio.sleep(2.5)
        assert repr(process) == "<Process a: running>"
        process.kill()
        await asyncio.sleep(10)
        assert repr(process) == "<Process a: killed>"
        assert await process is None
        return list(told)

    assert run(story) == ["0", "1", "2"]


def test_a_killed_process_leaves_nothing_behind(capfd: pytest.CaptureFixture[str]) -> None:
    """Not even one that was about to run, nor the tasks that it had started."""

    async def program(told: list[str]) -> None:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(3):
                tasks.create_task(counts(told, 0.5))

    async def story(world: World) -> None:
        told: list[str] = []
        process = world.start("a", program, told)
        await asyncio.sleep(1)  # when they are due as well
        process.kill()
        assert told[-1] != "finally"

    run(story)
    assert capfd.readouterr().err == ""


def test_a_paused_process_stands_still() -> None:
    async def story(world: World) -> list[str]:
        told: list[str] = []
        process = world.start("a", counts, told)
        await asyncio.sleep(0.5)
        process.pause()
        await asyncio.sleep(60)
        assert told == ["0"]
        assert process.state == "paused"
        process.resume()
        await asyncio.sleep(1.2)
        await process.stop()
        assert process.state == "ended"
        return told

    assert run(story) == ["0", "1", "2", "finally"]


def test_tasks_are_cancelled_in_the_same_order_each_time() -> None:
    """Though asyncio keeps them in sets."""

    async def sleep(name: int, ended: list[int]) -> None:
        try:
            await asyncio.sleep(100)
        finally:
            ended.append(name)

    async def story(world: World) -> list[int]:
        ended: list[int] = []
        filler = [bytes(world.random.randrange(1000)) for _ in range(50)]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1), asyncio.TaskGroup() as tasks:
                for name in range(200):
                    filler.append(bytes(7 * name))
                    tasks.create_task(sleep(name, ended))
        return ended

    assert run(story) == run(story)


def test_no_other_loop_is_made() -> None:
    """One that nobody closes would be found by whoever comes later."""

    def refuse() -> None:
        raise AssertionError("a loop of the machine was made")

    async def story(world: World) -> float:
        world.start("a", asyncio.sleep, 1)
        await asyncio.sleep(2)
        return world.now

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio.events, "new_event_loop", refuse)
        patch.setattr(asyncio.get_event_loop_policy(), "new_event_loop", refuse, raising=False)
        patch.setattr(contextlib, "suppress", contextlib.nullcontext)
        assert run(story) == 2


def test_a_thread_is_waited_for_at_once() -> None:
    async def story(world: World) -> tuple[int, float]:
        with pytest.raises(ValueError, match="substring"):
            await asyncio.to_thread("x".index, "y")
        return await asyncio.to_thread(len, "four"), world.now

    assert run(story) == (4, 0)


# Streams.


async def echo(greeting: bytes = b"") -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(greeting)
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "h", PORT) as server:
        await server.serve_forever()


async def call(many: int, size: int = 1) -> bytes:
    reader, writer = await asyncio.open_connection("h", PORT)

    async def write() -> None:
        for number in range(many):
            writer.write(bytes([number % 256]) * size)
            await writer.drain()
        writer.write_eof()

    writing = asyncio.create_task(write())
    answer = await reader.read()
    await writing
    writer.close()
    await writer.wait_closed()
    return answer


@pytest.mark.parametrize("loss", [0.0, 0.3])
def test_bytes_arrive_in_their_order(loss: float) -> None:
    async def story(world: World) -> bytes:
        world.start("server", echo, b"hello ")
        answer: bytes = await world.start("client", call, 300, 3)
        return answer

    expected = b"hello " + b"".join(bytes([number % 256]) * 3 for number in range(300))
    assert run(story, delay_s=(0, 0.5), loss=loss) == expected


def test_who_writes_more_than_is_read_has_to_wait() -> None:
    async def listen() -> None:
        async def ignore(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await asyncio.sleep(1000)
            while await reader.read(1 << 20):
                pass
            writer.close()

        async with await asyncio.start_server(ignore, "h", PORT) as server:
            await server.serve_forever()

    async def story(world: World) -> float:
        server = world.start("server", listen)
        client = world.start("client", call, 200, 10_000)
        await asyncio.sleep(900)
        assert client.running
        [transport] = client.transports
        assert transport.get_write_buffer_size() < 200_000
        await client
        await server.stop()
        return world.now

    assert 1000 < run(story) < 1010


def test_nothing_passes_a_cut() -> None:
    async def story(world: World) -> float:
        server = world.start("server", echo)
        client = world.start("client", call, 3)
        await asyncio.sleep(0.002)  # somewhere on the way
        world.cut("server", ["client"])
        await asyncio.sleep(60)
        assert client.running
        late = world.start("late", call, 1)  # on no side
        assert await late == b"\0"
        world.heal()
        assert await client == b"\0\1\2"
        await server.stop()
        return world.now

    for seed in range(20):
        assert 60 < run(story, seed=seed) < 62


def test_who_cannot_be_reached_and_who_is_not_there() -> None:
    async def story(world: World) -> None:
        with pytest.raises(ConnectionRefusedError, match="nobody listens at h:7000"):
            await world.start("client", call, 1)
        server = world.start("server", echo)
        await asyncio.sleep(1)
        with pytest.raises(OSError, match="Address already in use"):
            await world.start("another", echo)
        world.cut(["server"], ["client"])
        began = world.now
        with pytest.raises(TimeoutError):
            await world.start("client", call, 1)
        assert 127 < world.now - began < 130
        await server.stop()
        with pytest.raises(ConnectionRefusedError):
            await world.start("client", call, 1)
        world.start("server", echo)  # the port is free again

    run(story)


@pytest.mark.parametrize("silently", [False, True])
def test_a_kill_breaks_connections(silently: bool) -> None:
    async def wait() -> float:
        reader, _ = await asyncio.open_connection("h", PORT)
        with pytest.raises(ConnectionResetError):
            await reader.read()
        return asyncio.get_running_loop().time()

    async def story(world: World) -> float | None:
        server, client = world.start("server", echo), world.start("client", wait)
        await asyncio.sleep(5)
        server.kill(silently=silently)
        await asyncio.sleep(50)
        if client.running:
            client.kill()
        end: float | None = await client
        return end

    found = run(story, delay_s=(0.1, 0.1))
    assert found is None if silently else found == pytest.approx(5.1)


def test_who_ends_leaves_no_socket_behind() -> None:
    """Neither a server nor a connection that it never closed; but tasks may say good-bye."""

    async def careless() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await reader.read()
            finally:
                writer.write(b"bye")

        await asyncio.start_server(serve, "h", PORT)
        await asyncio.sleep(5)

    async def call_and_wait() -> bytes:
        reader, writer = await asyncio.open_connection("h", PORT)
        # From Python 3.12 on, the streams of a handler that was cancelled are closed by asyncio.
        with contextlib.suppress(ConnectionResetError):
            while some := await reader.read(3):
                heard.append(some)
        writer.close()
        return b"".join(heard)

    heard: list[bytes] = []

    async def story(world: World) -> bytes:
        server, client = world.start("server", careless), world.start("client", call_and_wait)
        await server
        answer: bytes = await client
        await world.start("server", careless)
        return answer

    assert run(story) == b"bye"


def test_an_address_belongs_to_whoever_listens_there_now() -> None:
    """Whoever was there before takes nothing of it along, neither closed again nor killed."""

    async def moves_on() -> None:
        server = await asyncio.start_server(lambda _, writer: writer.close(), "h", PORT)
        server.close()
        await asyncio.sleep(1.5)
        server.close()
        await asyncio.sleep(1000)

    async def story(world: World) -> bytes:
        before = world.start("before", moves_on)
        await asyncio.sleep(1)
        world.start("now", echo)
        await asyncio.sleep(1)
        assert before.servers == {}
        before.kill()
        answer: bytes = await world.start("client", call, 1)
        return answer

    assert run(story) == b"\0"


def test_what_waited_for_a_paused_process_comes_before_what_came_later() -> None:
    seen: list[int] = []

    async def sleep() -> None:
        await asyncio.sleep(10)

    async def story(world: World) -> None:
        process = world.start("a", sleep)
        await asyncio.sleep(1)
        process.pause()
        process.context.run(world.loop.call_soon, seen.append, 1)
        world.loop.call_soon(process.resume)
        process.context.run(world.loop.call_soon, seen.append, 2)
        await asyncio.sleep(1)

    run(story)
    assert seen == [1, 2]
