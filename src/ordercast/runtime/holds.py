"""Why a message is held, in the words of those who sent it."""

from __future__ import annotations

from msgspec import Struct

from ordercast.runtime.core import Core

__all__ = ["Hold", "holds"]


class Hold(Struct, frozen=True):
    """Messages of one sender that have arrived and may not be delivered yet."""

    sender: str
    first: int
    last: int
    since_us: int
    """When they arrived, by this member's clock."""
    waits_for: tuple[str, ...] = ()
    """What has to come first, such as "b after b:31": what b sent after its message 31."""
    waits_on: tuple[str, ...] = ()
    """Members whose word is needed."""

    def __str__(self) -> str:
        last = f"–{self.last}" if self.last > self.first else ""
        causes = [*self.waits_for]
        if self.waits_on:
            causes.append("word from " + ", ".join(self.waits_on))
        return f"{self.sender}:{self.first}{last} waits for {' and '.join(causes) or 'its turn'}"


def holds(core: Core, names: tuple[str, ...]) -> list[Hold]:
    found = []
    for held in core.stack.held():
        arrival = core.arrivals.get(held.id)
        if arrival is None:
            continue
        first, count, since_us = arrival
        found.append(
            Hold(
                names[held.id.origin],
                first,
                first + count - 1,
                since_us,
                tuple(_before(before.origin, core, names) for before in held.waits_for),
                tuple(names[process] for process in held.waits_on),
            )
        )
    return found


def _before(origin: int, core: Core, names: tuple[str, ...]) -> str:
    """What is missing cannot be known by its number: only what was the last to come."""
    return f"{names[origin]} after {names[origin]}:{core.last[origin]}"
