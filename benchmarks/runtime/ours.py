"""ordercast itself, in applications that hand messages over and take them in three ways.

    loop        a loop of `await send`, and `async for` over deliveries: a call a message, twice
    many        `send_many`, and the same `async for`: a burst in one call, as peers take it
    batches     `send_many`, and `async for` over `batches()`

The last two are in the name of a subject. A `replica` carries messages out as commands.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Sequence
from typing import Literal

import ordercast
from benchmarks.runtime.raw import GROUP, member_name
from benchmarks.runtime.sink import Sink
from benchmarks.runtime.subject import BURSTS, ONE, Alone, Setting

__all__ = ["SUBJECTS"]

Way = Literal["loop", "many", "batches"]


class _Member:
    def __init__(self, group: ordercast.Group, sink: Sink, way: Way) -> None:
        self._group = group
        self._sink = sink
        self._way = way
        reading = self._read_batches() if way == "batches" else self._read()
        self._reading = asyncio.create_task(reading)
        self.leave = contextlib.AsyncExitStack()

    async def publish(self, blobs: Sequence[bytes]) -> None:
        if self._way == "loop":
            send = self._group.send
            for blob in blobs:
                await send(blob)
        else:
            await self._group.send_many(blobs)

    def leader(self) -> int | None:
        return _leader(self._group.view)

    async def close(self) -> None:
        self._reading.cancel()
        await self.leave.aclose()

    async def _read(self) -> None:
        me, sink = self._group.me, self._sink
        async for delivery in self._group:
            if delivery.sender != me:
                # A call for each would be a good part of what is measured.
                sink.delivered += 1
                if sink.looking and delivery.payload != sink.filler:
                    sink.look(delivery.payload)

    async def _read_batches(self) -> None:
        me, take_all = self._group.me, self._sink.take_all
        async for batch in self._group.batches():
            if batch.sender != me:
                take_all(batch.payloads)


def _leader(view: ordercast.View) -> int | None:
    return None if view.leader is None else view.members.index(view.leader)


class Ours(Alone):
    forms = (BURSTS, ONE)
    tls = (False, True)

    def __init__(
        self,
        name: str,
        order: str,
        reliability: str,
        *,
        way: Way = "loop",
        journal: bool = False,
        synced: bool = False,
        trace: bool = False,
        remarks: str = "",
    ) -> None:
        self.name = f"ordercast {name}" + ("" if way == "loop" else f"/{way}")
        self.order = "uniform causal" if reliability == "majority_acks" else order.split("_")[0]
        self.remarks = remarks
        self._order = order
        self._reliability = reliability
        self._way: Way = way
        self._journal = journal
        self._trace = trace
        self._synced = synced

    async def join(self, setting: Setting, sink: Sink) -> _Member:
        me, home = member_name(setting.me), setting.directory
        peers = {member_name(index): where for index, where in enumerate(setting.addresses)}
        leave = contextlib.AsyncExitStack()
        group = await leave.enter_async_context(
            ordercast.join(
                GROUP,
                me=me,
                peers=peers,
                order=self._order,
                reliability=self._reliability,
                keys=home / "keys" if setting.tls else None,
                journal=home / "journals" / me if self._journal else None,
                sync="disk" if self._synced else "write",
                trace=home / "trace" if self._trace else None,
            )
        )
        member = _Member(group, sink, self._way)
        member.leave = leave
        return member


UNDER_WAY_MAX = 4096
"""So many commands a replica may have been given and not carried out."""


class _Machine:
    """Every command of another member's is a delivery."""

    def __init__(self, me: str, sink: Sink) -> None:
        self._me, self._take = me, sink.take

    def apply(self, command: bytes, sender: str) -> None:
        if sender != self._me:
            self._take(command)

    def save(self) -> bytes:
        return b""

    def load(self, state: bytes) -> None: ...


class _Replica:
    def __init__(self, replica: ordercast.Replica, leave: contextlib.AsyncExitStack) -> None:
        self._replica = replica
        self._leave = leave
        self._under_way: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._given = 0

    async def publish(self, blobs: Sequence[bytes]) -> None:
        for blob in blobs:
            last = self._replica.do(blob)
        self._under_way.append((len(blobs), last))
        self._given += len(blobs)
        while self._given > UNDER_WAY_MAX:
            count, carried_out = self._under_way.popleft()
            await carried_out
            self._given -= count

    def leader(self) -> int | None:
        return _leader(self._replica.view)

    async def close(self) -> None:
        await self._leave.aclose()


class Replicas(Alone):
    forms = (BURSTS, ONE)
    tls = (False, True)
    order = "total"

    def __init__(self, name: str, *, journal: bool, remarks: str) -> None:
        self.name = f"ordercast {name}"
        self.remarks = remarks
        self._journal = journal

    async def join(self, setting: Setting, sink: Sink) -> _Replica:
        me, home = member_name(setting.me), setting.directory
        leave = contextlib.AsyncExitStack()
        replica = await leave.enter_async_context(
            ordercast.replicate(
                GROUP,
                _Machine(me, sink),
                me=me,
                peers={member_name(index): at for index, at in enumerate(setting.addresses)},
                keys=home / "keys" if setting.tls else None,
                journal=home / "journals" / me if self._journal else None,
            )
        )
        return _Replica(replica, leave)


_UNIFORM = ("causal_vector", "majority_acks")

SUBJECTS = (
    Ours("fifo", "fifo", "best_effort"),
    Ours("causal", "causal_vector", "best_effort"),
    Ours("uniform", *_UNIFORM, remarks="majority_acks"),
    Ours("uniform", *_UNIFORM, way="many"),
    Ours("uniform", *_UNIFORM, way="batches"),
    Ours("uniform/journal", *_UNIFORM, journal=True, remarks="'write'"),
    Ours("uniform/journal", *_UNIFORM, way="many", journal=True),
    Ours("uniform/journal", *_UNIFORM, way="batches", journal=True),
    Ours("uniform/journal/synced", *_UNIFORM, journal=True, synced=True, remarks="'disk'"),
    Ours("uniform/journal/synced", *_UNIFORM, way="batches", journal=True, synced=True),
    Ours("uniform/trace", *_UNIFORM, trace=True, remarks="recorded"),
    Ours("coordinator", "total_coordinator", "direct"),
    Ours("coordinator", "total_coordinator", "direct", way="batches"),
    Ours("consensus", "total_consensus", "direct"),
    Ours("consensus", "total_consensus", "direct", way="batches"),
    Ours("consensus/journal", "total_consensus", "direct", journal=True, remarks="'write'"),
    Replicas("replica", journal=False, remarks="commands"),
    Replicas("replica/journal", journal=True, remarks="'write'"),
    Ours("lamport", "total_lamport", "direct"),
    Ours("skeen", "total_skeen", "direct"),
)
