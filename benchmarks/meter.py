"""What messages cost in the simulator: counted on their way out of the stacks, not inside them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from ordercast.protocols import catalog
from ordercast.protocols.effects import HostEffect, Transmit
from ordercast.protocols.messages import Message, message_of
from ordercast.protocols.stack import Stack
from ordercast.simulator.plan import Network
from ordercast.simulator.world import World
from ordercast.trace.event import Event

__all__ = ["Bill", "Trial", "busy", "one_by_one"]

PAYLOAD = b"." * 16


@dataclass(slots=True)
class Bill:
    """What a number of messages have cost together."""

    messages: int = 0
    packets: int = 0
    payload_copies: int = 0
    control_bytes: int = 0
    """Everything on the wire that is not the user's payload."""
    counters: set[int] = field(default_factory=set)
    """How many numbers travelled beside a message in one packet."""
    latencies_us: list[int] = field(default_factory=list)
    """From the user's wish to the delivery, for every process but the sender."""


class Metered(Stack):
    """A stack whose packets are counted as they leave."""

    def __init__(self, stack: Stack, bill: Bill) -> None:
        super().__init__(stack.ordering, stack.dissemination)
        self.bill = bill
        self.wire = self.codec()

    def send(self, *arguments: Any) -> tuple[Message, list[HostEffect]]:
        message, effects = super().send(*arguments)
        self.bill.messages += 1
        return message, self._counted(effects)

    def receive(self, source: int, packet: Any) -> list[HostEffect]:
        return self._counted(super().receive(source, packet))

    def timer(self, name: str) -> list[HostEffect]:
        return self._counted(super().timer(name))

    def _counted(self, effects: list[HostEffect]) -> list[HostEffect]:
        for effect in effects:
            if isinstance(effect, Transmit):
                message, copies = message_of(effect.packet), len(effect.to)
                control_bytes = len(self.wire.encode(effect.packet))
                if message is not None and copies:
                    self.bill.payload_copies += copies
                    self.bill.counters.add(_counters(effect.packet))
                    control_bytes -= len(message.payload)
                self.bill.packets += copies
                self.bill.control_bytes += copies * control_bytes
        return effects


class Trial:
    """A simulated group without faults, and its bill."""

    def __init__(self, ordering: str, dissemination: str, size: int, network: Network) -> None:
        self.size = size
        self.bill = Bill()
        self.to_one = catalog.ORDERINGS[ordering].destinations == "one"
        self._asked_us: dict[tuple[int, int], int] = {}
        self.world = World(
            build=lambda me, n: Metered(catalog.build(ordering, dissemination, me, n), self.bill),
            size=size,
            run="cost",
            write=self._note,
            network=network,
        )

    def send(self, process: int, to: tuple[int, ...] | None = None) -> None:
        """To everyone; or, if the ordering sends to one, to each of the others in turn."""
        number = self.world.processes[process].stack.sent + 1
        if to is None and self.to_one:
            to = ((process + 1 + number % (self.size - 1)) % self.size,)
        self._asked_us[process, number] = self.world.now_us
        self.world.send(process, PAYLOAD, to)

    def rest(self) -> None:
        assert self.world.run(until_us=10**12)

    def _note(self, event: Event) -> None:
        if event.kind == "deliver" and event.process != event.origin:
            assert event.time_us is not None
            self.bill.latencies_us.append(event.time_us - self._asked_us[event.message])


def one_by_one(
    ordering: str, dissemination: str, size: int, *, messages: int, network: Network
) -> Bill:
    """One message at a time, from processes all over the group, and rest in between."""
    trial = Trial(ordering, dissemination, size, network)
    for number in range(messages):
        trial.send(number * (size - 1) // max(messages - 1, 1))
        trial.rest()
    return trial.bill


def busy(ordering: str, dissemination: str, size: int, *, messages: int, network: Network) -> Bill:
    """Every process sends `messages`, two in each network delay."""
    trial = Trial(ordering, dissemination, size, network)
    interval_us = sum(network.delay_us) // 4
    for number in range(messages):
        for process in range(size):
            time_us = interval_us * number + interval_us * process // size
            trial.world.at(time_us, trial.send, process)
    trial.rest()
    return trial.bill


def _counters(value: Any) -> int:
    """How many numbers there are in a packet, apart from the user's message."""
    if isinstance(value, Message):
        return 0
    if isinstance(value, Struct):
        return sum(_counters(getattr(value, name)) for name in value.__struct_fields__)
    if isinstance(value, tuple):
        return sum(map(_counters, value))
    return int(isinstance(value, int))
