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
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ordercast.runtime.inputs import LoggedCore
from ordercast.runtime.journal import Journal
from ordercast.runtime.link import Link
from ordercast.runtime.peer import Peer
from ordercast.runtime.timers import Timers
from ordercast.trace.spans import Span

if TYPE_CHECKING:
    from ordercast.runtime.node import Node

__all__ = ["Log", "Turn"]

REPORT_DELAY_S = 0.001
REPORT_EVERY_S = 0.008
"""Nobody waits for most reports: not every frame has to carry one."""
REPORT_RIDE_S = 0.01
"""How long one waits for a ride, if this member sends all the time."""
ACK_DELAY_S = 0.01
"""Acknowledgements of packets only let the other end forget."""


class Log(Protocol):
    """Where rows for the trace go."""

    def write(self, spans: Iterable[Span]) -> None: ...

    def sync(self) -> None: ...


class _Mark(NamedTuple):
    """How far a member had come at the end of a turn."""

    links: list[tuple[Link, int, int]]
    """What was sent and received on each."""
    delivered: int
    bundles: int


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
        self._everyone = tuple(peers.values())
        self._journal = journal
        self._log = log
        self._on_release = on_release
        self._stirred = False
        self._protocols = Timers(self._core, node.outgoing, self._timer_ends)
        self._report_timer: asyncio.TimerHandle | None = None
        self._ack_timer: asyncio.TimerHandle | None = None
        self._stopped = False
        self._cutting = False

    @property
    def timers(self) -> int:
        """How many are running, the protocol's and our own."""
        own = (self._report_timer, self._ack_timer)
        return len(self._protocols) + sum(timer is not None for timer in own)

    def stir(self) -> None:
        """Commit at the end of this turn."""
        if not self._stirred and not self._node.failure.done():
            self._stirred = True
            self._loop.call_soon(self._end)

    def end_with(self, step: Callable[[], None]) -> None:
        """The last step of a turn: whatever it stirs up is committed with the rest, right away."""
        self._stirred = True
        step()
        self.commit()

    def _end(self) -> None:
        if self._stirred:  # it may have been committed meanwhile
            self.commit()

    def stop(self) -> None:
        """No timer ends any more; what is left can still be committed."""
        self._stopped = True
        self._protocols.stop()
        for timer in (self._report_timer, self._ack_timer):
            if timer is not None:
                timer.cancel()
        self._report_timer = self._ack_timer = None

    def end_timers(self) -> None:
        """Do now what the protocol meant to do before long: there will be no later."""
        self._protocols.end_all()

    def commit(self) -> None:
        self._stirred = False
        if self._node.failure.done():
            return
        try:
            self._commit()
        except Exception as bug:
            self._node.fail(bug)

    def _commit(self) -> None:
        core, journal = self._core, self._journal
        if (core.started or self._protocols.hurried) and not self._stopped:
            self._start_timers()
            if self._node.failure.done():
                return
        unreported, taken = core.unreported, core.taken
        for peer in self._everyone:
            index = peer.index
            if (unreported[index] and self._may_report(peer)) or (
                taken[index] - peer.reported >= peer.told_bytes and not peer.dead
            ):
                self._report(peer)
        spans, core.spans = core.spans, []
        if journal is not None and journal.full and not self._cutting:
            self._cut(journal, spans)
        elif journal is None or journal.write():
            for peer in self._everyone:
                link = peer.link
                link.cleared, link.safe = link.sent, link.received
            self._let_go(spans, core.delivered, core.stack.sent)
        else:
            journal.commit(partial(self._release, self._mark(), spans))

    def _start_timers(self) -> None:
        """What those that are up at once lead to leaves with this turn; what is asked for then may
        be up at once as well, and waits for the next."""
        self._stirred = True
        self._protocols.start()
        if self._core.started:
            self._protocols.start(now=False)
        self._stirred = False

    def _cut(self, journal: Journal, spans: list[Span]) -> None:
        """Commit, and begin another segment."""
        # A killed member may have a new segment and not yet the rows of what led to it. It finds
        # them in the segment before, so there is no other until the trace has them.
        self._cutting = True
        journal.commit(partial(self._release, self._mark(), spans, cut=True))
        # That may have failed, and the core have stopped half-way: no journal begins with it then.
        if not self._node.failure.done():
            sync = None if self._log is None else self._log.sync
            journal.cut(self._core.snapshot(), after=sync)

    def hurry(self, peer: Peer) -> None:
        """This peer's application waits for word from us of what has come: nothing is put off."""
        peer.waits_for = self._core.come[peer.index]
        self._protocols.hurry()

    def took(self, origin: int) -> None:
        """The application has taken something of this peer's."""
        peer = self._peers[origin]
        if self._core.taken[origin] - peer.reported >= peer.told_bytes:
            self.stir()  # it may be waiting for room

    def _mark(self) -> _Mark:
        """How far everything has come by now."""
        links = [(peer.link, peer.link.sent, peer.link.received) for peer in self._everyone]
        return _Mark(links, self._core.delivered, self._core.stack.sent)

    def _release(self, mark: _Mark, spans: list[Span], *, cut: bool = False) -> None:
        """What led up to this mark is safe. A journal that syncs in a thread calls this long after
        the turn, where nobody else looks at errors."""
        if self._node.failure.done():
            return
        try:
            for link, sent, received in mark.links:
                link.commit(sent, received)
            self._let_go(spans, mark.delivered, mark.bundles)
            if cut:
                self._cutting = False
        except Exception as bug:
            self._node.fail(bug)

    def _let_go(self, spans: list[Span], delivered: int, bundles: int) -> None:
        """What the links are clear to say may be known now, and what was delivered until then."""
        if spans and self._log is not None:
            self._log.write(spans)
        acks = False
        hurry = self._node.outgoing.awaited()
        for peer in self._everyone:
            link = peer.link
            if link.cleared > link.written:
                peer.pump(hurry=hurry)
            if link.safe > link.told or self._stopped:
                # Whoever leaves has no time to lose: the peer may leave too, and wait for this.
                if link.owes_ack_now or self._stopped:
                    self._tell(peer)
                acks = acks or link.owes_ack
        if self._report_timer is None and any(self._core.unreported):
            self._report_soon()
        if acks and self._ack_timer is None:
            self._acknowledge_soon()
        self._on_release(delivered, bundles)

    def _report_soon(self) -> None:
        if not self._stopped:
            rides = self._node.outgoing.keeps_sending()
            delay_s = REPORT_RIDE_S if rides else REPORT_DELAY_S
            self._report_timer = self._loop.call_later(delay_s, self._report_all)

    def _acknowledge_soon(self) -> None:
        if not self._stopped:
            self._ack_timer = self._loop.call_later(ACK_DELAY_S, self._acknowledge_all)

    def _report_all(self) -> None:
        self._report_timer = None
        for peer in self._peers.values():
            if self._core.unreported[peer.index]:
                self._tell(peer)

    def _acknowledge_all(self) -> None:
        self._ack_timer = None
        if self._node.outgoing.keeps_sending():  # they ride, and what came since will
            self._acknowledge_soon()
            return
        for peer in self._peers.values():
            if peer.link.owes_ack:
                peer.acknowledge()

    def _tell(self, peer: Peer) -> None:
        """Whatever there is to tell, now. A report's frame carries the acknowledgement as well."""
        if not peer.dead and self._core.unreported[peer.index]:
            self._report(peer)
            self.stir()
        elif peer.link.owes_ack:
            peer.acknowledge()

    def _may_report(self, peer: Peer) -> bool:
        """Whether what there is to report leaves with this turn: it is waited for, or it rides."""
        return peer.waits_for > 0 or (
            peer.link.sent > peer.link.cleared
            and self._loop.time() - peer.reported_at >= REPORT_EVERY_S
        )

    def _report(self, peer: Peer) -> None:
        peer.reported = self._core.taken[peer.index]
        peer.reported_at = self._loop.time()
        unreported = self._core.unreported[peer.index]
        if unreported and unreported[-1] >= peer.waits_for:
            peer.waits_for = 0
        self._inputs.other("report", peer.index, peer.reported)

    def _timer_ends(self, name: str) -> None:
        try:
            self._node.intake.timer_ended(name)
        except Exception as bug:
            self._node.fail(bug)
