"""NATS JetStream: a stream in files with three replicas, and an ordered consumer for each member.

Three servers on loopback agree by Raft on every message; the stream is one sequence, so the order
is total. Acknowledged means that a majority has written it; this release of the server does not
sync files for each message. Through nats-py: acknowledgements are counted, not awaited one by one.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from benchmarks.runtime.peers.meeting import everyone_is_here
from benchmarks.runtime.peers.with_nats import PROGRAM
from benchmarks.runtime.processes import free_addresses, started, until_listening
from benchmarks.runtime.sink import Sink
from benchmarks.runtime.subject import BURSTS, FRAMES, Alone, Member, Servers, Setting

__all__ = ["SUBJECTS"]

REPLICAS = 3
STREAM = "benchmark"
UNDER_WAY_MAX = 1024


class _Member:
    def __init__(self, client: Any, me: int) -> None:
        self._client = client
        self._subject = f"{STREAM}.{me}"
        self._under_way = 0
        self._room = asyncio.Event()

    async def listen(self) -> None:
        self._inbox = self._client.new_inbox()
        await self._client.subscribe(self._inbox, cb=self._acknowledged)

    async def publish(self, blobs: Sequence[bytes]) -> None:
        for blob in blobs:
            await self._client.publish(self._subject, blob, reply=self._inbox)
        self._under_way += len(blobs)
        while self._under_way > UNDER_WAY_MAX:
            self._room.clear()
            await self._room.wait()

    async def _acknowledged(self, message: Any) -> None:
        if b'"error"' in message.data:
            raise ConnectionError(message.data.decode())
        self._under_way -= 1
        self._room.set()

    async def close(self) -> None:
        await self._client.close()


class JetStream(Alone):
    name = "jetstream"
    order = "total"
    remarks = "3 replicas in files, nats-py"
    forms = (BURSTS, FRAMES)

    def missing(self) -> str | None:
        if shutil.which(PROGRAM) is None:
            return f"there is no {PROGRAM}: apt-get install nats-server"
        if importlib.util.find_spec("nats") is None:
            return "there is no nats-py: pip install -r requirements-bench.txt"
        return None

    @asynccontextmanager
    async def servers(self, setting: Setting) -> AsyncIterator[Servers]:
        clients, routes = free_addresses(REPLICAS), free_addresses(REPLICAS)
        everyone = ", ".join(f"nats://{route}" for route in routes)
        async with AsyncExitStack() as stack:
            pids = []
            for number, (client, route) in enumerate(zip(clients, routes, strict=True)):
                file = setting.directory / f"server{number}.conf"
                file.write_text(
                    f'server_name: s{number}\nlisten: "{client}"\n'
                    f'jetstream {{ store_dir: "{setting.place}/store{number}" }}\n'
                    f'cluster {{ name: c, listen: "{route}", routes: [{everyone}] }}\n'
                )
                log = setting.directory / f"server{number}.log"
                server = await stack.enter_async_context(started([PROGRAM, "-c", file], log))
                await until_listening(client, server)
                pids.append(server.pid)
            yield Servers(pids=pids, words={"servers": " ".join(clients)})

    async def join(self, setting: Setting, sink: Sink) -> Member:
        import nats

        addresses = setting.words["servers"].split()
        client = await nats.connect(
            f"nats://{addresses[setting.me % REPLICAS]}", dont_randomize=True
        )
        streams = client.jetstream(timeout=2)
        if setting.me == 0:
            await _create(streams)
        while not await _exists(streams):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        mine = f"{STREAM}.{setting.me}"

        async def take(message: Any) -> None:
            if message.subject != mine:
                sink.take(message.data)

        await streams.subscribe(f"{STREAM}.*", cb=take, ordered_consumer=True)
        member = _Member(client, setting.me)
        await member.listen()
        await client.flush()
        await everyone_is_here(setting)
        return member


async def _create(streams: Any) -> None:
    """The servers need a moment to elect a leader."""
    import nats

    while True:
        try:
            await streams.add_stream(
                name=STREAM, subjects=[f"{STREAM}.*"], num_replicas=REPLICAS, storage="file"
            )
            return
        except (nats.errors.Error, TimeoutError):
            await asyncio.sleep(0.2)


async def _exists(streams: Any) -> bool:
    import nats

    with contextlib.suppress(nats.errors.Error, TimeoutError):
        return bool((await streams.stream_info(STREAM)).cluster.leader)
    return False


SUBJECTS = (JetStream(),)
