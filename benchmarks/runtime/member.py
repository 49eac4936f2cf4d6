"""One process of a group that is measured: lines in, lines out, messages in between.

    load mode=count rate=0 pack=64 burst=64 start_ns=… warm_s=0.5 window_s=2
        → sent=… window_delivered=… window_cpu_s=… window_s=…     when the window is over
    settle expected=… within_s=…
        → delivered=… disorder=… latencies=…                      when all has come, or time is up
    leader
        → leader=…                                                its index, or -1
    quit

Says `ready` when the group is there. Members of other languages speak the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import resource
import signal
import sys
from time import monotonic, monotonic_ns

import msgspec

from benchmarks.runtime.sink import Sink
from benchmarks.runtime.subject import Led, Member, Setting, subject_named

__all__: list[str] = []

TICK_S = 0.001
PR_SET_PDEATHSIG = 1


class Load:
    """What one `load` line asks for."""

    def __init__(self, words: dict[str, str]) -> None:
        self.mode = words["mode"]
        self.rate = float(words["rate"])
        self.pack = int(words["pack"])
        self.burst = int(words["burst"])
        self.start_ns = int(words["start_ns"])
        self.warm_s = float(words["warm_s"])
        self.window_s = float(words["window_s"])


class Worker:
    def __init__(self, member: Member, sink: Sink) -> None:
        self.member = member
        self.sink = sink
        self.filler = bytes(sink.payload_bytes)
        self.stopping = False
        self._rest = self.filler[16:]

    async def load(self, load: Load) -> str:
        self.sink.begin(load.mode)
        self.stopping = False
        await asyncio.sleep(max(0, load.start_ns - monotonic_ns()) / 1e9)
        sending = asyncio.create_task(self._pace(load) if load.rate else self._saturate(load))
        await asyncio.sleep(load.warm_s)
        before = self._reading()
        await asyncio.wait((sending,), timeout=load.window_s)
        after = self._reading()
        self.stopping = True
        await sending
        delivered, cpu_s, seconds = (b - a for a, b in zip(before, after, strict=True))
        return (
            f"sent={self.sink.sent} window_delivered={delivered} window_cpu_s={cpu_s:.6f} "
            f"window_s={seconds:.6f}"
        )

    async def settle(self, expected: int, within_s: float) -> str:
        """All has come when as much as was sent is there, and nothing more in the next moment."""
        end = monotonic() + within_s
        while self.sink.delivered < expected and monotonic() < end:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.02)
        sink = self.sink
        return (
            f"delivered={sink.delivered} disorder={sink.disorder} "
            f"latencies={sink.latencies.encode()}"
        )

    async def pay_credit(self) -> None:
        while True:
            await self.sink.owes_credit.wait()
            await self.member.publish([self.sink.credit()])

    def _reading(self) -> tuple[float, float, float]:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return self.sink.delivered, used.ru_utime + used.ru_stime, monotonic()

    async def _saturate(self, load: Load) -> None:
        while not self.stopping:
            await self._burst(load.burst, load.pack)
            await asyncio.sleep(0)

    async def _pace(self, load: Load) -> None:
        """Whatever is due, once a tick; at the low rate each message in a call of its own."""
        # Members do not tick at the same moment.
        await asyncio.sleep(TICK_S * self.sink.me / 5)
        start, done = monotonic(), 0
        while not self.stopping:
            due = int((monotonic() - start) * load.rate) - done
            done += due
            while due > 0 and not self.stopping:
                count = 1 if load.mode == "check" else min(due, load.burst)
                await self._burst(count, min(count, load.pack))
                due -= count
            await asyncio.sleep(TICK_S)

    async def _burst(self, messages: int, pack: int) -> None:
        """Only the first is stamped."""
        first = self.sink.stamp() + self._rest
        if pack > 1:
            blobs = [first + self.filler * (messages - 1)]
        else:
            blobs = [first] + [self.filler] * (messages - 1)
        await self.member.publish(blobs)
        self.sink.sent += messages
        if self.sink.window is not None:
            await self.sink.room()


async def main(setting: Setting) -> None:
    loop = asyncio.get_running_loop()
    commands = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    subject = subject_named(setting.subject)
    sink = Sink(setting.me, setting.n, setting.payload_bytes, subject.window)
    member = await subject.join(setting, sink)
    worker = Worker(member, sink)
    credit = asyncio.create_task(worker.pay_credit())
    print("ready", flush=True)
    while (line := (await commands.readline()).decode().split()) and line[0] != "quit":
        words = dict(word.split("=", 1) for word in line[1:])
        if line[0] == "load":
            print(await worker.load(Load(words)), flush=True)
        elif line[0] == "leader":
            leader = member.leader() if isinstance(member, Led) else None
            print(f"leader={-1 if leader is None else leader}", flush=True)
        else:
            print(await worker.settle(int(words["expected"]), float(words["within_s"])), flush=True)
    credit.cancel()
    with contextlib.suppress(Exception, asyncio.CancelledError):
        await asyncio.wait_for(member.close(), 3)


def run() -> None:
    # Whatever becomes of the conductor, no member outlives it.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    setting = msgspec.json.decode(sys.argv[1], type=Setting)
    try:
        import uvloop
    except ModuleNotFoundError:
        asyncio.run(main(setting))
    else:
        uvloop.run(main(setting))


if __name__ == "__main__":
    run()
