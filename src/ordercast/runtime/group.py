"""What an application holds in its hands: a group that it can send to and receive from."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import TYPE_CHECKING

from ordercast.errors import UsageError
from ordercast.runtime.bundle import Bundle
from ordercast.runtime.deliveries import Batch, Delivery, Reader, last_of
from ordercast.runtime.holds import Hold, holds
from ordercast.runtime.outgoing import OVERHEAD_BYTES, Slot, portions
from ordercast.runtime.payloads import checked_payload, checked_payloads
from ordercast.runtime.receipts import Receipt, Receipts
from ordercast.runtime.status import Status, status_of
from ordercast.runtime.view import View

if TYPE_CHECKING:
    from ordercast.runtime.node import Node

__all__ = ["Batch", "Delivery", "Group", "View"]

MESSAGES_A_TURN = 2048
"""An application that never waits for anything still lets the loop turn that often."""


class Group:
    """Made by `ordercast.join`. Iterate to receive; any task may send."""

    def __init__(self, node: Node, *, name: str, algorithm: str, uniform: bool) -> None:
        self.name = name
        self.me = node.name
        self.algorithm = algorithm
        """Which ordering over which dissemination was chosen."""
        self.loop = asyncio.get_running_loop()
        """Where it lives: nothing of it may be called from another thread."""
        self._node = node
        self._outgoing = node.outgoing
        self._handout = node.handout
        self._uniform = uniform
        self._indices = {member: index for index, member in enumerate(node.names)}
        self._to_one = node.core.stack.ordering.destinations == "one"
        self._bundle: Bundle | None = None
        """The one that is being taken now."""
        self._reader = Reader(self._advance)
        self._ticks: memoryview | None = None
        self._begun = False
        """Whether the reader has it."""
        self._taken_in_a_row = 0

    # Sending.

    async def send(self, payload: bytes, to: Iterable[str] | None = None) -> Receipt:
        """Send to everyone, or to some. Waits while others have too much of ours to take yet;
        cancelled while it waits, nothing was sent."""
        outgoing = self._outgoing
        slot = outgoing.slot
        try:
            size = len(payload)
        except TypeError:
            size = len(checked_payload(payload))  # which says what is wrong with it
        # Most of the time there is nothing to look into: this runs for every message.
        if (
            to is not None
            or outgoing.busy
            or slot is None
            or slot.to is not None
            or size > outgoing.limit
            or payload.__class__ is not bytes
        ):
            payload = checked_payload(payload)
            size = len(payload)
            slot = await self._room(to)
        payloads = slot.payloads
        place = len(payloads)
        payloads.append(payload)
        outgoing.bytes += size + OVERHEAD_BYTES
        if outgoing.bytes >= outgoing.limit:
            outgoing.busy = True
        return Receipt(self, slot, place)

    async def send_many(
        self, payloads: Iterable[bytes], to: Iterable[str] | None = None
    ) -> Receipts:
        """Send these in a row: as a loop of `send`, at a fraction of its cost for each. If it is
        cancelled while it waits, those that fitted into earlier bundles were sent."""
        outgoing = self._outgoing
        sent: list[tuple[Slot, int, int]] = []
        if isinstance(to, Iterable) and not isinstance(to, str):
            to = tuple(to)  # it is looked at for each portion
        for portion, size in portions(*checked_payloads(payloads), limit=outgoing.limit):
            slot = outgoing.slot
            if to is not None or outgoing.busy or slot is None or slot.to is not None:
                slot = await self._room(to)
            while outgoing.bytes and outgoing.bytes + size > outgoing.limit:
                outgoing.flush()
                slot = await self._room(to)
            sent.append((slot, len(slot.payloads), len(portion)))
            slot.payloads += portion
            outgoing.bytes += size
            if outgoing.bytes >= outgoing.limit:
                outgoing.busy = True
        return Receipts(self, sent)

    async def _room(self, to: Iterable[str] | None) -> Slot:
        """The bundle for a message, once there is room in it."""
        indices = to if to is None and not self._to_one else self._destinations(to)
        self._outgoing.check_loop()
        if self._outgoing.busy:
            await self._outgoing.room()
        slot = self._outgoing.slot
        if slot is None or slot.to != indices:
            slot = self._outgoing.begin(indices)
        return slot

    # Receiving.

    def __aiter__(self) -> AsyncIterator[Delivery]:
        """Whoever stops half-way can go on later, with another iterator."""
        return aiter(self._reader)

    async def __anext__(self) -> Delivery:
        """One delivery, for `anext(group)`."""
        return await self._reader.__anext__()

    async def batches(self) -> AsyncIterator[Batch]:
        """Deliveries as they come, many at a time: the fast way to receive."""
        while True:
            bundle = self._bundle or await self._next_bundle()
            if bundle is None:
                return
            taken = self._drop()
            self._handout.give(bundle)
            if taken:
                bundle = bundle.after(bundle.position + taken - 1)
            sender = self._node.names[bundle.origin]
            yield Batch(sender, bundle.first, bundle.payloads, bundle.position, bundle.time_us)

    async def _advance(self) -> Delivery:
        """What the reader does not have at hand: the first message of the next bundle, or the last
        one of this, with which the whole bundle is taken."""
        bundle = self._bundle or await self._next_bundle()
        if bundle is None:
            raise StopAsyncIteration
        sender = self._node.names[bundle.origin]
        if len(bundle.payloads) == 1:
            self._bundle = None
            self._handout.give(bundle)
            return last_of(bundle, sender)
        if not self._begun:
            self._begun, self._ticks = True, self._handout.ticks(bundle)
            self._reader.begin(
                *(sender, bundle.first, bundle.payloads),
                *(bundle.position, bundle.time_us, self._ticks),
            )
        # Another task may have begun it in the meantime.
        delivery = self._reader.take()
        if delivery is None:
            self._drop()
            self._handout.took(bundle)
            if self._ticks is not None:
                self._ticks[len(bundle.payloads) - 1] = 1
            delivery = last_of(bundle, sender)
        return delivery

    async def _next_bundle(self) -> Bundle | None:
        """The bundle that is being taken now; None at the end."""
        node = self._node
        self._outgoing.check_loop()
        if self._taken_in_a_row > MESSAGES_A_TURN:
            self._taken_in_a_row = 0
            await asyncio.sleep(0)
        while self._bundle is None:
            if (bundle := self._handout.next_bundle()) is not None:
                self._bundle = bundle
                self._taken_in_a_row += len(bundle.payloads)
            elif node.over:
                node.check_healthy()
                return None
            else:
                self._taken_in_a_row = 0
                await node.wait()
        return self._bundle

    def _drop(self) -> int:
        """Iterators go no further in the bundle that they are in. How far they have come."""
        self._bundle, self._begun = None, False
        return self._reader.drop()

    # Looking.

    @property
    def view(self) -> View:
        """Who the members are, and which of them are here, suspected or given up, right now."""
        node = self._node
        return View(
            me=self.me,
            members=node.names,
            present=self._names((node.me, *node.company.present)),
            suspected=self._names(node.company.suspected),
            dead=self._names(node.company.dead),
            leader=node.company.leader,
        )

    def why_held(self) -> list[Hold]:
        """Messages that are here and may not be delivered yet, and what each waits for."""
        return holds(self._node.core, self._node.names)

    def status(self) -> Status:
        """Everything that is counted here, as it stands now."""
        return status_of(self)

    async def aclose(self) -> None:
        """Leave. What was sent gets a moment to arrive; iterators end after what is here, or, if
        there is a journal, at once: what was not taken is delivered in the next life."""
        if self._node.remembers:
            self._drop()
        await self._node.aclose()

    async def __aenter__(self) -> Group:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    # For receipts.

    async def _until_stable(self, slot: Slot) -> None:
        standing, me = self._node.core.standing, self._node.me
        everyone = self._addressees(slot)

        def stable() -> bool:
            # A uniform dissemination hands us our own message once a majority holds it.
            if self._uniform:
                return me not in standing.waits_for(slot.number)
            lacking = standing.lacks(slot.number).intersection(everyone)
            return len(everyone) - len(lacking) > len(everyone) // 2

        await self._node.outgoing.until(slot, stable)

    async def _until_delivered(self, slot: Slot, names: tuple[str, ...]) -> tuple[str, ...]:
        everyone = self._addressees(slot)
        wanted = set(self._checked(names)) if names else set(everyone)
        if strangers := wanted.difference(everyone):
            raise UsageError(f"it was not sent to {', '.join(self._names(strangers))}")
        standing = self._node.core.standing
        await self._node.outgoing.until(
            slot, lambda: wanted.isdisjoint(standing.waits_for(slot.number))
        )
        return self._who_has(slot)

    def _who_has(self, slot: Slot) -> tuple[str, ...]:
        """Who has delivered it by now."""
        lacking = self._node.core.standing.lacks(slot.number)
        return self._names(index for index in self._addressees(slot) if index not in lacking)

    def _addressees(self, slot: Slot) -> Sequence[int]:
        return range(len(self._node.names)) if slot.to is None else slot.to

    def _destinations(self, to: Iterable[str] | None) -> tuple[int, ...] | None:
        return self._node.core.stack.destinations(None if to is None else self._checked(to))

    def _checked(self, names: Iterable[str]) -> tuple[int, ...]:
        if isinstance(names, str):
            names = (names,)
        try:
            return tuple(sorted({self._indices[name] for name in names}))
        except TypeError:  # no names at all, or not hashable ones
            raise UsageError(
                f"{names!r} does not name members: give their names, such as {self.me!r}"
            ) from None
        except KeyError as unknown:
            members = ", ".join(self._node.names)
            raise UsageError(
                f"{unknown.args[0]!r} is no member of {self.name!r}: it has {members}"
            ) from None

    def _names(self, indices: Iterable[int]) -> tuple[str, ...]:
        return tuple(self._node.names[index] for index in sorted(indices))
