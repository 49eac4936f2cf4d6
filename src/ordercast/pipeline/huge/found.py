"""What a window is asked, and what it tells: small enough to travel."""

from __future__ import annotations

import msgspec

from ordercast.pipeline.huge.spans import Spans

__all__ = ["Asked", "Found", "Gap", "Knots", "Name", "Pair", "Place", "Stripe"]

Name = tuple[int, int]
"""A regular message: its origin, and its place among the regular messages of that."""


Stripe = tuple[int, int, int, int]
"""Deliveries of regular messages: process, origin, first and last place."""


class Asked(msgspec.Struct, frozen=True):
    """What is to be told of a window for the sake of messages that are set apart."""

    gaps: list[Stripe] = []
    """Gaps beside those that it will find …"""
    doubts: list[Stripe] = []
    """… and what may be gaps, if the log has holes."""
    total: list[Name] = []
    """Own messages whose knots are asked for …"""
    synchronous: list[Name] = []
    """… in the one order and the other."""
    known: list[tuple[int, list[int]]] = []
    """For some messages set apart, from which place on each origin's know of them."""


class Pair(msgspec.Struct, frozen=True):
    """Two messages that come before each other, and who shows it."""

    m: Name
    n: Name
    forth: int
    """The first process that has m before n …"""
    back: int
    """… and the first that has n before m."""


class Gap(msgspec.Struct, frozen=True):
    process: int
    position: int
    n: Name
    m: Name | None = None
    """What it lacked; only of the first gap, and if it is a regular message."""
    ahead: int = -1
    """Who had that in time."""
    missing: bool = False


class Place(msgspec.Struct, frozen=True):
    """Where a message is in the sequence of knots, if one that is in none counts as one."""

    name: Name
    ordinal: int
    """How many of those end before it, in its window."""
    before: int
    """How many real ones."""
    tied: bool
    """It is in one."""


class Knots(msgspec.Struct, frozen=True):
    many: int = 0
    """How many end in the window."""
    ended: int = 0
    """The same, if a message that is in none counts as one."""
    places: list[Place] = []
    pair: Pair | None = None
    """The first two messages of a knot."""


class Found(msgspec.Struct, frozen=True):
    """What a window shows."""

    missing: list[Spans] = []
    """By origin, the places of what somebody lacked that came before what it delivered. If there is
    any, nothing else is told."""
    pairs: int = 0
    exact: bool = True
    gaps: int = 0
    doubts: int = 0
    listed: list[Gap] = []
    """The first gaps …"""
    doubted: list[Gap] = []
    """… and, if there are none, the first that may be one."""
    total: Knots = Knots()
    synchronous: Knots = Knots()
    known: list[tuple[int, list[int]]] = []
