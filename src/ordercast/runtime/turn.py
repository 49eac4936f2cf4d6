"""The end of a turn of the loop: what it has led to is committed all at once, and only then leaves.

To the journal first, then to the trace, then to the peers and to the application. Whoever is owed
an acknowledgement gets it with the next frame, or in a frame of its own after a moment.
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

ACK_DELAY_S = 0.001


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
        self._node = node
        self._core = inputs.core
        self._inputs = inputs
        self._peers = peers
        self._journal = journal
        self._log = log
        self._on_release = on_release
        self._stirred = False
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._ack_timer: asyncio.TimerHandle | None = None
        self._stopped = False

    @property
    def timers(self) -> int:
        """How many are running, the protocol's and our own."""
        return len(self._timers) + (self._ack_timer is not None)

    def stir(self) -> None:
        """Commit at the end of this turn."""
        if not self._stirred and not self._node.failure.done():
            self._stirred = True
            asyncio.get_running_loop().call_soon(self.commit)

    def stop(self) -> None:
        """No timer ends any more; what is left can still be committed."""
        self._stopped = True
        for timer in (*self._timers.values(), self._ack_timer):
            if timer is not None:
                timer.cancel()
        self._timers.clear()
        self._ack_timer = None

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
                if core.owes_report(peer.index) and peer.link.sent > peer.link.cleared:
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

    def acknowledge_soon(self) -> None:
        if self._ack_timer is None and not self._stopped:
            loop = asyncio.get_running_loop()
            self._ack_timer = loop.call_later(ACK_DELAY_S, self._acknowledge_all)

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
        waiting = False
        for peer in self._peers.values():
            peer.pump()
            # Whoever leaves has no time to lose: the peer may be leaving too, and waiting for this.
            if peer.link.owes_ack_now or self._stopped:
                self._acknowledge(peer)
            waiting = waiting or peer.link.owes_ack or self._core.owes_report(peer.index)
        if waiting:
            self.acknowledge_soon()
        self._on_release(delivered, bundles)

    def _acknowledge_all(self) -> None:
        self._ack_timer = None
        for peer in self._peers.values():
            self._acknowledge(peer)

    def _acknowledge(self, peer: Peer) -> None:
        taken = self._core.taken[peer.index]
        due = taken - peer.reported >= self._node.settings.window_bytes // 4
        if not peer.dead and (due or self._core.owes_report(peer.index)):
            self._report(peer)
            self.stir()
        elif peer.link.owes_ack:
            peer.acknowledge()

    def _report(self, peer: Peer) -> None:
        peer.reported = self._core.taken[peer.index]
        self._inputs.other("report", peer.index, peer.reported)

    def _arm(self) -> None:
        """Start the timers that the protocol has asked for; one of the same name is replaced."""
        started, self._core.started = self._core.started, []
        loop = asyncio.get_running_loop()
        for name in started:
            delay_us = self._core.timers.get(name)
            if name in self._timers:
                self._timers.pop(name).cancel()
            if delay_us is not None and not self._stopped:
                self._timers[name] = loop.call_later(delay_us / 1e6, self._timer_ends, name)

    def _timer_ends(self, name: str) -> None:
        self._timers.pop(name, None)
        try:
            self._node.timer_ended(name)
        except Exception as bug:
            self._node.fail(bug)
