"""PySyncObj: Raft in Python. A message is a command of the replicated log, applied by everyone.

In memory, without a journal. Its own thread does the work and batches what it sends; the log is
not compacted meanwhile. A member may have so many commands under way that nothing waits for it.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
from collections.abc import Sequence
from typing import Any

from benchmarks.runtime.peers.meeting import everyone_is_here
from benchmarks.runtime.sink import Sink
from benchmarks.runtime.subject import BURSTS, FRAMES, Alone, Member, Setting

__all__ = ["SUBJECTS"]

UNDER_WAY_MAX = 1024


class _Member:
    def __init__(self, log: Any, setting: Setting) -> None:
        self._log, self._me = log, setting.me
        self._addresses = setting.addresses
        self._loop = asyncio.get_running_loop()
        self._under_way = 0
        self._room = asyncio.Event()

    async def publish(self, blobs: Sequence[bytes]) -> None:
        for blob in blobs:
            self._log.take(self._me, blob, callback=self._applied)
        self._under_way += len(blobs)
        while self._under_way > UNDER_WAY_MAX:
            self._room.clear()
            await self._room.wait()

    def _applied(self, result: object, error: object) -> None:
        """In the thread of the log."""
        self._loop.call_soon_threadsafe(self._count, error)

    def _count(self, error: object) -> None:
        if error:
            logging.error("a command failed: %s", error)
        self._under_way -= 1
        self._room.set()

    def leader(self) -> int | None:
        node = self._log.getStatus()["leader"]
        return None if node is None else self._addresses.index(str(node))

    async def close(self) -> None:
        self._log.destroy()


PATIENT = {"raftMinTimeout": 2.0, "raftMaxTimeout": 4.0, "connectionTimeout": 20.0}
"""A host that is busy with a benchmark is no dead leader."""


class PySyncObj(Alone):
    order = "total"
    warm_s = 2.0
    forms = (BURSTS, FRAMES)

    def __init__(self, name: str, remarks: str, timeouts: dict[str, float]) -> None:
        self.name = name
        self.remarks = remarks
        self._timeouts = timeouts

    def missing(self) -> str | None:
        if importlib.util.find_spec("pysyncobj") is None:
            return "there is no PySyncObj: pip install -r requirements-bench.txt"
        return None

    async def join(self, setting: Setting, sink: Sink) -> Member:
        from pysyncobj import (  # type: ignore[import-untyped]
            SyncObj,
            SyncObjConf,
            replicated,
        )

        class Log(SyncObj):  # type: ignore[misc]
            @replicated  # type: ignore[untyped-decorator]
            def take(self, origin: int, blob: bytes) -> None:
                if origin != setting.me:
                    sink.take(blob)

        addresses = list(setting.addresses)
        mine = addresses.pop(setting.me)
        configuration = SyncObjConf(
            autoTickPeriod=0.005,
            appendEntriesPeriod=0.005,
            connectionRetryTime=0.2,
            logCompactionMinEntries=10**8,
            logCompactionMinTime=10**6,
            commandsQueueSize=10**6,
            **self._timeouts,
        )
        log = Log(mine, addresses, configuration)
        while not log.isReady():  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        await everyone_is_here(setting)
        return _Member(log, setting)


SUBJECTS = (
    PySyncObj("pysyncobj", "Raft, in memory", PATIENT),
    PySyncObj("pysyncobj/prompt", "its own timeouts", {}),
)
