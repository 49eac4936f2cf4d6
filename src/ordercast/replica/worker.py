"""What a replica does in a generation: what was given here is sent, what is delivered is done.

    a command was given:     send it, and again in the next generation if it came too late
    a command is delivered:  carry it out
    a change was asked for:  propose it, in every generation, until there is no need any more
    a change is delivered:   this generation ends here, for everyone
    the journal is long:     save the state, so that it can begin anew

Where to go on when a generation has ended is for `life`.
"""

from __future__ import annotations

import asyncio

from ordercast.replica.commands import Met
from ordercast.replica.generation import Generation, House
from ordercast.replica.keeping import Kept
from ordercast.replica.machine import Machine, Workshop
from ordercast.replica.pending import Pending
from ordercast.replica.rolls import Change, after
from ordercast.replica.seeking import Entry
from ordercast.runtime.frames import Roll
from ordercast.runtime.group import Batch
from ordercast.runtime.surroundings import surroundings

__all__ = ["Worker"]

MANY = 64
"""With so many commands under way, company is worth waiting for."""


class Worker:
    def __init__(self, house: House, machine: Machine) -> None:
        self.pending = Pending(surroundings().token())
        self.workshop = Workshop(machine, self.pending, house.me)
        self._house = house
        self._save_at = 0
        """How much is written to the journal when the state is to be saved again."""
        self._proposals: list[tuple[Change, asyncio.Future[None]]] = []

    def move(self, entry: Entry) -> None:
        """Be in the state that the generation begins with."""
        keeping, start = self._house.keeping, entry.checkpoint
        entry.checkpoint = None
        self.workshop.move(entry.roll)
        if start is not None:
            self.workshop.load(start, tried=entry.tried)
        elif entry.roll.generation > 1 and keeping is not None:
            start = self.workshop.checkpoint(entry.roll.generation)
        if keeping is not None and not entry.kept:
            keeping.begin(Kept(self._house.door.group, self._house.me, entry.roll), start)

    def begin(self, generation: Generation) -> None:
        # What the lives before have written counts as well: after a restart it is soon saved.
        self._save_at = 0 if generation.recovered else self._house.settings.segment_bytes
        self.workshop.begin()

    async def feed(self, generation: Generation) -> None:
        """With many under way, the next ones wait for company: a message costs what it costs,
        however many commands are in it."""
        await generation.begun.wait()
        while True:
            await generation.group.send_many(await self.pending.unsent())
            if len(self.pending) > MANY:
                await asyncio.sleep(self._house.settings.linger_s)

    def carry_out(self, generation: Generation, batch: Batch) -> Roll | None:
        """The next roll, if the generation ends here."""
        for position, payload in enumerate(batch.payloads, batch.position):
            message = self.workshop.take(batch.sender, payload, position)
            if isinstance(message, Met):
                generation.heard(batch.sender, message.lives)
            elif message is not None:
                if (roll := after(generation.roll, message)) is not None:
                    self.pending.decided = True
                    return roll
                self.review(generation)
        self._save_now_and_then(generation)
        return None

    def _save_now_and_then(self, generation: Generation) -> None:
        """So that the journal need not reach back to the beginning; a large state less often."""
        journal, keeping = generation.node.journal, self._house.keeping
        if journal is None or keeping is None or journal.written_bytes < self._save_at:
            return
        checkpoint, settings = self.workshop.checkpoint(generation.number), self._house.settings
        size = 0
        if checkpoint is not None:
            keeping.save(checkpoint)
            journal.need_from(journal.segment[0])
            size = len(checkpoint.state)
        often = max(settings.segment_bytes, min(size, settings.keep_bytes // 2))
        self._save_at = journal.written_bytes + often

    # Changes that were asked for here.

    async def propose(self, change: Change, generation: Generation | None) -> None:
        """Wait until it has come about, in this generation or in a later one."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._proposals.append((change, done))
        if generation is not None:
            self.review(generation)
        await done

    def review(self, generation: Generation) -> None:
        """Is there still something to propose?"""
        self._proposals = [each for each in self._proposals if not each[1].done()]
        for change, done in self._proposals:
            if after(generation.roll, change) is None:
                done.set_result(None)
            else:
                generation.propose(change)

    def fail(self, error: BaseException) -> None:
        """Nothing that was given or asked for here comes about any more."""
        self.pending.fail(error)
        for _, done in self._proposals:
            if not done.done():
                done.set_exception(error)
