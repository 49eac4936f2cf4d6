"""The end of a turn of the loop: what it has led to is committed all at once, and only then leaves.

To the journal first, then to the trace, then to the peers and to the application.

What peers have to be told rides on the next frame to them. If there is none, it leaves by itself
after a moment: later if this member sends all the time, for then there will be one; at once if the
peer has said that its application waits for word.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol

from ordercast.runtime.inputs import LoggedCore
from ordercast.runtime.journal import Journal
from ordercast.runtime.link import Link
from ordercast.runtime.peer import Peer
from ordercast.trace.spans import Span

if TYPE_CHECKING:
    from ordercast.runtime.node import Node

__all__ = ["Log", "Turn"]

REPORT_DELAY_S = 0.001
REPORT_EVERY_S = 0.004
"""Nobody waits for most reports: not every frame has to carry one."""
REPORT_RIDE_S = 0.008
"""How long one waits for a ride, if this member sends all the time."""
RIDE_S = 0.002
"""Whoever has sent a bundle within so long is likely to send the next within the same time."""
ACK_DELAY_S = 0.01
"""Acknowledgements of packets only let the other end forget."""


class Log(Protocol):
    """Where rows for the trace go."""

    def write(self, spans: Iterable[Span]) -> None: ...


class Turn:
    def __init__(
        self,
        node: Node,
        inputs: LoggedCore,
        peers: Mapping[int, Peer],
        *,
        journal: Journal | None,
        log: Log | None,
        on_release: Callable[[int, int], None],
    ) -> None:
        """`on_release` is told up to which position deliveries may be seen, and how many bundles
        of our own are safe."""
        self._loop = asyncio.get_running_loop()
        self._node = node
        self._core = inputs.core
        self._inputs = inputs
        self._peers = peers
        self._journal = journal
        self._log = log
        self._on_release = on_release
        self._stirred = False
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._riding: set[str] = set()
        """Those that were put off."""
        self._report_timer: asyncio.TimerHandle | None = None
        self._ack_timer: asyncio.TimerHandle | None = None
        self._hurried = False
        self._due_bytes = max(node.settings.window_bytes // 4, 1)
        self._stopped = False

    @property
    def timers(self) -> int:
        """How many are running, the protocol's and our own."""
        own = (self._report_timer, self._ack_timer)
        return len(self._timers) + sum(timer is not None for timer in own)

    def stir(self) -> None:
        """Commit at the end of this turn."""
        if not self._stirred and not self._node.failure.done():
            self._stirred = True
            self._loop.call_soon(self.commit)

    def stop(self) -> None:
        """No timer ends any more; what is left can still be committed."""
        self._stopped = True
        for timer in (*self._timers.values(), self._report_timer, self._ack_timer):
            if timer is not None:
                timer.cancel()
        self._timers.clear()
        self._report_timer = self._ack_timer = None

    def end_timers(self) -> None:
        """Do now what the protocol meant to do before long: there will be no later."""
        for name in list(self._timers):
            self._timers[name].cancel()
            self._timer_ends(name)

    def commit(self) -> None:
        self._stirred = False
        if self._node.failure.done():
            return
        try:
            core = self._core
            for peer in self._peers.values():
                if self._reports_now(peer):
                    self._report(peer)
            self._arm()
            marks = [(p.link, p.link.sent, p.link.received) for p in self._peers.values()]
            spans, core.spans = core.spans, []
            release = partial(self._release, marks, spans, core.delivered, core.stack.sent)
            if self._journal is None:
                release()
            else:
                self._journal.commit(release)
                if self._journal.full:
                    self._journal.cut(core.snapshot())
        except Exception as bug:
            self._node.fail(bug)

    def hurry(self, peer: Peer) -> None:
        """This peer's application waits for word from us: nothing is put off."""
        peer.waits = self._hurried = True

    def took(self, origin: int) -> None:
        """The application has taken something of this peer's."""
        if self._due(self._peers[origin]):
            self.stir()

    def _release(
        self,
        marks: list[tuple[Link, int, int]],
        spans: list[Span],
        delivered: int,
        bundles: int,
    ) -> None:
        """What led to this is safe: now it may be known."""
        if self._node.failure.done():
            return
        if spans and self._log is not None:
            self._log.write(spans)
        for link, sent, received in marks:
            link.commit(sent, received)
        reports = acks = False
        hurry = self._node.outgoing.awaited
        for peer in self._peers.values():
            peer.pump(hurry=hurry)
            # Whoever leaves has no time to lose: the peer may be leaving too, and waiting for this.
            if peer.link.owes_ack_now or self._stopped:
                self._tell(peer)
            reports = reports or self._core.owes_report(peer.index)
            acks = acks or peer.link.owes_ack
        if reports:
            self._report_soon()
        if acks:
            self._acknowledge_soon()
        self._on_release(delivered, bundles)

    def _report_soon(self) -> None:
        if self._report_timer is None and not self._stopped:
            rides = self._node.outgoing.left_within(RIDE_S)
            delay_s = REPORT_RIDE_S if rides else REPORT_DELAY_S
            self._report_timer = self._loop.call_later(delay_s, self._report_all)

    def _acknowledge_soon(self) -> None:
        if self._ack_timer is None and not self._stopped:
            self._ack_timer = self._loop.call_later(ACK_DELAY_S, self._acknowledge_all)

    def _report_all(self) -> None:
        self._report_timer = None
        for peer in self._peers.values():
            if self._core.owes_report(peer.index):
                self._tell(peer)

    def _acknowledge_all(self) -> None:
        self._ack_timer = None
        for peer in self._peers.values():
            if peer.link.owes_ack:
                peer.acknowledge()

    def _tell(self, peer: Peer) -> None:
        """Whatever there is to tell, now. A report's frame carries the acknowledgement as well."""
        if not peer.dead and self._core.owes_report(peer.index):
            self._report(peer)
            self.stir()
        elif peer.link.owes_ack:
            peer.acknowledge()

    def _reports_now(self, peer: Peer) -> bool:
        if self._due(peer):
            return True
        if not self._core.owes_report(peer.index):
            return False
        rides = peer.link.sent > peer.link.cleared
        return peer.waits or (rides and self._loop.time() - peer.reported_at >= REPORT_EVERY_S)

    def _due(self, peer: Peer) -> bool:
        """Whether so much of it was taken that it may be waiting for room."""
        taken = self._core.taken[peer.index] - peer.reported
        return taken >= self._due_bytes and not peer.dead

    def _report(self, peer: Peer) -> None:
        peer.reported = self._core.taken[peer.index]
        peer.reported_at = self._loop.time()
        peer.waits = False
        self._inputs.other("report", peer.index, peer.reported)

    def _arm(self) -> None:
        """Start the timers that the protocol has asked for; one of the same name is replaced. A
        short one is meant to let company come: whoever sends all the time has it before long."""
        started, self._core.started = self._core.started, []
        hurried, self._hurried = self._hurried, False
        if hurried:
            started += self._riding
        if not started or self._stopped:
            return
        rides = not hurried and self._node.outgoing.left_within(RIDE_S)
        for name in started:
            if name in self._timers:
                self._timers.pop(name).cancel()
                self._riding.discard(name)
            delay_us = self._core.timers.get(name)
            if delay_us is None:
                continue
            delay_s = delay_us / 1e6
            if rides and delay_s < RIDE_S:
                delay_s = RIDE_S
                self._riding.add(name)
            self._timers[name] = self._loop.call_later(delay_s, self._timer_ends, name)

    def _timer_ends(self, name: str) -> None:
        self._timers.pop(name, None)
        self._riding.discard(name)
        try:
            self._node.intake.timer_ended(name)
        except Exception as bug:
            self._node.fail(bug)
