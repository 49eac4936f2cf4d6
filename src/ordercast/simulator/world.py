"""The world: virtual time, processes that run protocol objects, and a network between them.

Everything that happens is an entry in one queue ordered by time and then by the moment of
scheduling, and all randomness comes from one seed; so a run is a function of its plan.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from random import Random
from typing import Any

from ordercast.protocols.effects import Accept, Deliver, HostEffect, StartTimer, Transmit
from ordercast.protocols.messages import Held, MessageId, message_of
from ordercast.protocols.stack import Stack
from ordercast.simulator.link import Letter, Link
from ordercast.simulator.plan import Network
from ordercast.trace.event import Event
from ordercast.trace.recorder import Recorder
from ordercast.trace.waits import HELD_MAX

__all__ = ["World"]

Narrator = Callable[[str], None]


class _Process:
    """One member: its protocol object, its pen, and whether it is still up."""

    def __init__(self, stack: Stack, recorder: Recorder) -> None:
        self.stack = stack
        self.recorder = recorder
        self.up = True
        self.copies = 0
        self.crash_after: int | None = None
        self.timers: dict[str, int] = {}


class World:
    def __init__(
        self,
        *,
        build: Callable[[int, int], Stack],
        size: int,
        run: str,
        write: Callable[[Event], None],
        network: Network,
        seed: int = 0,
        narrate: Narrator | None = None,
        by_hand: bool = False,
        detect_us: int = 150_000,
    ) -> None:
        """`by_hand` leaves every packet where it is until `pass_on` moves it."""
        self.now_us = 0
        self.size = size
        self.network = network
        self.narrate = narrate
        self.by_hand = by_hand
        self.detect_us = detect_us
        self.waiting: dict[tuple[int, int], list[Letter]] = {}
        self.held: list[tuple[int, Held]] = []
        """The first messages that had to wait, and what for."""
        self._random = Random(f"network {seed}")
        self._queue: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._scheduled = 0
        self.processes = [
            _Process(
                build(process, size),
                Recorder(run, process, write=write, clock_us=lambda: self.now_us),
            )
            for process in range(size)
        ]
        stack = self.processes[0].stack
        self._codec = stack.codec()
        fifo = network.fifo or stack.ordering.needs_fifo
        self._links = {(p, q): Link(fifo=fifo) for p in range(size) for q in range(size)}
        for process in range(size):
            self._perform(process, self.processes[process].stack.start())

    # What a user or a fault plan does

    def at(self, time_us: int, action: Callable[..., None], *arguments: Any) -> None:
        self._scheduled += 1
        heapq.heappush(self._queue, (time_us, self._scheduled, action, arguments))

    def send(self, process: int, payload: bytes, to: tuple[int, ...] | None = None) -> None:
        sender = self.processes[process]
        if not sender.up:
            return
        message, effects = sender.stack.send(payload, to)
        self._perform(process, effects)
        self._note_held(process, message.id, effects)

    def crash(self, process: int) -> None:
        if self.processes[process].up:
            self.processes[process].up = False
            self.processes[process].recorder.mark("crash")
            self._say(f"p{process} crashes")
            if not self.by_hand:
                for other in range(self.size):
                    self.at(self.now_us + self.detect_us, self.suspect, other, process)

    def crash_after(self, process: int, copies: int) -> None:
        self.processes[process].crash_after = copies

    def suspect(self, process: int, suspected: int) -> None:
        if self.processes[process].up and process != suspected:
            self._perform(process, self.processes[process].stack.suspect(suspected))

    def ring(self, process: int) -> None:
        """By hand: let the timers of this process run out."""
        for name, token in list(self.processes[process].timers.items()):
            self._timer(process, name, token)

    def pass_on(self, source: int, to: int, index: int = 0) -> None:
        """By hand: let one of the packets that wait on this link through."""
        self._arrive(self.waiting[source, to].pop(index))

    def at_rest(self) -> bool:
        """By hand: is nothing under way between processes that are up?"""
        return not any(
            letters and self.processes[source].up and self.processes[to].up
            for (source, to), letters in self.waiting.items()
        )

    def run(self, until_us: int) -> bool:
        """Let time pass. True if the world came to rest: nothing is under way any more."""
        while self._queue:
            if self._queue[0][0] > until_us:
                return False
            self.now_us, _, action, arguments = heapq.heappop(self._queue)
            action(*arguments)
        return True

    # What protocols ask for

    def _perform(self, process: int, effects: list[HostEffect]) -> None:
        performer = self.processes[process]
        for effect in effects:
            if not performer.up:
                return
            if type(effect) is Transmit:
                self._transmit(process, effect)
            elif type(effect) is Accept:
                message = effect.message
                control = self._codec.control_bytes(message, effects)
                performer.recorder.send(message, control_bytes=control)
                self._say(f"p{process} sends {message.id}" + _to(message.destinations))
            elif type(effect) is Deliver:
                message = effect.message
                performer.recorder.deliver(message)
                if self.narrate is not None:
                    self.narrate(f"p{process} delivers {message.id}")
            elif type(effect) is StartTimer:
                self._scheduled += 1
                token = performer.timers[effect.name] = self._scheduled
                self.at(self.now_us + effect.delay_us, self._timer, process, effect.name, token)

    def _transmit(self, source: int, effect: Transmit) -> None:
        sender = self.processes[source]
        size = len(self._codec.encode(effect.packet))
        for to in effect.to:
            letter = Letter(
                source, to, self._links[source, to].next_sequence(), effect.packet, size
            )
            if self.by_hand:
                self.waiting.setdefault((source, to), []).append(letter)
            else:
                self._attempt(letter)
            sender.copies += 1
            if sender.copies == sender.crash_after:
                self.crash(source)
                return

    def _timer(self, process: int, name: str, token: int) -> None:
        owner = self.processes[process]
        if owner.up and owner.timers.get(name) == token:
            del owner.timers[name]
            self._perform(process, owner.stack.timer(name))

    # What the network does

    def _attempt(self, letter: Letter) -> None:
        """One try. A lost packet is sent again as long as its sender is up to do so."""
        network = self.network
        if not self.processes[letter.source].up:
            return
        cut = any(p.cuts(letter.source, letter.to, self.now_us) for p in network.partitions)
        if cut or (network.loss and self._random.random() < network.loss):
            self.at(self.now_us + network.retransmit_us, self._attempt, letter)
            return
        self.at(self.now_us + self._random.randint(*network.delay_us), self._arrive, letter)
        if network.duplication and self._random.random() < network.duplication:
            self.at(self.now_us + self._random.randint(*network.delay_us), self._arrive, letter)

    def _arrive(self, letter: Letter) -> None:
        for ready in self._links[letter.source, letter.to].arrived(letter):
            self._receive(ready)

    def _receive(self, letter: Letter) -> None:
        receiver = self.processes[letter.to]
        if not receiver.up:
            return
        message = message_of(letter.packet)
        if message is not None:
            receiver.recorder.receive(message, control_bytes=letter.size - len(message.payload))
        effects = receiver.stack.receive(letter.source, letter.packet)
        self._perform(letter.to, effects)
        if message is not None:
            self._note_held(letter.to, message.id, effects)

    # What a reader wants to know

    def _say(self, line: str) -> None:
        if self.narrate is not None:
            self.narrate(line)

    def _note_held(self, process: int, message: MessageId, effects: list[HostEffect]) -> None:
        """If the message was not delivered at once, ask why. Asking looks at all that is held, so
        it ends with the list that is kept, unless someone listens."""
        if self.narrate is None and len(self.held) >= HELD_MAX:
            return
        if any(type(e) is Deliver and e.message.id == message for e in effects):
            return
        for held in self.processes[process].stack.held():
            if held.id == message:
                self._say(f"p{process} holds {held}")
                if len(self.held) < HELD_MAX:
                    self.held.append((process, held))


def _to(destinations: tuple[int, ...] | None) -> str:
    return "" if destinations is None else " to " + ", ".join(f"p{p}" for p in destinations)
