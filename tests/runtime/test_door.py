"""A door at which nobody can be let in for want of file descriptors."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from typing import Any, NoReturn

import pytest

from ordercast.runtime.complaints import Complaints
from ordercast.runtime.door import Door

from .helpers import until


def no_more_files(_: socket.socket) -> NoReturn:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """asyncio tries again all the time."""
    monkeypatch.setattr("asyncio.constants.ACCEPT_RETRY_DELAY", 0.01)


@pytest.mark.usefixtures("impatient")
def test_that_there_are_none_is_one_line_in_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        door = Door("g", "a")
        where = await door.open("127.0.0.1")
        with monkeypatch.context() as patch:
            patch.setattr(socket.socket, "accept", no_more_files)
            _, writer = await asyncio.open_connection(where.host, where.port)
            await until(lambda: bool(caplog.messages))
            await asyncio.sleep(0.1)
        await until(lambda: bool(door._waiting))  # there are some again
        (record,) = caplog.records
        assert record.getMessage().startswith("a: nobody can come in: Too many open files")
        assert record.exc_info is None
        writer.close()
        await until(lambda: not door._waiting)
        door.close()
        await door.wait_closed()

    with caplog.at_level(logging.WARNING):
        asyncio.run(scene())


@pytest.mark.usefixtures("impatient")
def test_the_sockets_of_others_are_none_of_its_business(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        door = Door("g", "a")
        await door.open("127.0.0.1")
        other = await asyncio.start_server(lambda _, taken: taken.close(), "127.0.0.1")
        with monkeypatch.context() as patch:
            patch.setattr(socket.socket, "accept", no_more_files)
            where = other.sockets[0].getsockname()
            _, writer = await asyncio.open_connection(*where)
            await until(lambda: bool(caplog.messages))
        await asyncio.sleep(0.05)  # asyncio accepts it then
        writer.close()
        other.close()
        door.close()
        await door.wait_closed()

    with caplog.at_level(logging.WARNING):
        asyncio.run(scene())
    assert {record.name for record in caplog.records} == {"asyncio"}


def test_the_loop_is_left_as_it_was() -> None:
    async def scene() -> None:
        loop = asyncio.get_running_loop()
        doors = [Door("g", name) for name in "ab"]
        for door in doors:
            await door.open("127.0.0.1")
        handler = loop.get_exception_handler()
        assert isinstance(handler, Complaints)
        doors[0].close()
        assert loop.get_exception_handler() is handler
        doors[1].close()
        assert loop.get_exception_handler() is None

    asyncio.run(scene())


@pytest.mark.parametrize("first", [True, False])
def test_a_handler_of_the_program_stays(first: bool) -> None:
    def own(_: asyncio.AbstractEventLoop, __: dict[str, Any]) -> None: ...

    async def scene() -> None:
        loop = asyncio.get_running_loop()
        door = Door("g", "a")
        if first:
            loop.set_exception_handler(own)
        await door.open("127.0.0.1")
        if not first:
            loop.set_exception_handler(own)
        assert loop.get_exception_handler() is own
        door.close()
        assert loop.get_exception_handler() is own

    asyncio.run(scene())
