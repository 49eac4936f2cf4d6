"""What a member knows: the protocol, its links, what was delivered and not yet taken. Pure.

Every change comes in through one of the inputs below, and the same inputs in the same order give
the same state and the same outputs. So a journal need only keep the inputs: whoever feeds them to
a fresh core has the member back as it was when it was killed, whatever the algorithm.

    inputs                                         outputs
    submit    the user sends a bundle              links       packets for others, retained there
    take      a packet has come from a peer        queue       bundles delivered, for the user
    timer     a timer of the protocol has ended    timers      those of the protocol that run
    suspect, trust, bury   about a peer            spans       rows for the trace
    report    tell a peer what was delivered here  settled     own bundles whose standing changed
    meet      a peer has introduced itself
    restart   the member was down and is back
    leave     it ends on purpose
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ordercast.protocols.effects import Accept, Deliver, HostEffect, Transmit
from ordercast.protocols.messages import Message, message_of
from ordercast.runtime.bundle import Bundle, Opened, unpack
from ordercast.runtime.standing import Report
from ordercast.runtime.state import State
from ordercast.trace.event import Kind
from ordercast.trace.spans import Span

__all__ = ["Core"]


class Core(State):
    __slots__ = ()

    # Inputs.

    def start(self, session: str = "") -> None:
        self._begin(session)
        self._perform(self.stack.start())

    def submit(self, bundle: bytes, first: int, payloads: list[bytes], to: Any = None) -> int:
        """Send a bundle that `pack` made of these. Its number."""
        assert first == self.sent + 1
        message, effects = self.stack.send(bundle, to)
        self.sent += len(payloads)
        self._at_hand = Opened(message.id, first, payloads)
        self.standing.sent(message.id.number, len(bundle), message.addressees(self.stack.size))
        before = self.delivered
        self._perform(effects)
        if self.delivered == before:
            self._own[message.id] = self._at_hand
            self._arrived(message)
        return message.id.number

    def take(self, source: int, packet: bytes) -> None:
        """A packet that `source` put on its link. Bad ones are used up all the same."""
        self.links[source].received += 1
        decoded = self.codec.decode(packet)
        if type(decoded) is Report:
            self.standing.told(source, decoded.ranges, decoded.taken)
            return
        message = self.stack.message_in(source, decoded)
        if message is None:
            self._perform(self.stack.handle(source, decoded))
            return
        self._at_hand = opened = Opened(message.id, *unpack(message))
        origin, number = message.id
        if number > self.come[origin]:
            self.come[origin] = number
        effects = self.stack.handle(source, decoded)
        self.rows += len(opened.payloads)
        if self.recording:
            control = len(packet) - len(message.payload)
            self._note("receive", self.clock_us(), opened, control)
        before = self.delivered
        self._perform(effects)
        if self.delivered == before:
            self._arrived(message)

    def timer(self, name: str) -> None:
        self.timers.pop(name, None)
        self._perform(self.stack.timer(name))

    def suspect(self, process: int) -> None:
        self._perform(self.stack.suspect(process))

    def trust(self, process: int) -> None:
        self._perform(self.stack.trust(process))

    def bury(self, process: int) -> None:
        """This member will never come back, or will not be let in."""
        self.links[process].clear()
        self.standing.bury(process, sent=self.stack.sent)
        self.unreported[process].clear()
        self._perform(self.stack.bury(process))

    def report(self, peer: int, taken: int) -> None:
        """Tell an origin what of it was delivered here, and how much the application has taken."""
        ranges, self.unreported[peer] = tuple(self.unreported[peer]), []
        self._put((peer,), self.codec.encode(Report(ranges, taken)), own=False)

    def meet(self, peer: int, life: str, session: str = "") -> None:
        self.lives[peer] = life
        self.links[peer].session = session

    def restart(self, session: str = "") -> None:
        """The member was down, and is back with what it knew."""
        self._begin(session)
        kinds: tuple[Kind, ...] = ("join",) if self.left else ("crash", "recover")
        self.left = False
        for kind in kinds:
            self._mark(kind)

    def _begin(self, session: str) -> None:
        self.session = session
        for link in self.links.values():
            link.known = link.sent

    def leave(self) -> None:
        self.left = True
        self._mark("leave")

    # Effects.

    def _perform(self, effects: Iterable[HostEffect]) -> None:
        accepted: Span | None = None
        for effect in effects:
            if type(effect) is Deliver:
                self._deliver(effect.message)
            elif type(effect) is Transmit:
                packet = self.codec.encode(effect.packet)
                message = message_of(effect.packet)
                own = message is not None and message.id.origin == self.stack.me
                if accepted is not None and own and message is not None:
                    accepted.control_bytes = len(packet) - len(message.payload)
                    accepted = None
                self._put(effect.to, packet, own=own)
            elif type(effect) is Accept:
                opened = self._open(effect.message)
                self.rows += len(opened.payloads)
                if self.recording:
                    accepted = self._note("send", self.clock_us(), opened)
                    accepted.destinations = effect.message.destinations
                    if chars := self.excerpt_chars:
                        accepted.excerpts = opened.excerpts(chars)
            else:
                self.timers[effect.name] = effect.delay_us
                self.started.append(effect.name)

    def _put(self, to: Iterable[int], packet: bytes, *, own: bool) -> None:
        for index in to:
            if self.carry is None:
                self.links[index].put(packet)
            else:
                self.carry(index, packet, own)

    def _deliver(self, message: Message) -> None:
        origin, number = message.id
        opened = self._open(message)
        bundle = Bundle(
            origin,
            number,
            opened.first,
            opened.payloads,
            self.delivered + 1,
            self.clock_us(),
            len(message.payload),
        )
        count = len(opened.payloads)
        self.delivered += count
        self.rows += count
        self.last[origin] = max(self.last[origin], opened.first + count - 1)
        if self.arrivals:
            self.arrivals.pop(message.id, None)
        self.queue.append(bundle)
        if self.recording:
            self._note("deliver", bundle.time_us, opened)
        if origin == self.stack.me:
            self._own.pop(message.id, None)
            self.standing.told(origin, (number, number), 0)
        else:
            fresh = self.unreported[origin]
            if fresh and fresh[-1] == number - 1:
                fresh[-1] = number
            else:
                fresh += number, number

    def _arrived(self, message: Message) -> None:
        """It is held, most likely; it may also be a copy of what was delivered long ago."""
        opened = self._open(message)
        self.arrivals[message.id] = opened.first, len(opened.payloads), self.clock_us()
        if len(self.arrivals) > self._arrivals_max:
            held = {held.id for held in self.stack.held()}
            self.arrivals = {id: value for id, value in self.arrivals.items() if id in held}
            self._arrivals_max = 2 * len(held) + 256

    def _open(self, message: Message) -> Opened:
        opened = self._at_hand
        if opened is None or opened.id != message.id:
            opened = self._own.get(message.id) or Opened(message.id, *unpack(message))
            self._at_hand = opened
        return opened

    def _note(
        self, kind: Kind, time_us: int, opened: Opened, control_bytes: int | None = None
    ) -> Span:
        count, sizes = len(opened.payloads), opened.sizes()
        span = Span(kind, time_us, opened.id[0], opened.first, count, sizes, control_bytes)
        self.spans.append(span)
        return span

    def _mark(self, kind: Kind) -> None:
        self.rows += 1
        if self.recording:
            self.spans.append(Span(kind, self.clock_us()))
