"""What is found in one block: few numbers, which travel."""

from __future__ import annotations

import msgspec

from ordercast.pipeline.huge.found import Name

__all__ = ["Asked", "Found", "Noted", "Reads", "Seen", "Tied"]


class Noted(msgspec.Struct, frozen=True):
    """A witness: `kernels.findings`, by names and positions."""

    grade: int
    process: int
    position: int | None
    message: Name
    later: Name | None
    other: int
    link: int
    missing: bool
    earlier: int | None
    unsure: bool
    """Whether it is missing or only late, the block that the message is of must say."""


class Tied(msgspec.Struct, frozen=True):
    """Chains in the block, as far as others must know them; see `kernels.block.tie_block`."""

    doors: list[Name]
    sides: list[int]
    """Of each door: `kernels.doors`."""
    knots: list[int]
    """Of each door, or 0."""
    ways: list[tuple[int, int]]
    ends: list[tuple[int, int] | None]
    """The first and the last door of each chain."""
    sizes: list[int]
    """The entries of each chain."""
    closed: int
    """How many knots have no door."""
    cycle: list[tuple[Name, int]] = []
    """The shortest of the closed ones, if that was asked for: messages, and the members that have
    each of them before the next."""


class Asked(msgspec.Struct, frozen=True):
    """What one must know of a block beside the first answer."""

    same: dict[str, list[list[Name]]] = {}
    """By property: doors that lie in one knot."""
    cycles: tuple[str, ...] = ()
    """By property: the shortest cycle."""
    delivered: tuple[int, Name] | None = None
    """Did this process deliver this message?"""


class Seen(msgspec.Struct, frozen=True, array_like=True):
    """One row of a message that is set apart."""

    process: int
    row: int
    """In its log."""
    position: int
    kind: int
    origin: int
    number: int
    readers: list[int] | None
    """None: everyone."""

    @property
    def message(self) -> Name:
        return self.origin, self.number


class Reads(msgspec.Struct, frozen=True):
    """What a block reads, process by process."""

    begin: list[int]
    """The numbers up to which messages were sent before that, …"""
    end: list[int]
    """… and before the block's end."""
    first: list[int]
    """The first row, …"""
    last: list[int]
    """… and the one after the last."""


class Found(msgspec.Struct, frozen=True):
    counts: list[list[int]] = []
    noted: list[Noted | None] = []
    hits: list[tuple[int, int, int | None, Name]] = []
    """property, process, position, message"""
    both: list[int] = []
    """How many messages that others delivered as well each process did."""
    exact: bool = True
    two: dict[str, list[tuple[Name, int]]] = {}
    """By property, two messages that come before each other, if there are any: the smallest."""
    tied: dict[str, Tied] = {}
    """By property."""
    delivered: bool = False
    marked: list[tuple[Name, int, int]] = []
    """Deliveries of messages set apart in which something was lacking, as far as this block can
    tell: message, process, `kernels.order` …"""
    lacking: list[Noted | None] = []
    """… and what."""
    reads: Reads | None = None
    strange: list[Seen] = []
    """If there are any, then nothing else was found."""
