"""Plays a scenario and watches the links meanwhile: a trace tells what users saw, and these pages
must also show which packet went where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from ordercast.oracle import judge
from ordercast.simulator.scenario import Block, Scenario, parse
from ordercast.simulator.world import World
from ordercast.trace import Trace

__all__ = ["Flight", "Remark", "Rest", "Story", "play"]

STEP_US = 1_000
"""Played by hand, a world has no speed. On paper each step takes a millisecond."""


@dataclass(slots=True)
class Flight:
    """One copy of a packet on one link."""

    source: int
    to: int
    packet: Any
    departed_us: int
    arrived_us: int | None = None


@dataclass(frozen=True, slots=True)
class Remark:
    """What happened to a process without any packet."""

    process: int
    time_us: int
    text: str


@dataclass(slots=True)
class Rest:
    """A time in which a process was passive."""

    process: int
    cause: object
    since_us: int
    until_us: int | None = None


@dataclass(slots=True)
class Story:
    blocks: list[Block] = field(default_factory=list)
    flights: list[Flight] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    rests: list[Rest] = field(default_factory=list)
    down: set[int] = field(default_factory=set)
    trace: Trace = field(init=False)

    @property
    def title(self) -> str:
        """The first sentence of the file."""
        text = " ".join(line.lstrip("# ") for line in self.blocks[0].comment)
        return text.split(". ")[0].rstrip(".")


def play(text: str) -> Story:
    scenario = Scenario(judge=_verdict_lines)
    story = Story()
    for block in parse(text):
        world = scenario._world
        verb, *arguments = block.command.split() or [""]
        if world is not None and verb in ("ring", "suspect"):
            world.now_us += 1  # So that it has a place of its own on paper.
            about = "timer" if verb == "ring" else f"suspects p{arguments[1]}"
            story.remarks.append(Remark(int(arguments[0]), world.now_us * STEP_US, about))
        output = scenario.command(block.command)
        story.blocks.append(Block(block.comment, block.command, tuple(output)))
        if verb == "group":
            assert scenario._world is not None, output
            _watch(scenario._world, story)
        elif scenario._world is not None:
            _note(scenario._world, story)
    assert scenario._world is not None, "a story needs a group"
    processes = scenario._world.processes
    story.down = {index for index, process in enumerate(processes) if not process.up}
    story.trace = _slowly(scenario.trace())
    _check_nothing_is_left(story)
    return story


def _verdict_lines(trace: Trace) -> Iterator[str]:
    for verdict in judge(trace):
        why = "" if verdict.witness is None else f": {verdict.witness.sentence}"
        yield f"{verdict.property} {verdict.verdict} ({verdict.checked} checked){why}"


def _watch(world: World, story: Story) -> None:
    pass_on = world.pass_on

    def watched(source: int, to: int, index: int = 0) -> None:
        packet = world.waiting[source, to][index].packet
        flight = next(
            flight
            for flight in story.flights
            if flight.packet is packet
            and (flight.source, flight.to, flight.arrived_us) == (source, to, None)
        )
        if world.processes[to].up:
            flight.arrived_us = world.now_us * STEP_US
        pass_on(source, to, index)
        _note(world, story)

    world.pass_on = watched  # type: ignore[method-assign]


def _note(world: World, story: Story) -> None:
    """What the last step has changed: packets that left, processes that fell passive or woke."""
    now_us = world.now_us * STEP_US
    known = {(flight.source, flight.to, id(flight.packet)) for flight in story.flights}
    for (source, to), letters in sorted(world.waiting.items()):
        for letter in letters:
            if (source, to, id(letter.packet)) not in known:
                flight = Flight(source, to, letter.packet, now_us)
                story.flights.append(flight)
    resting = {rest.process: rest for rest in story.rests if rest.until_us is None}
    for index, process in enumerate(world.processes):
        cause = getattr(process.stack.ordering, "passive_for", None)
        before = resting.get(index)
        if before is not None and before.cause != cause:
            before.until_us = now_us
        if cause is not None and (before is None or before.cause != cause):
            story.rests.append(Rest(index, cause, now_us))


def _slowly(trace: Trace) -> Trace:
    events = [replace(event, time_us=(event.time_us or 0) * STEP_US) for event in trace.events]
    return Trace.of(trace.manifest, events)


def _check_nothing_is_left(story: Story) -> None:
    for flight in story.flights:
        if flight.arrived_us is None and not {flight.source, flight.to} & story.down:
            raise ValueError(
                f"the story ends while {flight.packet} is under way "
                f"from p{flight.source} to p{flight.to}: pass it"
            )
