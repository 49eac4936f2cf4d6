"""What a replica answers at its door: who the members are, and the state for those who came late.

It is a stranger who asks, unless there are certificates: it gets a word, and little memory.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import NamedTuple

from ordercast.errors import UsageError
from ordercast.replica.checkpoint import Checkpoint, encode
from ordercast.replica.generation import Generation, House
from ordercast.replica.rolls import SEATS_MAX, Change, check
from ordercast.runtime.discovery import Address
from ordercast.runtime.frames import PIECE_BYTES, Bye, Fetch, Frame, Knock, Piece, Seat
from ordercast.runtime.surroundings import surroundings

__all__ = ["Host"]

INVITE_EVERY_S = 1.0
"""How often a newcomer is proposed."""
OFFERS_MAX = 4
"""So many newcomers may fetch a state at the same time; the others come again."""
OFFER_S = 30.0
"""How long a state is kept for one who has stopped asking."""


GIVEN_MAX = 64
"""Of so many states that were given is it known whether they are the state still."""


class _Offer(NamedTuple):
    data: bytes
    steps: int
    last: float
    """When somebody last asked for a piece of it."""
    trial: bool
    """Whether it is for one without a seat: then it may be of a generation that has ended."""


class Host:
    def __init__(
        self,
        house: House,
        save: Callable[[], Checkpoint | None],
        steps: Callable[[], int],
        on_other: Callable[[str, Address, int], None],
    ) -> None:
        """`save` gives the state, if it can be had, and `steps` a number that stays the same as
        long as the state does; `on_other` is told of members of a group of the
        same name that has another history: who, where, and in which generation."""
        self.generation: Generation | None = None
        """The one that we are in; None in between."""
        self.in_state = False
        """Whether the machine has come to where it is."""
        self._house = house
        self._save = save
        self._steps = steps
        self._on_other = on_other
        self._loop = asyncio.get_running_loop()
        self._invited: dict[str, float] = {}
        """Newcomers, and when they were last proposed."""
        self._offers: dict[str, _Offer] = {}
        self._given: dict[str, int] = {}
        """By its token, the steps to a state that was given: whoever has tried it and then has a
        seat need not fetch it again, if it is the state still."""
        self._next_look: asyncio.TimerHandle | None = None

    def enter(self, generation: Generation) -> None:
        self.generation = generation
        self._invited.clear()
        self._offers = {t: o for t, o in self._offers.items() if o.trial}

    def leave(self) -> None:
        self.generation, self.in_state = None, False

    def knocked(self, knock: Knock) -> Frame:
        generation = self.generation
        if generation is None or not generation.settled:
            return Bye(f"{self._house.me} is not in a generation where everyone is known")
        name, roll, seat = knock.name, generation.roll, Seat(knock.address, knock.life)
        if knock.history and knock.history != roll.history:
            with contextlib.suppress(UsageError):
                self._on_other(name, check(name, seat), knock.generation)
            return roll
        if not knock.wants or roll.seats.get(name) == seat or knock.life in roll.expelled:
            return roll
        if (objection := self._objection(generation, name, seat)) is not None:
            return Bye(objection[:300])
        now = self._loop.time()
        if now - self._invited.get(name, -INVITE_EVERY_S) >= INVITE_EVERY_S:
            if len(self._invited) >= SEATS_MAX:  # nobody has so much to do with newcomers
                self._invited.clear()
            self._invited[name] = now
            generation.propose(Change({name: seat}, {}, False))
        return roll

    def _objection(self, generation: Generation, name: str, seat: Seat) -> str | None:
        """Why it cannot be a member, if so."""
        seats = generation.roll.seats
        try:
            self._house.check_private([check(name, seat)])
        except UsageError as error:
            return str(error)
        taken = name in seats and seats[name].life != seat.life
        if taken and name not in generation.group.view.suspected:
            return f"{name} is a member already, and seems to be there: choose another name"
        if any(at.address == seat.address for other, at in seats.items() if other != name):
            return f"another member is at {seat.address}"
        if name not in seats and len(seats) >= SEATS_MAX:
            return f"there are {len(seats)} members, and there cannot be more"
        return None

    def fetched(self, wish: Fetch) -> Frame:
        """Whoever may ask for a seat may see the state, and tries it before it asks."""
        now, token = self._loop.time(), wish.token
        if not token:
            offer = self._offer(wish, now)
            if isinstance(offer, Bye):
                return offer
            token = surroundings().token()
        elif token in self._offers:
            offer = self._offers[token]
        elif self._is_here(wish.generation) and self._given.get(token) == self._steps():
            return Piece(token, 0, b"")
        else:
            return Bye(f"{self._house.me} does not have that state any more")
        piece = offer.data[wish.offset : wish.offset + PIECE_BYTES]
        self._offers[token] = offer._replace(last=now)
        if wish.offset + len(piece) >= len(offer.data):
            self._offers.pop(token)
            self._given = dict([*self._given.items(), (token, offer.steps)][-GIVEN_MAX:])
        self._drop_stale()
        return Piece(token, len(offer.data), piece)

    def _offer(self, wish: Fetch, now: float) -> _Offer | Bye:
        """The state as it is now, or why it cannot be had."""
        me, generation = self._house.me, self.generation
        if generation is None or not self._is_here(wish.generation):
            return Bye(f"{me} has no state of generation {wish.generation}")
        if len(self._offers) >= OFFERS_MAX:
            return Bye(f"{me} is giving its state to {OFFERS_MAX} others: come again")
        if (checkpoint := self._save()) is None:
            return Bye(f"{me} cannot save its state: its log says why")
        trial = wish.name not in generation.roll.seats
        return _Offer(encode(checkpoint), self._steps(), now, trial)

    def _drop_stale(self) -> None:
        """Then, and once more when it is time: a state may be large."""
        now = self._loop.time()
        self._offers = {t: o for t, o in self._offers.items() if now - o.last < OFFER_S}
        if self._next_look is not None:
            self._next_look.cancel()
        self._next_look = self._loop.call_later(OFFER_S, self._drop_stale) if self._offers else None

    def _is_here(self, number: int) -> bool:
        """Whether the machine is in this generation, and everyone is known there."""
        generation = self.generation
        if generation is None or not generation.settled or not self.in_state:
            return False
        return generation.number == number
