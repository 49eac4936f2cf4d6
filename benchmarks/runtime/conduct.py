"""One case: starts its processes, takes them through three loads, adds up what they say."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from time import monotonic_ns

from msgspec import Struct

from benchmarks.runtime.processes import (
    CaseError,
    Child,
    busy_s,
    cpu_s,
    free_addresses,
    quiet,
    started,
)
from benchmarks.runtime.raw import GROUP, member_name
from benchmarks.runtime.sink import Histogram
from benchmarks.runtime.subject import Form, Servers, Setting, Subject, subject_named

__all__ = ["LOW_RATE", "Case", "Durations", "Figures", "Group", "assemble", "conduct"]

LOW_RATE = 2000
"""Messages a second and member."""
PREPARE_S = 0.3
"""From the order to begin until all begin."""
JOIN_S = 30.0
SETTLE_S = 15.0
SETTLE_AFTER_S = 1.5
NOBODY = -1
ALL = 2**60
"""More than will ever come."""


class Case(Struct, frozen=True):
    subject: str
    form: Form
    n: int
    payload_bytes: int
    tls: bool

    @property
    def name(self) -> str:
        tls = "TLS" if self.tls else "plain"
        return f"{self.subject}, {self.form.name}, n={self.n}, {self.payload_bytes} B, {tls}"


class Durations(Struct, frozen=True):
    warm_s: float = 0.5
    window_s: float = 2.0
    limit_s: float = 90.0
    """For a whole case."""
    patience_s: float = 0.0
    """How long to wait before a case for other programs to be quiet."""


class Phase(Struct, frozen=True):
    """What a group did under one load."""

    deliveries_per_s: float
    """By members of other members' messages; per member."""
    cpu_us: float
    """Of all processes, servers too, for one delivery."""
    latencies: Histogram
    sent: int
    delivered: int
    lost: int
    """Negative if some came twice."""
    disorder: int
    others_cores: float
    """What other programs took of this machine meanwhile: the figures are that much too bad."""


class Figures(Struct):
    case: Case
    order: str
    full: Phase | None = None
    low: Phase | None = None
    half: Phase | None = None
    words: str = ""
    """Why there is not more."""


class Group:
    """The running processes of one case."""

    def __init__(
        self, members: list[Child], servers: Servers, *, warm_s: float, window_s: float
    ) -> None:
        self._members = members
        self._servers = servers
        self._warm_s, self._window_s = warm_s, window_s
        self._sent = [0] * len(members)
        self._delivered = 0
        self._disorder = 0

    @property
    def pids(self) -> list[int]:
        return [member.pid for member in self._members]

    async def phase(self, mode: str, rate: float, form: Form) -> Phase:
        warm_s, window_s = self._warm_s, self._window_s
        start_ns = monotonic_ns() + int(PREPARE_S * 1e9)
        order = (
            f"load mode={mode} rate={rate:.3f} pack={form.pack} burst={form.burst} "
            f"start_ns={start_ns} warm_s={warm_s} window_s={window_s}"
        )
        answers, (servers_cpu_s, all_cpu_s) = await asyncio.gather(
            self._ask([order] * len(self._members)),
            self._watch(start_ns, warm_s, window_s),
        )
        sent = [int(answer["sent"]) for answer in answers]
        settled = await self._ask(
            f"settle expected={sum(sent) - mine} within_s={SETTLE_S}" for mine in sent
        )
        return self._phase(answers, servers_cpu_s, all_cpu_s, sent, settled)

    def _phase(
        self,
        answers: list[dict[str, str]],
        servers_cpu_s: float,
        all_cpu_s: float,
        sent: list[int],
        settled: list[dict[str, str]],
    ) -> Phase:
        n = len(self._members)
        latencies = Histogram()
        for answer in settled:
            latencies.update(Histogram.decode(answer["latencies"]))
        rates = [float(a["window_delivered"]) / float(a["window_s"]) for a in answers]
        cpu = sum(float(answer["window_cpu_s"]) for answer in answers) + servers_cpu_s
        in_window = sum(float(answer["window_delivered"]) for answer in answers)
        delivered = sum(int(answer["delivered"]) for answer in settled)
        disorder = sum(int(answer["disorder"]) for answer in settled)
        new = sum(sent) - sum(self._sent)
        phase = Phase(
            deliveries_per_s=sum(rates) / n,
            cpu_us=cpu / max(in_window, 1) * 1e6,
            latencies=latencies,
            sent=new,
            delivered=delivered - self._delivered,
            lost=new * (n - 1) - (delivered - self._delivered),
            disorder=disorder - self._disorder,
            others_cores=max(0.0, all_cpu_s - cpu) / self._window_s,
        )
        self._sent, self._delivered, self._disorder = sent, delivered, disorder
        return phase

    async def leader(self) -> int:
        """Whom they agree on; asked again until they do."""
        while True:
            answers = await self._ask(["leader"] * len(self._members))
            found = {int(answer["leader"]) for answer in answers}
            if len(found) == 1 and found != {NOBODY}:
                return found.pop()
            await asyncio.sleep(0.1)

    async def without(self, victim: int, end: signal.Signals, rate: float, form: Form) -> Phase:
        """All send at a rate, and in the middle of the window one is sent a signal. What the others
        have seen of each other."""
        warm_s, window_s = self._warm_s, self._window_s
        start_ns = monotonic_ns() + int(PREPARE_S * 1e9)
        order = (
            f"load mode=check rate={rate:.3f} pack={form.pack} burst=1 "
            f"start_ns={start_ns} warm_s={warm_s} window_s={window_s}"
        )
        others = [member for member in self._members if member is not self._members[victim]]
        await self._members[victim].say(order)
        answers = asyncio.gather(*(member.ask(order) for member in others))
        await asyncio.sleep((start_ns - monotonic_ns()) / 1e9 + warm_s + window_s / 2)
        os.kill(self._members[victim].pid, end)
        sent = [int(answer["sent"]) for answer in await answers]
        # What the one that is gone had sent may have come or not.
        settle = f"settle expected={ALL} within_s={SETTLE_AFTER_S}"
        settled = list(await asyncio.gather(*(member.ask(settle) for member in others)))
        return self._phase(list(await answers), 0.0, 0.0, sent, settled)

    async def _ask(self, lines: Iterable[str]) -> list[dict[str, str]]:
        pairs = zip(self._members, lines, strict=True)
        return list(await asyncio.gather(*(member.ask(line) for member, line in pairs)))

    async def _watch(self, start_ns: int, warm_s: float, window_s: float) -> tuple[float, float]:
        """Processor time in the window: of the servers, and of everything on this machine."""
        await asyncio.sleep((start_ns - monotonic_ns()) / 1e9 + warm_s)
        servers, everything = cpu_s(self._servers.pids), busy_s()
        await asyncio.sleep(window_s)
        return cpu_s(self._servers.pids) - servers, busy_s() - everything


async def conduct(case: Case, durations: Durations) -> Figures:
    """Never raises because of the subject: then the figures say why they are missing."""
    subject = subject_named(case.subject)
    figures = Figures(case, subject.order)
    await quiet(durations.patience_s)
    try:
        async with asyncio.timeout(durations.limit_s), AsyncExitStack() as stack:
            group = await assemble(subject, case, durations, stack)
            full = figures.full = await group.phase("count", 0, case.form)
            figures.low = await group.phase("check", LOW_RATE, case.form)
            half_rate = full.deliveries_per_s / (case.n - 1) / 2
            figures.half = await group.phase("sample", half_rate, case.form)
    except TimeoutError:
        figures.words = f"not done within {durations.limit_s:g} s"
    except CaseError as failure:
        figures.words = str(failure)
    return figures


async def assemble(
    subject: Subject, case: Case, durations: Durations, stack: AsyncExitStack
) -> Group:
    place = stack.enter_context(tempfile.TemporaryDirectory(prefix="ordercast-runtime-"))
    directory = Path(place)
    if case.tls:
        from ordercast.runtime.keys import make_group

        make_group(directory / "keys", GROUP, [member_name(me) for me in range(case.n)])
    addresses = tuple(free_addresses(case.n))

    def setting(me: int, words: dict[str, str]) -> Setting:
        return Setting(
            case.subject, me, case.n, case.payload_bytes, case.tls, addresses, place, words
        )

    servers = await stack.enter_async_context(subject.servers(setting(0, {})))
    members = []
    for me in range(case.n):
        mine = setting(me, servers.words)
        command = subject.command(mine) or [
            *(sys.executable, "-m", "benchmarks.runtime.member", mine.encode())
        ]
        prefix = servers.prefix[me] if servers.prefix else []
        log = directory / f"member{me}.log"
        members.append(await stack.enter_async_context(started([*prefix, *command], log)))
    try:
        async with asyncio.timeout(JOIN_S):
            for member in members:
                while await member.heard() != "ready":
                    pass
    except TimeoutError:
        words = "; ".join(sorted({member.last_words() for member in members}))
        raise CaseError(f"no group within {JOIN_S:g} s: {words}") from None
    warm_s = max(durations.warm_s, subject.warm_s)
    return Group(members, servers, warm_s=warm_s, window_s=durations.window_s)
