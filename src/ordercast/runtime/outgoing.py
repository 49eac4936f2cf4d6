"""What the user sends, on its way to the protocol: bundled, and no more than others can take.

A message leaves at the end of the turn in which it was sent, unless many have left lately: then it
waits for company until the last ones have been gone for the lingering time, or for half of it if
none comes any more. Whoever sends one message after the other without a pause gets large bundles
that way, whoever sends a lot now and then waits little, and whoever sends a little not at all.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from ordercast.errors import UsageError
from ordercast.runtime.bundle import BUNDLE_MESSAGES_MAX, pack
from ordercast.runtime.frames import PAYLOAD_BYTES_MAX

if TYPE_CHECKING:
    from ordercast.runtime.node import Node

__all__ = ["BUNDLE_BYTES", "OVERHEAD_BYTES", "Outgoing", "Slot", "portions"]

BUNDLE_BYTES = 256 * 2**10
"""What a bundle costs is paid once, whatever is in it: so there is room for what a fast sender has
within the lingering time."""
MANY = 16
"""So many messages within the lingering time, and company is worth waiting for."""
PROMPT_S = 0.0003
"""A task that sends within so long after it got its own message back has waited for that."""
SENDS_S = 0.002
"""Whoever has sent a bundle within so long is likely to send the next within the same time."""
OVERHEAD_BYTES = BUNDLE_BYTES // BUNDLE_MESSAGES_MAX
"""What a message counts for besides its payload, so that no bundle has too many."""
BUNDLE_BYTES_MAX = BUNDLE_BYTES + PAYLOAD_BYTES_MAX + OVERHEAD_BYTES
"""No bundle is larger: one that was not quite full, and then the largest message."""
CALLED_AT_ONCE = 16
"""So many of those who wait for room are called when there is some: a turn of the loop for each
would take long, and most of them would be called in vain if each had a lot to send."""


def portions(payloads: list[bytes], total: int, *, limit: int) -> Iterable[tuple[list[bytes], int]]:
    """The messages, of so many bytes in `total`, in portions that fit into a bundle, and what each
    counts for; one that fits into none is a portion by itself."""
    size = total + OVERHEAD_BYTES * len(payloads)
    if size > limit:
        return _cut(payloads, limit)
    return ((payloads, size),) if payloads else ()


def _cut(payloads: list[bytes], limit: int) -> Iterator[tuple[list[bytes], int]]:
    begin = size = 0
    for place, payload in enumerate(payloads):
        more = len(payload) + OVERHEAD_BYTES
        if size + more > limit and place > begin:
            yield payloads[begin:place], size
            begin, size = place, 0
        size += more
    yield payloads[begin:], size


class Slot:
    """A bundle, from when its first message is sent; its number is known once it leaves."""

    __slots__ = ("first", "number", "payloads", "sender", "to")

    def __init__(self, first: int, to: tuple[int, ...] | None) -> None:
        self.first = first
        self.to = to
        self.payloads: list[bytes] = []
        self.number = 0
        self.sender = asyncio.current_task()
        """Who has sent the first one."""


class Outgoing:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._loop = asyncio.get_running_loop()
        self.slot: Slot | None = None
        """What is being filled."""
        self.bytes = 0
        """Of what is in it, and for each message `OVERHEAD_BYTES`."""
        self.limit = max(min(BUNDLE_BYTES, node.settings.window_bytes // 4), 1)
        """With so many it is full: the window is never overrun by more than a bundle."""
        self.busy = True
        """Whoever sends has to wait for `room` first: there is enough for a bundle, or too much
        under way, or this member cannot send at all."""
        self.exempt: frozenset[int] = frozenset()
        """Members whom nobody waits for, whatever they have yet to take."""
        self._full = False
        self._line: deque[asyncio.Event] = deque()
        """Who waits for room, in the order in which they came."""
        self._barred = False
        """Whether the first of them has to wait, and so everyone who comes now."""
        self._safe = 0
        """Our bundles up to this one are committed."""
        self._timer: asyncio.TimerHandle | asyncio.Handle | None = None
        self._left_at = -math.inf
        self._back_at = -math.inf
        self._back_to: asyncio.Task[Any] | None = None
        self._prompt = False
        self._window_began = -math.inf
        self._lately = 0
        """Messages that have left since then; a window is as long as the lingering time."""
        self._waiters: dict[int, list[asyncio.Event]] = {}

    def __len__(self) -> int:
        """How many messages have yet to leave."""
        return len(self.slot.payloads) if self.slot is not None else 0

    def awaited(self) -> bool:
        """Whether anyone here waits to hear how a bundle stands with the others, or seems to: an
        application that sends the moment it got its own message back waits for each. Of that one
        the others are told once, or their answers would be answered as fast, and so on."""
        prompt, self._prompt = self._prompt, False
        return prompt or bool(self._waiters)

    def came_back(self) -> None:
        """The application has taken a bundle of its own."""
        self._back_at, self._back_to = self._loop.time(), asyncio.current_task()

    def keeps_sending(self) -> bool:
        """Whether a bundle has left so lately that the next will leave before long."""
        return self._loop.time() - self._left_at < SENDS_S

    def check_loop(self) -> None:
        """Raise if another thread sends or receives, with a loop of its own: now and then that
        would do."""
        if asyncio.get_running_loop() is not self._loop:
            raise UsageError(
                "this group belongs to another event loop: from another thread, use "
                "asyncio.run_coroutine_threadsafe(group.send(payload), group.loop)"
            )

    def begin(self, to: tuple[int, ...] | None) -> Slot:
        """A new bundle for these members."""
        self.flush()
        self.slot = Slot(self._node.core.sent + 1, to)
        self._schedule()
        return self.slot

    def urgent(self, payload: bytes) -> None:
        """Send to everyone now, however much is under way: what this says may be the way out."""
        self.begin(None).payloads.append(payload)
        self.bytes += len(payload) + OVERHEAD_BYTES
        self.flush()

    async def room(self) -> None:
        """Let the loop turn, and wait until every member has taken enough of what was sent: first
        come, first served. Until the loop turns again there is room for one message of any size."""
        self._node.check_alive()
        called = asyncio.Event()
        self._line.append(called)
        turned = False
        try:
            while self._line[0] is not called:
                called.clear()
                await called.wait()
                self._node.check_alive()
                turned = True
            await self._room_for_first(turned=turned)
            self.busy = False
        finally:
            if self._line[0] is called:
                self._line.popleft()
                self._barred = False
                self._call_next()
            else:
                self._line.remove(called)

    async def _room_for_first(self, *, turned: bool) -> None:
        """Those who come meanwhile stand in line, so that what is free now is free afterwards."""
        turned = turned or self.bytes < self.limit
        while True:
            if self.bytes >= self.limit:
                self.flush()
            self._measure()
            if turned and not self._full:
                return
            self._barred = self.busy = True
            await (self._node.wait() if self._full else asyncio.sleep(0))
            self._node.check_alive()
            turned = True

    def _call_next(self) -> None:
        if self._line and not self._line[0].is_set():
            for called in islice(self._line, CALLED_AT_ONCE):
                called.set()

    def _measure(self) -> None:
        outstanding = self._node.core.standing.outstanding(self.exempt)
        self._full = outstanding > self._node.settings.window_bytes
        crowded = self._full or self._barred or self.bytes >= self.limit
        self.busy = crowded or self._node.over

    def waits_for(self, process: int) -> bool:
        """Has it so much of ours to take that nothing more is sent?"""
        if process in self.exempt:
            return False
        standing = self._node.core.standing
        return standing.owed[process] - standing.taken[process] > self._node.settings.window_bytes

    def stuck_on(self, process: int) -> bool:
        """Is it this member's application that others wait for? Not if there is little that was
        delivered to it: then someone else holds the rest up."""
        if not self.waits_for(process):
            return False
        standing = self._node.core.standing
        taken = standing.taken[process] + standing.undelivered(process)
        return standing.owed[process] - taken >= self._node.settings.told_bytes

    def flush(self) -> None:
        """Hand what there is to the protocol, as one bundle if that can be."""
        slot = self.slot
        if slot is None:
            return
        self.slot, self.bytes = None, 0
        self.stop()
        payloads, slot.payloads = slot.payloads, []
        self._left(slot, len(payloads))
        if slot.to is not None and self._one_by_one(slot.to):
            self._submit(slot, ([payload] for payload in payloads))
        else:
            self._submit(slot, (payloads,))
        self._measure()
        self._node.intake.see_to_all()

    def _one_by_one(self, to: tuple[int, ...]) -> bool:
        """Where sending and delivering are one moment, no message to oneself is sent before the
        one ahead of it is delivered."""
        return to == (self._node.me,) and not self._node.core.stack.ordering.accepts_at_once

    def _submit(self, slot: Slot, bundles: Iterable[list[bytes]]) -> None:
        first = slot.first
        for payloads in bundles:
            bundle = pack(first, payloads)
            if len(payloads) > BUNDLE_MESSAGES_MAX or len(bundle) > BUNDLE_BYTES_MAX:
                # Nobody would take it, and a journal that had it could never be gone on with.
                size = f"{len(payloads)} messages and {len(bundle)} bytes"
                bug = AssertionError(f"a bundle of {size}: `room` lets nobody make one")
                self._node.fail(bug)
                raise bug
            slot.number = self._node.submit(bundle, first, payloads, slot.to)
            first += len(payloads)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def settle(self, safe: int) -> None:
        """Bundles up to `safe` are committed; wake whoever waits for one that has changed."""
        changed = self._node.core.standing.changed
        if self._waiters:
            news = {*changed, *range(self._safe + 1, safe + 1)}
            for number in self._waiters.keys() & news:
                for waiter in self._waiters[number]:
                    waiter.set()
        self._safe = safe
        changed.clear()

    async def until(self, slot: Slot, condition: Callable[[], bool]) -> None:
        """Wait until the bundle is committed here, and others stand with it as they should."""
        self.flush()
        waiter = asyncio.Event()
        waiters = self._waiters.setdefault(slot.number, [])
        waiters.append(waiter)
        try:
            while not slot.number or slot.number > self._safe or not condition():
                self._node.check_alive()
                waiter.clear()
                await waiter.wait()
        finally:
            waiters.remove(waiter)
            if not waiters:
                self._waiters.pop(slot.number, None)

    def wake_all(self) -> None:
        """The end has come: whoever waits is to see it."""
        self.busy = True
        for called in self._line:
            called.set()
        for waiters in self._waiters.values():
            for waiter in waiters:
                waiter.set()

    def _left(self, slot: Slot, count: int) -> None:
        now = self._loop.time()
        if now - self._window_began >= self._node.settings.linger_s:
            self._window_began, self._lately = now, 0
        self._lately += count
        self._left_at = now
        self._prompt = now - self._back_at < PROMPT_S and slot.sender is self._back_to
        slot.sender = None

    def _schedule(self) -> None:
        left_s = self._lingers_s()
        if self._lately < MANY or left_s <= 0:
            self._timer = self._loop.call_soon(self._time_is_up)
        else:
            half_s = left_s - self._node.settings.linger_s / 2
            self._timer = self._loop.call_later(max(half_s, 0), self._half_time)

    def _lingers_s(self) -> float:
        """How long it is until the last ones have been gone for the lingering time."""
        return self._left_at + self._node.settings.linger_s - self._loop.time()

    def _half_time(self) -> None:
        """Does company still come? One turn tells: whoever sends without a pause is back then."""
        self._timer = self._loop.call_soon(self._look_for_company, len(self))

    def _look_for_company(self, before: int) -> None:
        left_s = self._lingers_s()
        if len(self) == before or left_s <= 0:
            self._time_is_up()
        else:
            self._timer = self._loop.call_later(left_s, self._time_is_up)

    def _time_is_up(self) -> None:
        try:
            self._node.turn.end_with(self.flush)
        except Exception as bug:
            self._node.fail(bug)
