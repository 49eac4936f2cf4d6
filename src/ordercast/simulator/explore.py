"""A small model checker: every interleaving of a small world, with the same protocol objects.

A state is what all processes know, what is on the links, what is left to be sent, and the logs so
far. From each state everything that may happen next is tried: a send, the arrival of any packet
(of the oldest of its link, if links are FIFO), a crash at any point of a step. Packets of a
process that has crashed may arrive or be lost, each on its own. Timers and suspicions are slow:
they come when nothing is on the links. States that have been seen are not entered again, and a
step of a process is computed once for each of its states, since protocols are pure.

Logs only grow, so whatever goes wrong shows in a final state; only these are judged.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from ordercast.protocols.effects import Accept, Deliver, HostEffect, StartTimer, Transmit
from ordercast.protocols.messages import Message
from ordercast.protocols.stack import Stack
from ordercast.trace.directory import Trace
from ordercast.trace.event import Event, Kind
from ordercast.trace.manifest import Manifest

__all__ = ["Destinations", "Exploration", "explore"]

Destinations = tuple[int, ...] | None
Judge = Callable[[Trace], list[str]]
Log = tuple[tuple[Kind, Message | None], ...]
Links = tuple[tuple[int, int, tuple[int, ...]], ...]
Input = (
    tuple[Literal["send"], Destinations]
    | tuple[Literal["receive"], int, int]
    | tuple[Literal["timer"], str]
    | tuple[Literal["suspect"], int]
)


class State(NamedTuple):
    processes: tuple[int, ...]
    """Which of the known states each process is in."""
    links: Links
    """For each link that is not empty: source, destination, and the packets by their numbers."""
    sent: tuple[int, ...]
    down: frozenset[int]
    timers: frozenset[tuple[int, str]]
    suspicions: frozenset[tuple[int, int]]
    logs: tuple[Log, ...]
    crashes_left: int


@dataclass(frozen=True, slots=True)
class Exploration:
    states: int
    finals: int
    complete: bool
    """Were all states visited, or was there a limit?"""
    failure: tuple[str, ...] | None
    """What happened, step by step, and what is wrong with it; None if nothing ever is."""


def explore(
    build: Callable[[int, int], Stack],
    programs: list[list[Destinations]],
    *,
    judge: Judge,
    crashes: int = 0,
    states_max: int = 1_000_000,
) -> Exploration:
    """`programs` lists for each process the destinations of what it sends, in order."""
    return _Explorer(build, programs, judge, crashes).run(states_max)


class _Explorer:
    def __init__(
        self,
        build: Callable[[int, int], Stack],
        programs: list[list[Destinations]],
        judge: Judge,
        crashes: int,
    ) -> None:
        self.size = len(programs)
        self.programs = programs
        self.judge = judge
        self.snapshots: list[bytes] = []
        self.numbers: dict[Hashable, int] = {}
        self.packets: list[Any] = []
        self.packet_numbers: dict[bytes, int] = {}
        self.steps: dict[tuple[int, Input], tuple[int, tuple[HostEffect, ...]]] = {}
        self.judged: set[tuple[Log, ...]] = set()
        stacks = [build(me, self.size) for me in range(self.size)]
        self.codec = stacks[0].codec()
        self.fifo = stacks[0].ordering.needs_fifo
        self.start = State(
            processes=tuple(map(self._number, stacks)),
            links=(),
            sent=(0,) * self.size,
            down=frozenset(),
            timers=frozenset(),
            suspicions=frozenset(),
            logs=((),) * self.size,
            crashes_left=crashes,
        )

    def run(self, states_max: int) -> Exploration:
        came_from: dict[State, tuple[State, str] | None] = {self.start: None}
        frontier = [self.start]
        finals = 0
        while frontier:
            state = frontier.pop()
            final = True
            for name, following in self._following(state):
                final = False
                if following not in came_from:
                    came_from[following] = (state, name)
                    frontier.append(following)
            if final:
                finals += 1
                if broken := self._broken(state):
                    story = (*_way(state, came_from), *broken)
                    return Exploration(len(came_from), finals, False, story)
            if len(came_from) >= states_max:
                return Exploration(len(came_from), finals, False, None)
        return Exploration(len(came_from), finals, True, None)

    # What may happen

    def _following(self, state: State) -> Iterator[tuple[str, State]]:
        for process in range(self.size):
            done = state.sent[process]
            if process not in state.down and done < len(self.programs[process]):
                sent = _put(state.sent, process, done + 1)
                message: Input = ("send", self.programs[process][done])
                yield from self._step(state._replace(sent=sent), process, message)
        for source, to, packets in state.links:
            for packet in packets[:1] if self.fifo else dict.fromkeys(packets):
                rest = state._replace(links=self._taken(state.links, source, to, packet))
                if to in state.down:
                    yield f"p{to} is down", rest
                    continue
                yield from self._step(rest, to, ("receive", source, packet))
                if source in state.down:
                    # A link that keeps its order and loses a packet lets nothing after it through.
                    lost = _without(state.links, source, to) if self.fifo else rest.links
                    yield f"a packet of p{source} to p{to} is lost", state._replace(links=lost)
        for process in range(self.size):
            if state.crashes_left and process not in state.down:
                yield f"p{process} crashes", self._crashed(state, process)
        if not state.links:
            yield from self._slow(state)

    def _slow(self, state: State) -> Iterator[tuple[str, State]]:
        for process, name in sorted(state.timers):
            if process not in state.down:
                left = state._replace(timers=state.timers - {(process, name)})
                yield from self._step(left, process, ("timer", name))
        for process, suspected in sorted(state.suspicions):
            if process not in state.down:
                left = state._replace(suspicions=state.suspicions - {(process, suspected)})
                yield from self._step(left, process, ("suspect", suspected))

    def _step(self, state: State, process: int, what: Input) -> Iterator[tuple[str, State]]:
        after, effects = self._transition(state.processes[process], what)
        moved = state._replace(processes=_put(state.processes, process, after))
        name = f"p{process}: {' '.join(map(str, what))}"
        yield name, self._performed(moved, process, effects)
        if state.crashes_left:
            for done in range(len(effects)):
                cut = self._performed(moved, process, effects[:done])
                yield f"{name}, and crashes in the middle", self._crashed(cut, process)

    # What it leads to

    def _transition(self, number: int, what: Input) -> tuple[int, tuple[HostEffect, ...]]:
        if (number, what) not in self.steps:
            stack: Stack = pickle.loads(self.snapshots[number])  # noqa: S301
            if what[0] == "send":
                _, effects = stack.send(b"", what[1])
            elif what[0] == "receive":
                effects = stack.receive(what[1], self.packets[what[2]])
            elif what[0] == "timer":
                effects = stack.timer(what[1])
            else:
                effects = stack.suspect(what[1])
            self.steps[number, what] = self._number(stack), tuple(effects)
        return self.steps[number, what]

    def _performed(self, state: State, process: int, effects: tuple[HostEffect, ...]) -> State:
        links, log, timers = state.links, list(state.logs[process]), set(state.timers)
        for effect in effects:
            if type(effect) is Transmit:
                packet = self._packet_number(effect.packet)
                for to in effect.to:
                    links = self._added(links, process, to, packet)
            elif type(effect) is Accept:
                log.append(("send", effect.message))
            elif type(effect) is Deliver:
                log.append(("deliver", effect.message))
            elif type(effect) is StartTimer:
                timers.add((process, effect.name))
        return state._replace(
            links=links,
            logs=_put(state.logs, process, tuple(log)),
            timers=frozenset(timers),
        )

    def _crashed(self, state: State, process: int) -> State:
        crash: Log = (*state.logs[process], ("crash", None))
        others = {(q, process) for q in range(self.size) if q != process}
        return state._replace(
            down=state.down | {process},
            logs=_put(state.logs, process, crash),
            suspicions=state.suspicions | others,
            crashes_left=state.crashes_left - 1,
        )

    def _added(self, links: Links, source: int, to: int, packet: int) -> Links:
        found = {(s, t): packets for s, t, packets in links}
        packets = (*found.get((source, to), ()), packet)
        # Where any packet may come next their order means nothing; sorted, states look alike.
        found[source, to] = packets if self.fifo else tuple(sorted(packets))
        return tuple((s, t, found[s, t]) for s, t in sorted(found))

    def _taken(self, links: Links, source: int, to: int, packet: int) -> Links:
        left = []
        for s, t, packets in links:
            if (s, t) == (source, to):
                at = packets.index(packet)
                packets = packets[:at] + packets[at + 1 :]
            if packets:
                left.append((s, t, packets))
        return tuple(left)

    # States and packets by number

    def _number(self, stack: Stack) -> int:
        key = _frozen(stack)
        if key not in self.numbers:
            self.numbers[key] = len(self.snapshots)
            self.snapshots.append(pickle.dumps(stack))
        return self.numbers[key]

    def _packet_number(self, packet: Any) -> int:
        data = self.codec.encode(packet)
        if data not in self.packet_numbers:
            self.packet_numbers[data] = len(self.packets)
            self.packets.append(packet)
        return self.packet_numbers[data]

    def _broken(self, state: State) -> list[str]:
        if state.logs in self.judged:
            return []
        self.judged.add(state.logs)
        events = [
            Event("r", process, position, kind)
            if message is None
            else Event("r", process, position, kind, *message.id, message.destinations)
            for process, log in enumerate(state.logs)
            for position, (kind, message) in enumerate(log)
        ]
        names = tuple(f"p{process}" for process in range(self.size))
        return self.judge(Trace.of(Manifest("r", names, quiesced=True), events))


def _without(links: Links, source: int, to: int) -> Links:
    return tuple(link for link in links if link[:2] != (source, to))


def _put(values: tuple[Any, ...], index: int, value: Any) -> tuple[Any, ...]:
    return (*values[:index], value, *values[index + 1 :])


def _way(state: State, came_from: dict[State, tuple[State, str] | None]) -> list[str]:
    steps: list[str] = []
    while (step := came_from[state]) is not None:
        state, name = step
        steps.append(name)
    return steps[::-1]


def _frozen(value: Any) -> Hashable:
    """The same for objects that are equal, however they came about."""
    if isinstance(value, dict):
        return frozenset((_frozen(key), _frozen(part)) for key, part in value.items())
    if isinstance(value, set | frozenset):
        return frozenset(map(_frozen, value))
    if isinstance(value, list | tuple | deque):
        return tuple(map(_frozen, value))
    if isinstance(value, Struct):
        return value
    if hasattr(value, "__dict__"):
        return type(value).__name__, _frozen(value.__getstate__())  # not what only saves time
    assert isinstance(value, Hashable)
    return value
