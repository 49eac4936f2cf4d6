"""What the loops over held messages work on."""

from __future__ import annotations

from typing import NamedTuple

from ordercast.pipeline.kernels.kernel import Ints

__all__ = [
    "DUPLICATE",
    "EXPIRED",
    "GAP",
    "HELD",
    "RELEASED",
    "Fates",
    "Ground",
    "Messages",
    "Waits",
]

HELD, RELEASED, DUPLICATE, GAP, EXPIRED = range(5)
"""What has become of a row."""


class Messages(NamedTuple):
    """In order of arrival."""

    slot: Ints
    number: Ints
    group: Ints
    start: Ints
    """Where each row's entries begin, and the end."""
    entry_slot: Ints
    entry_number: Ints


class Ground(NamedTuple):
    """What has been reached."""

    done: Ints
    """By slot: the last number of an unbroken line from the start."""
    position: Ints
    """By group: of the next release."""
    first: Ints
    low: Ints
    high: Ints
    """Numbers beyond `done` that were set aside, as intervals: those of slot s are from `first[s]`
    on, and rise."""
    by_number: Ints
    """Rows sorted by slot and number; empty where none is set aside."""
    upcoming: Ints
    """By slot: where in `by_number` its first row stands that is not done."""


class Waits(NamedTuple):
    """Who waits for what."""

    at: Ints
    """By row: how far it has come in its list of needs; -1 is its own predecessor."""
    key: Ints
    """By row: the number that it lacks."""
    left: Ints
    right: Ints
    heap: Ints
    """By slot."""


class Fates(NamedTuple):
    outcome: Ints
    place: Ints
    """Its position, if it was released."""
    order: Ints
    """The rows in the order in which they went."""
    gone: Ints
    """How many those are."""
