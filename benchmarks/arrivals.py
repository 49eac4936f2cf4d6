"""Packets for one receiver in the worst order: hardly any can be delivered before the last.

A history is what was sent, in the order of sending; it arrives reversed, or with the first message
of every sender last (a gap). In an independent history nobody has heard of anybody; in a chain
every process has delivered everything before it sends, so that the messages form one chain across
all processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from ordercast.protocols.disseminations.gossip import Digest, Rumour
from ordercast.protocols.disseminations.majority import ASK, Copy
from ordercast.protocols.disseminations.majority_acks import Counts, Data
from ordercast.protocols.messages import Message, MessageId
from ordercast.protocols.orderings.causal_history import Dependent
from ordercast.protocols.orderings.causal_matrix import Mapped
from ordercast.protocols.orderings.causal_vector import Stamped
from ordercast.protocols.orderings.fifo import Chained
from ordercast.protocols.orderings.total_consensus import Cut, Vote
from ordercast.protocols.orderings.total_consensus import Data as Broadcast
from ordercast.protocols.orderings.total_coordinator import Request, Sequenced
from ordercast.protocols.orderings.total_lamport import Release, Ticket
from ordercast.protocols.orderings.total_lamport import Request as TicketRequest
from ordercast.protocols.orderings.total_skeen import Announce, Final

__all__ = ["SIZE", "SUBJECTS", "TIMER", "Arrival", "Subject"]

SIZE = 16
SENDERS = SIZE - 1
"""The receiver is the last process, and sends nothing; or the sequencer."""

TIMER = -1
"""The source of what does not arrive, but is the name of a timer that runs out."""

Arrival = tuple[int, Any]
Arrivals = Callable[[int], list[Arrival]]
Order = Callable[[list[Arrival]], list[Arrival]]


@dataclass(frozen=True)
class Subject:
    ordering: str
    dissemination: str
    what: str
    arrivals: Callable[[int], list[Arrival]]
    """From the number of messages to what reaches the receiver, in order."""
    receiver: int = SIZE - 1

    @property
    def name(self) -> str:
        part = self.ordering if self.dissemination == "direct" else self.dissemination
        return f"{part}: {self.what}"


def _messages(count: int) -> list[Message]:
    """The senders take turns."""
    return [Message(MessageId(i % SENDERS, i // SENDERS + 1), b"") for i in range(count)]


def _reversed(batch: list[Arrival]) -> list[Arrival]:
    return batch[::-1]


def _gap(batch: list[Arrival]) -> list[Arrival]:
    return batch[SENDERS:] + batch[:SENDERS]


def _first_last(batch: list[Arrival]) -> list[Arrival]:
    return batch[1:] + batch[:1]


def _late(history: Callable[[list[Message]], Iterable[Arrival]], order: Order) -> Arrivals:
    return lambda count: order(list(history(_messages(count))))


# Histories: what the senders would have put into their packets


def _bare(messages: list[Message]) -> Iterator[Arrival]:
    return ((m.id.origin, m) for m in messages)


def _fifo(messages: list[Message]) -> Iterator[Arrival]:
    return ((m.id.origin, Chained(m, m.id.number - 1)) for m in messages)


def _vector(messages: list[Message], *, chain: bool) -> Iterator[Arrival]:
    sent = [0] * SIZE
    for message in messages:
        origin, number = message.id
        sent[origin] = number
        stamp = sent if chain else [number if p == origin else 0 for p in range(SIZE)]
        yield origin, Stamped(message, tuple(stamp))


def _history(messages: list[Message], *, chain: bool) -> Iterator[Arrival]:
    last: dict[int, MessageId] = {}
    for message in messages:
        after = last.get(0 if chain else message.id.origin)
        last[0 if chain else message.id.origin] = message.id
        yield message.id.origin, Dependent(message, () if after is None else (after,))


def _matrix(messages: list[Message], *, chain: bool) -> Iterator[Arrival]:
    none = (0,) * SIZE
    sent = [none] * SIZE
    for message in messages:
        origin, number = message.id
        known = sent if chain else [sent[p] if p == origin else none for p in range(SIZE)]
        yield origin, Mapped(message, tuple(known))
        sent[origin] = (number,) * SIZE


def _requests(messages: list[Message]) -> Iterator[Arrival]:
    """For the sequencer, process 0, from the others."""
    for message in messages:
        origin, number = message.id
        yield origin + 1, Request(Message(MessageId(origin + 1, number), b""))


def _sequence(messages: list[Message]) -> Iterator[Arrival]:
    before = None
    for message in messages:
        yield 0, Sequenced(message, before)
        before = message.id


def _copies(messages: list[Message]) -> Iterator[Arrival]:
    return ((m.id.origin, Copy(m, (m.id.origin,))) for m in messages)


def _rumours(messages: list[Message]) -> Iterator[Arrival]:
    return ((m.id.origin, Rumour(m, 1)) for m in messages)


def _data(messages: list[Message]) -> Iterator[Arrival]:
    for message in messages:
        origin, number = message.id
        counts = tuple(number if p == origin else 0 for p in range(SIZE))
        yield origin, Data(message, counts)


# Algorithms that take more than one packet to let a message go


def _skeen(count: int) -> list[Arrival]:
    """All are announced; then the final stamps come, the largest first."""
    messages = _messages(count)
    announced = [(m.id.origin, Announce(m, 0)) for m in messages]
    final = [(m.id.origin, Final(m.id, place)) for place, m in enumerate(messages, start=1)]
    return announced + final[::-1]


def _lamport(count: int) -> list[Arrival]:
    """All are requested; then all others release before process 0, whose ticket is the first."""
    tickets = [(Ticket(time, m.id.origin), m) for time, m in enumerate(_messages(count), start=1)]
    asked = [(m.id.origin, TicketRequest(ticket)) for ticket, m in tickets]
    released = [(m.id.origin, Release(ticket, m)) for ticket, m in tickets]
    return asked + sorted(released, key=lambda arrival: arrival[0] == 0)


def _consensus(count: int) -> list[Arrival]:
    """All messages come; then a majority votes for a cut after each of them, for the last first."""
    messages, counts, votes = _messages(count), [0] * SIZE, []
    for instance, message in enumerate(messages):
        counts[message.id.origin] = message.id.number
        vote = Vote(instance, 0, Cut(tuple(counts), 0))
        votes += [(process, vote) for process in range(SIZE // 2 + 1)]
    return [(m.id.origin, Broadcast(m)) for m in messages] + votes[::-1]


def _majority(count: int) -> list[Arrival]:
    """All are heard of once, and patience runs out; then the quorum speaks, on the last first."""
    quorum = tuple(range(SIZE // 2 + 1))
    messages = _messages(count)
    settled = [(1, Copy(m, quorum)) for m in messages]
    return [*_copies(messages), *[(TIMER, ASK)] * 2, *settled[::-1]]


def _acks(order: Order) -> Arrivals:
    """The payloads come, then the word of everyone."""

    def arrivals(count: int) -> list[Arrival]:
        words = [(process, Counts(_counts(count))) for process in range(SENDERS)]
        return order(list(_data(_messages(count)))) + words

    return arrivals


def _gossip(order: Order) -> Arrivals:
    """The rumours come, then the digests of everyone."""

    def arrivals(count: int) -> list[Arrival]:
        digests = [(process, Digest(_counts(count), asks=False)) for process in range(SENDERS)]
        return order(list(_rumours(_messages(count)))) + digests

    return arrivals


def _compared(count: int) -> list[Arrival]:
    """Rumours come in order, and must be kept, since only process 1 tells that it has them."""
    arrivals = list(_rumours(_messages(count)))
    for told in range(count, 0, -100):
        arrivals.insert(told, (1, Digest(_counts(told), asks=False)))
    return arrivals


def _counts(count: int) -> tuple[int, ...]:
    """How many of the first `count` messages are each process's own."""
    return tuple(len(range(p, count, SENDERS)) if p < SENDERS else 0 for p in range(SIZE))


def _causal(name: str, history: Callable[..., Iterator[Arrival]]) -> list[Subject]:
    independent, chain = partial(history, chain=False), partial(history, chain=True)
    return [
        Subject(name, "direct", "gap", _late(independent, _gap)),
        Subject(name, "direct", "reversed", _late(independent, _reversed)),
        Subject(name, "direct", "chain, first one last", _late(chain, _first_last)),
        Subject(name, "direct", "chain, reversed", _late(chain, _reversed)),
    ]


SUBJECTS = [
    Subject("fifo", "direct", "gap", _late(_fifo, _gap)),
    Subject("fifo", "direct", "reversed", _late(_fifo, _reversed)),
    *_causal("causal_vector", _vector),
    *_causal("causal_history", _history),
    *_causal("causal_matrix", _matrix),
    Subject("total_coordinator", "direct", "requests, gap", _late(_requests, _gap), 0),
    Subject("total_coordinator", "direct", "requests, reversed", _late(_requests, _reversed), 0),
    Subject("total_coordinator", "direct", "first one last", _late(_sequence, _first_last)),
    Subject("total_coordinator", "direct", "reversed", _late(_sequence, _reversed)),
    Subject("total_lamport", "direct", "first ticket released last", _lamport),
    Subject("total_skeen", "direct", "final stamps reversed", _skeen),
    Subject("total_consensus", "direct", "votes reversed", _consensus),
    Subject("unordered", "relay", "reversed", _late(_bare, _reversed)),
    Subject("unordered", "majority", "quorum on the last one first", _majority),
    Subject("unordered", "majority_acks", "gap", _acks(_gap)),
    Subject("unordered", "majority_acks", "reversed", _acks(_reversed)),
    Subject("unordered", "gossip", "gap", _gossip(_gap)),
    Subject("unordered", "gossip", "reversed", _gossip(_reversed)),
    Subject("unordered", "gossip", "all kept, compared every 100", _compared),
]
