"""Where a member's messages come from and go to: stamps, counts, latencies, and credit.

Every message begins with room for a stamp: when it was handed over (the clock of this host), by
whom, and as which of its messages. Under full load only the first of a burst is stamped, so that
the harness costs next to nothing, and whoever takes messages one by one or in lists only compares
the others with filler: to look into each would cost half as much again as to deliver it. At the low
rate each one is stamped, and the receiver checks that every message of every origin comes once and
in order.

Subjects that would let a sender run away from its receivers get credit: now and then a receiver
tells everyone how far it has come, and nobody is more than a window ahead of the slowest.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Sequence
from struct import Struct as Layout
from time import monotonic_ns

__all__ = ["STAMP", "Histogram", "Sink"]

STAMP = Layout("<QII")
STEPS_PER_OCTAVE = 32
"""A histogram's resolution: 2.2 %."""


class Histogram(Counter[int]):
    """How often it took how long; the same in every language, and adds up."""

    def note(self, ns: int) -> None:
        self[int(math.log2(max(ns, 1)) * STEPS_PER_OCTAVE)] += 1

    def quantile_us(self, share: float) -> float | None:
        rank = share * self.total()
        for step in sorted(self):
            rank -= self[step]
            if rank <= 0:
                return float(2 ** ((step + 0.5) / STEPS_PER_OCTAVE) / 1000)
        return None

    def encode(self) -> str:
        return ",".join(f"{step}:{count}" for step, count in sorted(self.items())) or "-"

    @classmethod
    def decode(cls, text: str) -> Histogram:
        pairs = [] if text == "-" else [pair.split(":") for pair in text.split(",")]
        return cls({int(step): int(count) for step, count in pairs})


class Sink:
    def __init__(self, me: int, n: int, payload_bytes: int, window: int | None) -> None:
        self.me = me
        self.payload_bytes = payload_bytes
        self.window = window
        self.sent = 0
        self.delivered = 0
        """Messages of others, ever."""
        self.disorder = 0
        """Messages that were not the next one of their origin, where that is checked."""
        self.latencies = Histogram()
        self.filler = bytes(payload_bytes)
        """A message without a stamp."""
        self.looking = window is not None
        """Whether messages with one are of interest now: whoever takes them one by one counts them
        in `delivered`, and hands those to `look`."""
        self._checking = False
        self._next: list[int | None] = [None] * n
        self._reached = [0] * n
        """The highest number seen of each origin."""
        self._granted = [0] * n
        self._acknowledged = [0] * n
        self.owes_credit = asyncio.Event()
        self._heard = asyncio.Event()
        self._credit = Layout(f"<{n + 1}I")
        assert self._credit.size < payload_bytes, "a credit is told by its length"

    # What subjects call.

    def take(self, blob: bytes | bytearray | memoryview) -> None:
        """One blob of another member."""
        size = len(blob)
        if size < self.payload_bytes:
            self._take_credit(blob)
            return
        self.delivered += size // self.payload_bytes
        if self.looking and blob != self.filler:
            self.look(blob)

    def take_all(self, blobs: Sequence[bytes]) -> None:
        """Blobs of other members that are one message each, and no credit among them."""
        if self.looking:
            filler = self.filler
            for blob in blobs:
                if blob != filler:
                    self.look(blob)
        self.delivered += len(blobs)

    def look(self, blob: bytes | bytearray | memoryview) -> None:
        """Read the stamps of a blob that has been counted."""
        step = self.payload_bytes if self._checking else len(blob)
        for start in range(0, len(blob), step):
            time_ns, origin, number = STAMP.unpack_from(blob, start)
            if not origin:
                return
            if self._sampling:
                self.latencies.note(monotonic_ns() - time_ns)
            self._note(origin - 1, number)

    # What the harness calls.

    def begin(self, mode: str) -> None:
        """`count`, `sample` (latency of what is stamped) or `check` (all is stamped)."""
        self._checking = mode == "check"
        self.looking = self.window is not None or mode != "count"
        self._sampling = mode != "count"
        self.latencies.clear()
        self._next = [None] * len(self._next)

    def stamp(self, ahead: int = 0) -> bytes:
        return STAMP.pack(monotonic_ns(), self.me + 1, self.sent + 1 + ahead)

    def credit(self) -> bytes:
        self.owes_credit.clear()
        self._granted = list(self._reached)
        return self._credit.pack(self.me, *self._reached)

    async def room(self) -> None:
        """Wait until no one is a window behind."""
        while self.window is not None and self.sent - self._slowest() > self.window:
            self._heard.clear()
            await self._heard.wait()

    _sampling = False

    def _slowest(self) -> int:
        others = (seen for who, seen in enumerate(self._acknowledged) if who != self.me)
        return min(others)

    def _note(self, origin: int, number: int) -> None:
        if self._checking:
            if self._next[origin] not in (None, number):
                self.disorder += 1
            self._next[origin] = number + 1
        if self.window is not None:
            self._reached[origin] = number
            if number - self._granted[origin] > self.window // 4:
                self.owes_credit.set()

    def _take_credit(self, blob: bytes | bytearray | memoryview) -> None:
        who, *reached = self._credit.unpack(blob)
        self._acknowledged[who] = reached[self.me]
        self._heard.set()
