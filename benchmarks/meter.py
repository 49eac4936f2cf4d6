"""What messages cost in the simulator: counted on their way out of the stacks, not inside them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from msgspec import Struct

from ordercast.protocols import catalog
from ordercast.protocols.effects import HostEffect, Transmit
from ordercast.protocols.messages import Message, MessageId, message_of
from ordercast.protocols.stack import Stack
from ordercast.simulator.plan import Network
from ordercast.simulator.world import World
from ordercast.trace.event import Event

__all__ = ["Bill", "busy", "one_by_one"]

PAYLOAD = b"." * 16


@dataclass(slots=True)
class Bill:
    """What a number of messages have cost together."""

    messages: int = 0
    packets: int = 0
    payload_copies: int = 0
    control_bytes: int = 0
    """Everything on the wire that is not the user's payload."""
    counters_max: int = 0
    """The most numbers that travelled beside a message in one packet."""
    latencies_us: list[int] = field(default_factory=list)
    """From send to delivery, for every process but the sender."""


class Metered(Stack):
    """A stack whose packets are counted as they leave."""

    def __init__(self, stack: Stack, bill: Bill) -> None:
        super().__init__(stack.ordering, stack.dissemination)
        self.bill = bill

    @cached_property
    def wire(self) -> Any:
        return self.codec()

    def send(self, *arguments: Any) -> tuple[Message, list[HostEffect]]:
        message, effects = super().send(*arguments)
        self.bill.messages += 1
        self._count(effects)
        return message, effects

    def receive(self, source: int, packet: Any) -> list[HostEffect]:
        return self._count(super().receive(source, packet))

    def timer(self, name: str) -> list[HostEffect]:
        return self._count(super().timer(name))

    def _count(self, effects: list[HostEffect]) -> list[HostEffect]:
        for effect in effects:
            if isinstance(effect, Transmit):
                message, copies = message_of(effect.packet), len(effect.to)
                size = len(self.wire.encode(effect.packet))
                self.bill.packets += copies
                if message is not None:
                    self.bill.payload_copies += copies
                    size -= len(message.payload)
                    counters = _counters(effect.packet)
                    self.bill.counters_max = max(self.bill.counters_max, counters)
                self.bill.control_bytes += copies * size
        return effects


def one_by_one(
    ordering: str, dissemination: str, size: int, *, messages: int, network: Network
) -> Bill:
    """One message at a time, from each process in turn, and rest in between."""
    bill, world = _world(ordering, dissemination, size, network)
    for number in range(messages):
        process = number * (size - 1) // max(messages - 1, 1)
        world.send(process, PAYLOAD, _to(ordering, process, size, number))
        assert world.run(10**12)
    return bill


def busy(
    ordering: str, dissemination: str, size: int, *, messages: int, network: Network
) -> Bill:
    """Every process sends `messages`, two in each network delay."""
    bill, world = _world(ordering, dissemination, size, network)
    interval_us = sum(network.delay_us) // 4
    for number in range(messages):
        for process in range(size):
            time_us = interval_us * number + interval_us * process // size
            to = _to(ordering, process, size, number)
            world.at(time_us, world.send, process, PAYLOAD, to)
    assert world.run(10**12)
    return bill


def _world(
    ordering: str, dissemination: str, size: int, network: Network
) -> tuple[Bill, World]:
    bill = Bill()
    sent: dict[MessageId, int] = {}

    def note(event: Event) -> None:
        if event.kind == "send":
            sent[event.message] = event.time_us
        elif event.kind == "deliver" and event.process != event.origin:
            bill.latencies_us.append(event.time_us - sent[event.message])

    def build(me: int, size: int) -> Stack:
        return Metered(catalog.build(ordering, dissemination, me, size), bill)

    return bill, World(build=build, size=size, run="cost", write=note, network=network)


def _to(ordering: str, process: int, size: int, number: int) -> tuple[int, ...] | None:
    """Everyone; or, for an ordering that sends to one, each of the others in turn."""
    if catalog.ORDERINGS[ordering].destinations != "one":
        return None
    return ((process + 1 + number % (size - 1)) % size,)


def _counters(value: Any) -> int:
    """How many numbers there are in a packet, apart from the user's message."""
    if isinstance(value, Message):
        return 0
    if isinstance(value, Struct):
        return sum(_counters(getattr(value, name)) for name in value.__struct_fields__)
    if isinstance(value, tuple):
        return sum(map(_counters, value))
    return int(isinstance(value, int))
