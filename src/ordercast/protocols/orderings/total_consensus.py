"""Total and causal order by consensus: it goes on whoever crashes, as long as a majority is up.

Guarantees  all processes deliver in one common sequence, which extends causality; if any process
            delivers a message, even one that crashes right after, all correct processes do.
Assumes     perfect links, not necessarily FIFO; fewer than half crash; crashes are suspected in
            the end, and in the end some correct process is suspected by nobody.
Costs       n-1 payload copies and n²-1 packets at most, three network delays; all that has come
            meanwhile shares the next decision.
Source      T. Chandra, S. Toueg, "Unreliable failure detectors for reliable distributed systems",
            JACM 43(2), 1996, with a coordinator that stays in office as in L. Lamport, "The
            part-time parliament", ACM TOCS 16(2), 1998.

    A cut says how many messages of each process come before the rest. Instance after instance,
    the processes decide on the next cut; the coordinator of round r is process r mod n.

    on send(m):                     keep m; spread m
    coordinator, no proposal yet:   propose the cut of all that is kept here
    on a proposal of this round:    wait until all of the cut is kept here; tell everyone: a vote
    when a majority voted for it:   decide on it; deliver what is new in the cut, in the order of
                                    senders and numbers; the next instance begins in the round in
                                    which this cut was proposed first
    when the coordinator is suspected, and something waits:
                                    on to the next round; tell everyone, with one's last vote
    coordinator of a later round:   wait for a majority to be in it, and for all of the cuts they
                                    voted for last; propose the cut of the latest vote among
                                    theirs, and one's own choice if there is none

Whoever raises its round says so, and whoever hears of a higher one follows. A vote speaks for the
proposal as well. A decision that a later round may have had a part in is told to everyone, and so
is whoever is still busy with a past instance. What a cut has and a dead sender did not bring is
fetched from those who voted, and what a dead sender did bring is handed on to the coordinator.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from msgspec import Struct

from ordercast.errors import PeerError
from ordercast.protocols.effects import Deliver, Effect, Spread
from ordercast.protocols.interface import Ordering
from ordercast.protocols.messages import Count, Held, Message, MessageId, Process
from ordercast.protocols.retained import Retained

__all__ = ["Cut", "Data", "Decided", "Pull", "Round", "TotalConsensus", "Vote"]

NEVER = -1


class Cut(Struct, frozen=True, array_like=True):
    counts: tuple[Count, ...]
    round: Count
    """In which it was proposed first."""


class Data(Struct, frozen=True, array_like=True, tag="tk_data"):
    message: Message


class Vote(Struct, frozen=True, array_like=True, tag="tk_vote"):
    instance: Count
    round: Count
    cut: Cut


class Round(Struct, frozen=True, array_like=True, tag="tk_round"):
    """Its sender is in this round, and voted last for this cut, if at all."""

    instance: Count
    round: Count
    voted: Count = 0
    cut: Cut | None = None


class Decided(Struct, frozen=True, array_like=True, tag="tk_decided"):
    instance: Count
    cut: Cut


class Pull(Struct, frozen=True, array_like=True, tag="tk_pull"):
    origin: Process
    after: Count


class TotalConsensus(Ordering):
    items = Data | Vote | Round | Decided | Pull
    destinations = "everyone"
    for_some = "total_coordinator"
    needs_direct = True
    relays = True

    def __init__(self, me: int, size: int) -> None:
        super().__init__(me, size)
        self.quorum = size // 2 + 1
        self.suspected: set[int] = set()
        # Messages
        self.log = Retained(me, size)
        self.delivered = [0] * size
        self.log.kept_for[me] = self.delivered  # what is not delivered here is kept for us
        self.pulled: dict[int, dict[int, int]] = {}
        """By origin, whom we asked for what we lack, and up to which number they have that."""
        self.handed_on: dict[int, tuple[int, int]] = {}
        """By origin that is suspected, to which coordinator, and up to which number."""
        # Past instances
        self.past: dict[int, Cut] = {}
        self.reached = [0] * size
        """The last instance that each process is known to have begun."""
        self.forgotten = 0
        self.last = Cut((0,) * size, 0)
        self.undelivered: deque[tuple[int, Cut, bool]] = deque()
        """Decisions whose messages are not all here; and whether we voted for them."""
        # The instance of now
        self.instance = 0
        self._begin()
        self.later: dict[int, list[tuple[int, Vote | Round | Decided]]] = {}
        """What came too early, by instance."""

    def _begin(self) -> None:
        self.round = self.last.round
        self.proposal: Cut | None = None
        self.voted = NEVER
        self.choice: Cut | None = None
        """What we voted for last."""
        self.rounds: dict[int, Round] = {}
        """What others have said on entering this round, and we."""
        self.votes: dict[int, set[int]] = {}
        """By round."""

    def send(self, message: Message) -> Iterator[Effect]:
        self.log.add(message.id, message)
        yield Spread(Data(message), self.all_but(self.me))
        yield from self._go_on()

    def receive(self, source: int, item: Data | Vote | Round | Decided | Pull) -> Iterator[Effect]:
        if isinstance(item, Pull):
            yield from self._serve(source, item)
            return
        if isinstance(item, Data):
            self._keep(item.message)
        else:
            self._check(source, item)
            yield from self._take(source, item)
        yield from self._go_on()

    def suspect(self, process: int) -> Iterable[Effect]:
        self.suspected.add(process)
        return self._go_on()

    def trust(self, process: int) -> Iterable[Effect]:
        self.suspected.discard(process)
        return self._go_on()  # it may have what we lack

    def bury(self, process: int) -> Iterable[Effect]:
        self.log.bury(process)
        self.reached[process] = 2**62
        self._forget_past()
        return self.suspect(process)

    # Messages

    def _keep(self, message: Message) -> None:
        if message.id not in self.log.received:
            self.log.add(message.id, message)
        self.log.learn_from(message.id)

    def _has(self, cut: Cut) -> bool:
        return all(map(int.__le__, cut.counts, self.log.received.counts))

    def _fetch(self) -> Iterator[Effect]:
        """What a cut has and we lack, if its sender will not bring it."""
        if not self.suspected:
            return
        cuts = [self.last, self.proposal, *(said.cut for said in self.rounds.values())]
        for origin in sorted(self.suspected):
            wanted = max(cut.counts[origin] for cut in cuts if cut is not None)
            here = self.log.received.counts[origin]
            asked = self.pulled.setdefault(origin, {})
            coming = (end > here for holder, end in asked.items() if holder not in self.suspected)
            if here < wanted and not any(coming):
                yield from self._pull(origin, here, asked)

    def _pull(self, origin: int, here: int, asked: dict[int, int]) -> Iterator[Effect]:
        """From one who has it and will answer; if there is none, from all who may."""
        for holder in (*self.all_but(self.me, *self.suspected), *sorted(self.suspected)):
            end = self.log.known[holder][origin]
            if end > max(here, asked.get(holder, 0)):
                asked[holder] = end
                yield Spread(Pull(origin, here), (holder,))
                if holder not in self.suspected:
                    return

    def _serve(self, source: int, pull: Pull) -> Iterator[Effect]:
        if pull.origin >= self.size:
            raise PeerError(f"process {source} pulls messages of nobody in this group")
        for message in self.log.after(pull.origin, pull.after):
            yield Spread(Data(message), (source,))

    def _hand_on(self) -> Iterator[Effect]:
        """What a dead sender brought to us may never reach the coordinator otherwise."""
        to = self.coordinator
        for origin in sorted(self.suspected) if to not in (self.me, *self.suspected) else ():
            before, end = self.handed_on.get(origin, (to, 0))
            end = max(end if before == to else 0, self.log.known[to][origin])
            here = self.log.received.counts[origin]
            if here > max(end, self.last.counts[origin]):
                self.handed_on[origin] = to, here
                for number in range(max(end, self.last.counts[origin]) + 1, here + 1):
                    yield Spread(Data(self.log.items[origin][number]), (to,))

    # Instances

    @property
    def coordinator(self) -> int:
        return self.round % self.size

    def _check(self, source: int, item: Vote | Round | Decided) -> None:
        if item.cut is None:
            return
        if len(item.cut.counts) != self.size:
            raise PeerError(f"process {source} counts for {len(item.cut.counts)} processes")
        if item.instance == self.instance and self._goes_back(item.cut):
            raise PeerError(f"process {source} goes back behind what was decided")

    def _goes_back(self, cut: Cut | None) -> bool:
        return cut is not None and any(map(int.__lt__, cut.counts, self.last.counts))

    def _take(self, source: int, item: Vote | Round | Decided) -> Iterator[Effect]:
        if item.instance > self.reached[source]:
            self.reached[source] = item.instance
            self._forget_past()
        if item.cut is not None and not isinstance(item, Decided):  # it holds what it voted for
            for origin in self.log.learn(source, item.cut.counts):
                self.log.forget(origin)
        if item.instance > self.instance:
            self.later.setdefault(item.instance, []).append((source, item))
            return
        if item.instance == self.instance and not self._goes_back(item.cut):
            yield from self._heard(source, item)
        elif isinstance(item, Round) and item.instance in self.past:
            yield Spread(Decided(item.instance, self.past[item.instance]), (source,))

    def _heard(self, source: int, item: Vote | Round | Decided) -> Iterator[Effect]:
        if isinstance(item, Decided):
            yield from self._decide(item.cut)
            return
        if item.round > self.round:
            yield from self._enter(item.round)
        if isinstance(item, Vote):
            if item.round == self.round:
                self.proposal = item.cut
            yield from self._count(source, item.round, item.cut)
        elif item.round == self.round:
            self.rounds[source] = item

    def _go_on(self) -> Iterator[Effect]:
        """Do whatever may be done now, in this instance and in those that follow."""
        yield from self._act()
        while early := self.later.pop(self.instance, None):
            for source, item in early:
                yield from self._take(source, item)
                yield from self._act()

    def _act(self) -> Iterator[Effect]:
        yield from self._fetch()
        yield from self._deliver()
        if self.coordinator in self.suspected and (self.votes or self._news()):
            while self.coordinator in self.suspected:
                self.round += 1
            yield from self._enter(self.round)
        yield from self._hand_on()
        if self.proposal is None and self.coordinator == self.me:
            self.proposal = self._own_choice()
        if self.proposal is not None and self.voted < self.round and self._has(self.proposal):
            self.voted, self.choice = self.round, self.proposal
            yield Spread(Vote(self.instance, self.round, self.choice), self.all_but(self.me))
            yield from self._count(self.me, self.round, self.choice)
            yield from self._act()

    def _news(self) -> bool:
        """Is anything here that no decision has put in order?"""
        return any(map(int.__gt__, self.log.received.counts, self.last.counts))

    def _own_choice(self) -> Cut | None:
        """What the coordinator proposes, if it may and there is anything."""
        if self.round > self.last.round:
            # What stands for messages that died with those who voted for it was never decided.
            known = [said for said in self.rounds.values() if not said.cut or self._has(said.cut)]
            if len(known) < self.quorum:
                return None
            latest = max(known, key=lambda said: said.voted if said.cut else NEVER)
            if latest.cut is not None:
                return latest.cut
        if self.undelivered or not self._news():
            return None
        return Cut(self.log.counts(), self.round)

    def _enter(self, round: int) -> Iterator[Effect]:
        self.round, self.proposal = round, None
        said = Round(self.instance, round, max(self.voted, 0), self.choice)
        self.rounds = {self.me: said}
        yield Spread(said, self.all_but(self.me))

    def _count(self, voter: int, round: int, cut: Cut) -> Iterator[Effect]:
        votes = self.votes.setdefault(round, set())
        votes.add(voter)
        if len(votes) >= self.quorum:
            # In its first round, everyone will have enough votes; later on, votes may be scattered.
            everyone = round == self.round == self.last.round
            yield from self._decide(cut, told=everyone)

    def _decide(self, cut: Cut, *, told: bool = False) -> Iterator[Effect]:
        if not told:
            yield Spread(Decided(self.instance, cut), self.all_but(self.me))
        self.undelivered.append((self.instance, cut, self.choice == cut))
        self.past[self.instance] = self.last = cut
        self.instance += 1
        self.reached[self.me] = self.instance
        self._begin()
        self._forget_past()

    def _deliver(self) -> Iterator[Effect]:
        while self.undelivered and self._has(self.undelivered[0][1]):
            instance, cut, voted = self.undelivered.popleft()
            for origin, count in enumerate(cut.counts):
                while self.delivered[origin] < count:
                    self.delivered[origin] += 1
                    yield Deliver(self.log.items[origin][self.delivered[origin]])
                self.log.forget(origin)
            if not voted:  # others may wait for our vote, and for word that all this is here
                yield Spread(Vote(instance, cut.round, cut), self.all_but(self.me))

    def _forget_past(self) -> None:
        """Nobody will ask about an instance that everyone is through with."""
        through = min(self.reached)
        while self.forgotten < through and self.forgotten in self.past:
            del self.past[self.forgotten]
            self.forgotten += 1

    def held(self) -> Iterator[Held]:
        silent = self._silent()
        for origin, items in enumerate(self.log.items):
            here = self.log.received.counts[origin]
            for number in items:
                id = MessageId(origin, number)
                if number > here:
                    yield Held(id, (MessageId(origin, here + 1),))
                elif number > self.delivered[origin]:
                    lacking = tuple(self._lacking()) if self.undelivered else ()
                    yield Held(id, lacking, () if lacking else silent)

    def _silent(self) -> tuple[int, ...]:
        """Whose word is needed for the next step."""
        if self.proposal is not None:
            return self.all_but(*self.votes.get(self.round, ()))
        return self.all_but(*self.rounds) if self.coordinator == self.me else (self.coordinator,)

    def _lacking(self) -> Iterator[MessageId]:
        """The first message of each process that the oldest open decision waits for."""
        for origin, count in enumerate(self.undelivered[0][1].counts):
            here = self.log.received.counts[origin]
            if here < count:
                yield MessageId(origin, here + 1)
