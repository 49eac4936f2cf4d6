# ruff: noqa: E501  (a mutant's text is a line of code)
"""Algorithms with one guard removed or weakened, as changes to their text.

Each must be killed: by the model checker, by random schedules, or by a scenario. One that survives
is a hole in the tests. The text that a mutant replaces must stand exactly once in the algorithm,
so that mutants keep up with the code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from ordercast.protocols import catalog
from ordercast.protocols.stack import Stack


@dataclass(frozen=True)
class Mutant:
    algorithm: str
    what: str
    changes: tuple[tuple[str, str], ...]
    modules: tuple[str, ...] = ()
    """Where the text stands, if not in the algorithm's own file, and what leads there from it."""

    @property
    def name(self) -> str:
        return f"{self.algorithm}: {self.what}"

    @property
    def is_ordering(self) -> bool:
        return self.algorithm in catalog.ORDERINGS

    def combination(self) -> tuple[str, str]:
        """What to run it with: the plainest partner."""
        if self.is_ordering:
            return self.algorithm, "direct"
        return "unordered", self.algorithm

    def builder(self, combination: tuple[str, str] | None = None) -> Callable[[int, int], Stack]:
        changed = self._layer()
        ordering, dissemination = combination or self.combination()
        upper = catalog.ORDERINGS[ordering].layer
        lower = catalog.DISSEMINATIONS[dissemination].layer

        def build(me: int, size: int) -> Stack:
            if self.is_ordering:
                return Stack(changed(me, size), lower(me, size))
            return Stack(upper(me, size), changed(me, size))

        return build

    def _layer(self) -> Any:
        entries: dict[str, Any] = {**catalog.ORDERINGS, **catalog.DISSEMINATIONS}
        layer = entries[self.algorithm].layer
        replaced: dict[str, Any] = {}
        for index, module in enumerate((*self.modules, layer.__module__)):
            text = Path(_file(module)).read_text()
            loaded = self._load(module, self._changed(text) if index == 0 else text)
            vars(loaded).update(replaced)
            replaced |= {name: getattr(loaded, name) for name in loaded.__all__}
        return replaced[layer.__name__]

    def _changed(self, text: str) -> str:
        for old, new in self.changes:
            assert text.count(old) == 1, f"{self.name}: {old!r} stands {text.count(old)} times"
            text = text.replace(old, new)
        return text

    def _load(self, module: str, text: str) -> ModuleType:
        """A module under a name of its own, where pickle and msgspec will find it."""
        name = f"mutant_{abs(hash((self.name, module)))}"
        mutant = ModuleType(name)
        sys.modules[name] = mutant
        exec(compile(text, f"<{self.name}>", "exec"), mutant.__dict__)
        return mutant


def _file(module: str) -> str:
    file = import_module(module).__file__
    assert file is not None
    return file


def _m(
    algorithm: str, what: str, *changes: tuple[str, str], modules: tuple[str, ...] = ()
) -> Mutant:
    return Mutant(algorithm, what, changes, tuple(f"ordercast.protocols.{m}" for m in modules))


NO_CAUSAL_GUARD = _m(
    "causal_vector",
    "causal guard removed (FIFO only)",
    ("if process != origin and count > self.delivered[process]:", "if False:"),
)
NO_FIFO_GUARD = _m(
    "causal_vector",
    "FIFO guard removed",
    ("if number > self.delivered[origin] + 1:", "if False:"),
    # Otherwise an overtaken message would be taken for a repetition, and be refused.
    ("if number <= self.delivered[origin]:", "if False:"),
    (
        "self.delivered[ready.message.id.origin] += 1",
        "o, k = ready.message.id; self.delivered[o] = max(self.delivered[o], k)",
    ),
)

MUTANTS = [
    _m("unordered", "delivers nothing", ("return [Deliver(item)]", "return []")),
    _m("unordered", "delivers twice", ("return [Deliver(item)]", "return [Deliver(item)] * 2")),
    _m(
        "fifo",
        "delivers early messages at once",
        (
            "while message := early.pop(self.last_delivered[origin], None):",
            "while early and (message := early.pop(min(early))):",
        ),
    ),
    _m(
        "fifo",
        "does not remember what it delivered",
        ("self.last_delivered[origin] = message.id.number", "pass"),
    ),
    _m(
        "fifo",
        "chains across channels",
        (
            "channels: dict[int, list[int]] = {}",
            "channels = {}; self.last_sent = [max(self.last_sent)] * self.size",
        ),
    ),
    NO_CAUSAL_GUARD,
    NO_FIFO_GUARD,
    _m(
        "causal_vector",
        "causal guard one too weak",
        (
            "if process != origin and count > self.delivered[process]:",
            "if process != origin and count > self.delivered[process] + 1:",
        ),
    ),
    _m(
        "causal_vector",
        "stamps without what was delivered",
        ("stamp = self.delivered.copy()", "stamp = [0] * self.size"),
    ),
    _m(
        "causal_history",
        "dependencies ignored (FIFO only)",
        ("if dependency.number > self.delivered[dependency.origin]:", "if False:"),
    ),
    _m(
        "causal_history",
        "dependency guard one too weak",
        (
            "if dependency.number > self.delivered[dependency.origin]:",
            "if dependency.number > self.delivered[dependency.origin] + 1:",
        ),
    ),
    _m("causal_history", "deliveries are no dependencies", ("self.frontier.add(id)", "pass")),
    _m(
        "causal_history",
        "only the last delivery is a dependency",
        ("self.frontier.difference_update(item.dependencies)", "self.frontier.clear()"),
    ),
    _m(
        "causal_history",
        "FIFO guard removed",
        ("if number > self.delivered[origin] + 1:", "if False:"),
        ("self.frontier = {message.id}", "self.frontier = set()"),
    ),
    _m(
        "causal_matrix",
        "guard removed",
        ("if row[self.me] > self.delivered[process]:", "if False:"),
    ),
    _m(
        "causal_matrix",
        "FIFO only",
        (
            "if row[self.me] > self.delivered[process]:",
            "if process == item.message.id.origin and row[self.me] > self.delivered[process]:",
        ),
    ),
    _m(
        "causal_matrix",
        "learns nothing from others' matrices",
        ("mine[:] = map(max, mine, theirs)", "pass"),
    ),
    _m(
        "causal_matrix",
        "does not enter what it delivers",
        ("            self._enter(ready.message)\n", ""),
    ),
    _m(
        "causal_matrix",
        "does not enter what it sends",
        ("        self._enter(message)\n        return", "        return"),
    ),
    _m("causal_coordinator", "links need not be FIFO", ("needs_fifo = True", "needs_fifo = False")),
    _m(
        "causal_coordinator",
        "goes round the coordinator",
        (
            "return [Spread(Request(message), (COORDINATOR,))]",
            "return [Spread(Forwarded(message), message.destinations)]",
        ),
        ("if source != COORDINATOR:", "if False:"),
    ),
    _m(
        "synchronous",
        "sender of a big message stays active",
        (
            "            if to < self.me:\n                self._be_passive(message.id, to)\n",
            "",
        ),
        ("if item.id != self.passive_for:", "if False:"),
    ),
    _m(
        "synchronous",
        "grants without becoming passive",
        ("            self._be_passive(item.id, source)\n", ""),
        (
            "        elif source < self.me:\n            raise PeerError",
            "        elif False:\n            raise PeerError",
        ),
    ),
    _m(
        "synchronous",
        "small messages need no permission",
        ("        if to > self.me:\n", "        if False:\n"),
        (
            "        elif source < self.me:\n            raise PeerError",
            "        elif False:\n            raise PeerError",
        ),
    ),
    _m(
        "synchronous",
        "passive processes handle what comes",
        (
            "if self.passive_for is not None and not self._awaited(source, item):",
            "if False:",
        ),
    ),
    _m(
        "synchronous",
        "counts as sent when the user asks",
        (
            "        self.outgoing.append(message)\n",
            "        self.outgoing.append(message)\n        yield Accept(message)\n",
        ),
        ("        return self._go_on()\n", "        yield from self._go_on()\n"),
        (
            "        yield Accept(message)\n        yield Spread(Transfer",
            "        yield Spread(Transfer",
        ),
    ),
    _m(
        "total_coordinator",
        "sequences a sender's messages as they come",
        (
            "while ready := self.requests[origin].pop(self.sequenced[origin] + 1, None):",
            "while self.requests[origin]:\n            ready = self.requests[origin].popitem()[1]",
        ),
        ("if number <= self.sequenced[origin] or number in self.requests[origin]:", "if False:"),
    ),
    _m(
        "total_coordinator",
        "delivers as it comes",
        (
            "while message := self.early.pop(self.delivered, None):",
            "while self.early:\n            message = self.early.popitem()[1]",
        ),
        ("if item.before in self.early or (first and self.delivered is not None):", "if False:"),
    ),
    _m(
        "total_coordinator",
        "one chain for all destinations",
        (
            "places: dict[MessageId | None, list[int]] = {}",
            "places = {}; self.last = [max(self.last, key=lambda i: i or (-1, 0))] * self.size",
        ),
    ),
    _m("total_lamport", "links need not be FIFO", ("needs_fifo = True", "needs_fifo = False")),
    _m(
        "total_lamport",
        "one acknowledgement too few",
        (
            "if len(self.acknowledged[first]) < self.size:",
            "if len(self.acknowledged[first]) < self.size - 1:",
        ),
    ),
    _m(
        "total_lamport",
        "acknowledges without entering the ticket",
        (
            "        heapq.heappush(self.queue, ticket)\n        yield Spread(Acknowledge",
            "        yield Spread(Acknowledge",
        ),
    ),
    _m(
        "total_lamport",
        "clock not raised by requests",
        ("self.clock = max(self.clock, ticket.time) + 1", "pass"),
    ),
    _m(
        "total_lamport",
        "delivers on release, whoever is first",
        (
            "            first = self.queue[0]\n",
            "            first = min(self.queue, key=lambda t: (t not in self.released, t))\n",
        ),
        (
            "            heapq.heappop(self.queue)\n",
            "            self.queue.remove(first); heapq.heapify(self.queue)\n",
        ),
    ),
    _m(
        "total_lamport",
        "tie-break dropped: one's own ticket first",
        (
            "            first = self.queue[0]\n",
            "            first = min(self.queue, key=lambda t: (t.time, t.process != self.me, t))\n",
        ),
        (
            "            heapq.heappop(self.queue)\n",
            "            self.queue.remove(first); heapq.heapify(self.queue)\n",
        ),
    ),
    _m(
        "total_skeen",
        "tentative stamps ignored",
        (
            "while self.queue and self.stamps.get(self.queue[0].id) != self.queue[0]:",
            "while self.queue and (self.stamps.get(self.queue[0].id) != self.queue[0] or self.queue[0].id not in self.final):",
        ),
    ),
    _m(
        "total_skeen",
        "the last proposal decides, not the largest",
        ("max(self.largest[item.id], item.time)", "item.time"),
    ),
    _m(
        "total_skeen",
        "one proposal too few",
        (
            "if not self.asked[item.id]:",
            "if len(self.asked[item.id]) <= 1 and item.id in self.addressees:",
        ),
        (
            "if source not in self.asked.get(item.id, ()):",
            "if item.id not in self.asked: return\n        if False:",
        ),
    ),
    _m(
        "total_skeen",
        "clock not raised by final stamps",
        ("self.clock = max(self.clock, item.time)\n", "pass\n"),
    ),
    _m(
        "total_skeen",
        "tie-break dropped: equal times as they come",
        (
            "    time: int\n    id: MessageId\n",
            "    time: int\n    id: MessageId\n\n    def __lt__(self, other):\n        return self.time < other.time\n",
        ),
    ),
    _m(
        "total_consensus",
        "votes for what it does not have",
        (
            "if self.proposal is not None and self.voted < self.round and self._has(self.proposal):",
            "if self.proposal is not None and self.voted < self.round:",
        ),
    ),
    _m(
        "total_consensus",
        "one vote too few",
        ("if len(votes) >= self.quorum:", "if len(votes) >= self.quorum - 1:"),
    ),
    _m(
        "total_consensus",
        "a new coordinator asks nobody",
        ("if len(known) < self.quorum:", "if not known:"),
    ),
    _m(
        "total_consensus",
        "a new coordinator is not bound by votes",
        ("if latest.cut is not None:", "if False:"),
    ),
    _m(
        "total_consensus",
        "a new coordinator is bound by what died with its voters",
        ("if not said.cut or self._has(said.cut)]", "]"),
    ),
    _m(
        "total_consensus",
        "nobody leaves a dead coordinator",
        (
            "if self.coordinator in self.suspected and (self.votes or self._news()):",
            "if False:",
        ),
    ),
    _m(
        "total_consensus",
        "nobody follows to a higher round",
        (
            "        if item.round > self.round:\n            yield from self._enter(item.round)\n",
            "",
        ),
    ),
    _m(
        "total_consensus",
        "votes for proposals of rounds that it has left",
        (
            "            if item.round == self.round:\n                self.proposal = item.cut\n",
            "            self.proposal = item.cut\n",
        ),
    ),
    _m(
        "total_consensus",
        "drops what comes too early",
        ("self.later.setdefault(item.instance, []).append((source, item))", "pass"),
    ),
    _m(
        "total_consensus",
        "never tells of a decision",
        ("        if not told:\n", "        if False:\n"),
        ("elif isinstance(item, Round) and item.instance in self.past:", "elif False:"),
    ),
    _m(
        "total_consensus",
        "does not vote late",
        ("            if not voted:  #", "            if False:  #"),
    ),
    _m(
        "total_consensus",
        "fetches nothing",
        ("        if not self.suspected:\n            return\n", "        return\n"),
    ),
    _m(
        "total_consensus",
        "hands nothing on",
        (
            "for origin in sorted(self.suspected) if to not in (self.me, *self.suspected) else ():",
            "for origin in ():",
        ),
    ),
    _m(
        "total_consensus",
        "delivers its own first",
        (
            "for origin, count in enumerate(cut.counts):\n                while",
            "for origin, count in sorted(enumerate(cut.counts), key=lambda c: c[0] != self.me):\n                while",
        ),
    ),
    _m(
        "total_consensus",
        "delivers without having all of a cut",
        (
            "while self.undelivered and self._has(self.undelivered[0][1]):",
            "while self.undelivered:",
        ),
        (
            "while self.delivered[origin] < count:",
            "while self.delivered[origin] < min(count, self.log.received.counts[origin]):",
        ),
    ),
    _m(
        "total_consensus",
        "the next instance begins in any round",
        ("self.round = self.last.round", "self.round = getattr(self, 'round', 0)"),
    ),
    _m(
        "total_consensus",
        "forgets what is not delivered here",
        ("        self.log.kept_for[me] = self.delivered  #", "        #"),
    ),
    _m(
        "direct",
        "forgets the last destination",
        ("yield Transmit(remote, item)", "yield Transmit(remote[:-1], item)"),
    ),
    _m("direct", "nothing arrives at the sender", ("if self.me in to:", "if False:")),
    _m(
        "best_effort",
        "nothing arrives at the sender",
        (", Arrive(self.me, item)]", "]"),
    ),
    _m(
        "best_effort",
        "forgets one process",
        ("Transmit(self.all_but(self.me), item)", "Transmit(self.all_but(self.me)[1:], item)"),
    ),
    _m(
        "relay",
        "no relay",
        ("            Transmit(self.all_but(self.me, id.origin, source), packet),\n", ""),
    ),
    _m("relay", "repetitions arrive again", ("if id in self.seen:", "if False:")),
    _m(
        "majority",
        "counts on the first copy",
        ("self.threshold = size // 2 + 1 if", "self.threshold = 1 if"),
    ),
    _m(
        "majority",
        "quorum one too small (half, rounded down)",
        ("self.threshold = size // 2 + 1 if", "self.threshold = max(size // 2, 1) if"),
    ),
    _m("majority", "no relay", ("forward=len(forwarders) < self.threshold)", "forward=False)")),
    _m(
        "majority",
        "stays silent when it would itself complete the quorum",
        (
            "forwarders = {*packet.forwarders, source}",
            "forwarders = {*packet.forwarders, source, self.me}",
        ),
    ),
    _m("majority", "repetitions arrive again", ("if id_of(packet) in self.arrived:", "if False:")),
    _m("majority", "never asks", ("if name == ASK:", "if False:")),
    _m(
        "majority",
        "confirms what has not arrived",
        ("known = tuple(id for id in ids if id in self.arrived)", "known = ids"),
        ("            if id not in self.arrived:\n", "            if False:\n"),
    ),
    _m(
        "majority_acks",
        "counts on the first copy",
        ("self.threshold = size // 2 + 1 if", "self.threshold = 1 if"),
    ),
    _m(
        "majority_acks",
        "quorum one too small (half, rounded down)",
        ("self.threshold = size // 2 + 1 if", "self.threshold = max(size // 2, 1) if"),
    ),
    _m(
        "majority_acks",
        "never tells",
        ("            if counts != self.told:\n", "            if False:\n"),
    ),
    _m(
        "majority_acks",
        "neither pulls nor forwards",
        ("elif name == PULL:", "elif False:"),
        ("for other in self.all_but(self.me, process):", "for other in ():"),
    ),
    _m(
        "majority_acks",
        "forgets what one other has",
        ("        if place < len(kept_for):", "        if False:"),
        ("min(map(itemgetter(origin), kept_for))", "sorted(map(itemgetter(origin), kept_for))[1]"),
        modules=("retained",),
    ),
    _m(
        "majority_acks",
        "looks for a quorum one too late",
        ("= enough - have_more", "= enough - have_more + 1"),
        modules=("retained",),
    ),
    _m(
        "majority_acks",
        "counts across gaps",
        (
            "while counts[origin] + 1 in early:",
            "while early and min(early) > counts[origin]:",
        ),
        (
            "            counts[origin] += 1\n            early.remove(counts[origin])",
            "            counts[origin] = min(early)\n            early.remove(counts[origin])",
        ),
        modules=("received", "retained"),
    ),
    _m("gossip", "never compares", ("if name == COMPARE:", "if False:")),
    _m(
        "gossip",
        "repetitions arrive again",
        ("if id_of(packet) in self.log.received:", "if False:"),
    ),
    _m(
        "gossip",
        "asks and never tells",
        ("for item in self.log.after(origin, count):", "for item in ():"),
    ),
    _m("gossip", "does not answer digests", ("        if digest.asks:\n", "        if False:\n")),
]
