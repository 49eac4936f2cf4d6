"""ordercast itself, in an application that sends and takes messages one by one, or in batches."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

import ordercast
from benchmarks.runtime.raw import GROUP, member_name
from benchmarks.runtime.sink import Sink
from benchmarks.runtime.subject import BURSTS, ONE, Alone, Setting

__all__ = ["SUBJECTS"]


class _Member:
    def __init__(self, group: ordercast.Group, sink: Sink, *, batches: bool) -> None:
        self._group = group
        self._sink = sink
        self._batches = batches
        self._reading = asyncio.create_task(self._read_batches() if batches else self._read())
        self.leave = contextlib.AsyncExitStack()

    async def publish(self, blobs: Sequence[bytes]) -> None:
        if self._batches:
            await self._group.send_many(blobs)
            return
        send = self._group.send
        for blob in blobs:
            await send(blob)

    async def close(self) -> None:
        self._reading.cancel()
        await self.leave.aclose()

    async def _read(self) -> None:
        me, take = self._group.me, self._sink.take
        async for delivery in self._group:
            if delivery.sender != me:
                take(delivery.payload)

    async def _read_batches(self) -> None:
        me, take_all = self._group.me, self._sink.take_all
        async for batch in self._group.batches():
            if batch.sender != me:
                take_all(batch.payloads)


class Ours(Alone):
    forms = (BURSTS, ONE)
    tls = (False, True)

    def __init__(
        self,
        name: str,
        order: str,
        reliability: str,
        *,
        batches: bool = False,
        journal: bool = False,
        synced: bool = False,
        trace: bool = False,
        remarks: str = "",
    ) -> None:
        self.name = f"ordercast {name}"
        self.order = "uniform causal" if reliability == "majority_acks" else order.split("_")[0]
        self.remarks = remarks
        self._order = order
        self._reliability = reliability
        self._batches = batches
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
        member = _Member(group, sink, batches=self._batches)
        member.leave = leave
        return member


SUBJECTS = (
    Ours("fifo", "fifo", "best_effort"),
    Ours("causal", "causal_vector", "best_effort"),
    Ours("uniform", "causal_vector", "majority_acks", remarks="majority_acks"),
    Ours("uniform/batches", "causal_vector", "majority_acks", batches=True),
    Ours("uniform/journal", "causal_vector", "majority_acks", journal=True, remarks="'write'"),
    Ours("uniform/journal/batches", "causal_vector", "majority_acks", batches=True, journal=True),
    Ours(
        "uniform/journal/synced",
        "causal_vector",
        "majority_acks",
        journal=True,
        synced=True,
        remarks="'disk'",
    ),
    Ours(
        "uniform/journal/synced/batches",
        "causal_vector",
        "majority_acks",
        batches=True,
        journal=True,
        synced=True,
        remarks="'disk'",
    ),
    Ours("uniform/trace", "causal_vector", "majority_acks", trace=True, remarks="recorded"),
    Ours("coordinator", "total_coordinator", "direct"),
    Ours("coordinator/batches", "total_coordinator", "direct", batches=True),
    Ours("lamport", "total_lamport", "direct"),
    Ours("skeen", "total_skeen", "direct"),
)
