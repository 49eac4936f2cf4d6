"""Who the members are, generation by generation: pure.

The roll of the first generation is a list; each later one follows from the one before it and the
first change that was delivered there. A seat belongs to a *life*: a process and what it has in its
journal. Whoever comes back without what it knew has another life, and needs a seat anew; so nobody
votes twice because it has forgotten. The lives that began are the group's *history*: a group that
was begun afresh has another one, whatever it is called, and nobody goes over to it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from ordercast.errors import UsageError
from ordercast.runtime.discovery import Address, check_reachable
from ordercast.runtime.frames import Roll, Seat
from ordercast.runtime.keys import check_name

__all__ = ["EXPELLED_MAX", "SEATS_MAX", "Change", "after", "agreed", "charter", "check", "first"]

SEATS_MAX = 256
"""Every one of them has a word in every decision."""
EXPELLED_MAX = 256
"""So many of those who were sent away are remembered."""


class Change(Struct, frozen=True, array_like=True, tag="x", forbid_unknown_fields=True):
    add: dict[str, Seat]
    """Newcomers; one who has the name of a member takes its place."""
    remove: dict[str, str]
    """By name, the life that loses its seat; whoever has it by then keeps it."""
    expel: bool
    """Whether those who are removed may not come back."""


def first(addresses: Mapping[str, Address]) -> Roll:
    """Nobody knows anybody's life yet."""
    return Roll(1, {name: Seat(str(addresses[name]), "") for name in sorted(addresses)})


def agreed(roll: Roll, lives: Mapping[str, str]) -> Roll:
    """The first one, when everybody has met."""
    seats = {name: Seat(seat.address, lives[name]) for name, seat in roll.seats.items()}
    beginning = "\n".join(f"{name} {life}" for name, life in sorted(lives.items()))
    return replace(roll, seats=seats, history=_digest(beginning))


def check(name: str, seat: Seat) -> Address:
    """Where others reach it; raises a `UsageError` for one that nobody could use."""
    check_name(name)
    if not seat.life:
        raise UsageError(f"{name!r} does not say which life it is")
    return check_reachable(Address.parse(seat.address))


def after(roll: Roll, change: Change) -> Roll | None:
    """The roll of the next generation; None if there is no need for one, or it could not be."""
    try:
        for name, seat in change.add.items():
            check(name, seat)
    except UsageError:
        return None
    seats, expelled = dict(roll.seats), roll.expelled
    for name, life in change.remove.items():
        if name in seats and seats[name].life == life:
            del seats[name]
        if change.expel and life not in expelled:
            expelled = (*expelled, life)[-EXPELLED_MAX:]
    seats |= {name: at for name, at in change.add.items() if at.life not in expelled}
    if not 0 < len(seats) <= max(SEATS_MAX, len(roll.seats)):
        return None
    if (seats, expelled) == (roll.seats, roll.expelled):
        return None
    return Roll(roll.generation + 1, seats, expelled, roll.history)


def charter(roll: Roll, algorithm: tuple[str, str]) -> str:
    """What all members of a generation have to agree on, in a few words and a digest. Lives are
    checked one by one: in the first generation nobody knows them beforehand."""
    digest = _digest("\n".join((*roll.seats, roll.history)))
    words = " over ".join(algorithm)
    return f"{words}, generation {roll.generation} of {len(roll.seats)} members ({digest})"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
