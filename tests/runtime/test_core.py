"""A member's whole state comes back from its inputs, at any moment and for every algorithm."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from types import UnionType
from typing import Any, get_args, get_origin

import pytest

from ordercast.errors import JournalError, PeerError
from ordercast.protocols import catalog
from ordercast.runtime import snapshot
from ordercast.runtime.bundle import Bundle, pack
from ordercast.runtime.core import Core
from ordercast.runtime.inputs import LoggedCore, replay
from ordercast.runtime.journal import Journal
from ordercast.runtime.memory import Memory
from ordercast.runtime.standing import Report

SIZE = 3


class Member:
    """A core with its journal in memory, and a second one that is fed from that journal."""

    def __init__(self, ordering: str, dissemination: str, me: int) -> None:
        core = Core(catalog.build(ordering, dissemination, me, SIZE), life=str(me))
        core.attach(recording=True)
        self.first_page = core.snapshot()
        self.records: list[bytes] = []
        self.inputs = LoggedCore(
            core, lambda *parts: self.records.append(b"".join(parts)), pytest.fail
        )
        self.inputs.other("start")
        self.taken = [0] * SIZE
        """From each link, the packets that were handed over."""

    @property
    def core(self) -> Core:
        return self.inputs.core

    def recalled(self) -> Core:
        core = Core.restore(self.first_page)
        core.attach(recording=True)
        replay(core, self.records)
        return core

    def turn_the_page(self) -> None:
        self.first_page = self.core.snapshot()
        self.records.clear()
        self.core.spans = []

    def die(self) -> None:
        self.inputs.core = self.recalled()


def look(core: Core) -> dict[str, Any]:
    """Everything that can be seen of a core."""
    return {
        "links": {
            index: (link.sent, link.received, [*link._flying, *link._waiting], link.bytes)
            for index, link in core.links.items()
        },
        "queue": list(core.queue),
        "counts": (core.sent, core.delivered, core.rows, core.last),
        "timers": core.timers,
        "held": core.stack.held(),
        "lacking": core.standing.lacking,
        "owed": core.standing.owed,
        "spans": core.spans,
        "unreported": core.unreported,
        "lives": core.lives,
    }


class World:
    """Links are lists: what was put and not handed over is on its way."""

    def __init__(self, ordering: str, dissemination: str, seed: int) -> None:
        self.chance = Random(f"{ordering} {dissemination} {seed}")
        self.to_one = catalog.ORDERINGS[ordering].destinations == "one"
        self.members = [Member(ordering, dissemination, me) for me in range(SIZE)]

    def step(self) -> None:
        chance = self.chance
        me = chance.randrange(SIZE)
        member = self.members[me]
        kind = chance.choices(
            ["send", "packet", "timer", "suspect", "trust", "report", "meet", "die", "page"],
            [3, 12, 3, 0.3, 0.3, 1, 0.2, 0.7, 0.3],
        )[0]
        if kind == "send":
            self.send(member, me)
        elif kind == "packet":
            self.hand_over(me, (me + chance.randint(1, SIZE - 1)) % SIZE)
        elif kind == "timer" and member.core.timers:
            member.inputs.other("timer", chance.choice(sorted(member.core.timers)))
        elif kind in ("suspect", "trust"):
            member.inputs.other(kind, (me + 1) % SIZE)
        elif kind == "report":
            peer = (me + chance.randint(1, SIZE - 1)) % SIZE
            member.inputs.other("report", peer, member.core.taken[peer])
        elif kind == "meet":
            member.inputs.other("meet", (me + 1) % SIZE, "life")
        elif kind == "die":
            member.die()
        elif kind == "page":
            member.turn_the_page()

    def send(self, member: Member, me: int) -> None:
        payloads = [b"x" * self.chance.randint(0, 3) for _ in range(self.chance.randint(1, 3))]
        first = member.core.sent + 1
        to = ((me + 1) % SIZE,) if self.to_one else None
        member.inputs.submit(pack(first, payloads), first, payloads, to)

    def hand_over(self, source: int, target: int) -> bool:
        link = self.members[source].core.links[target]
        taker = self.members[target]
        place = taker.core.links[source].received - link.acknowledged
        packets = [*link._flying, *link._waiting]
        if place >= len(packets):
            return False
        taker.inputs.take(source, packets[place])
        return True

    def settle(self) -> None:
        """Everything is handed over, and every timer ends, until nothing happens any more."""
        for _ in range(10_000):
            moved = [
                self.hand_over(source, target)
                for source in range(SIZE)
                for target in range(SIZE)
                if source != target
            ]
            if any(moved):
                continue
            timers = [(m, name) for m in self.members for name in sorted(m.core.timers)]
            if not timers:
                return
            for member, name in timers:
                member.inputs.other("timer", name)
        raise AssertionError("it never comes to rest")


@pytest.mark.parametrize(("ordering", "dissemination"), catalog.combinations())
def test_whoever_is_fed_the_same_inputs_is_the_same(ordering: str, dissemination: str) -> None:
    for seed in range(6):
        world = World(ordering, dissemination, seed)
        for step in range(120):
            world.step()
            if step % 10 == 0:
                for member in world.members:
                    assert look(member.recalled()) == look(member.core)
        world.settle()
        sent = sum(member.core.sent for member in world.members)
        copies = 1 if world.to_one else SIZE
        assert sum(member.core.delivered for member in world.members) == sent * copies
        assert sent > 5


def mutated(packet: bytes, chance: Random) -> bytes:
    """The same with a few bytes changed, left out or repeated, or with numbers replaced."""
    data = bytearray(packet)
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(data))
        kind = chance.randrange(4)
        if kind == 0:
            data[place] = chance.choice([0, 1, 2, 3, 0x7F, 0x80, 0xC0, 0xCF, 0xFF])
        elif kind == 1:
            data[place] = (data[place] + chance.choice([-1, 1])) % 256
        elif kind == 2 and len(data) > 1:
            del data[place]
        else:
            data[place:place] = data[place : place + chance.randint(1, 4)]
    return bytes(data)


@pytest.mark.parametrize(("ordering", "dissemination"), catalog.combinations())
def test_whatever_a_member_sends_it_is_the_members_fault(ordering: str, dissemination: str) -> None:
    """Nothing on the wire raises anything but a PeerError, before or after which the core lives:
    it can still be looked at, and comes back from its inputs the same."""
    refused = 0
    for seed in range(8):
        world = World(ordering, dissemination, seed)
        for _ in range(60):
            world.step()
        chance = Random(f"fuzz {seed}")
        packets = [
            (source, target, packet)
            for source in range(SIZE)
            for target, link in world.members[source].core.links.items()
            for packet in [*link._flying, *link._waiting]
        ]
        for source, target, packet in chance.sample(packets, min(40, len(packets))):
            try:
                world.members[target].inputs.take(source, mutated(packet, chance))
            except PeerError:
                refused += 1
        for member in world.members:
            assert look(member.recalled()) == look(member.core)
    assert refused > 50


def test_what_a_snapshot_looks_at_is_none_the_slower_for_it() -> None:
    core = Core(catalog.build("causal_vector", "majority_acks", 0, SIZE), life="0")
    for part in (core, core.standing, *core.links.values()):
        assert not hasattr(part, "__dict__"), type(part).__name__


@pytest.mark.parametrize(("ordering", "dissemination"), catalog.combinations())
def test_whatever_a_member_keeps_is_read_back(ordering: str, dissemination: str) -> None:
    for seed in range(3):
        world = World(ordering, dissemination, seed)
        for _ in range(80):
            world.step()
            for member in world.members:
                back = Core.restore(member.core.snapshot())
                assert {**look(back), "spans": []} == {**look(member.core), "spans": []}


@pytest.mark.parametrize(("ordering", "dissemination"), catalog.combinations())
def test_whatever_a_member_is_sent_it_may_keep(ordering: str, dissemination: str) -> None:
    """The rarest packets too, which it keeps in no random world."""
    stack = catalog.build(ordering, dissemination, 0, SIZE)
    for kind in classes_in(stack.packets):
        assert snapshot.load(snapshot.dump({"kept": kind})) == {"kept": kind}


def classes_in(packets: Any) -> set[type]:
    """Those that unions and generic types are made of, `Copy[Stamped]` both of its."""
    found = {part for each in get_args(packets) for part in classes_in(each)}
    plain = get_origin(packets) or packets
    return found | {plain} if isinstance(plain, type) and plain is not UnionType else found


def stack_global(module: str, name: str) -> bytes:
    """A pickle that calls what is found under this name."""

    def text(word: str) -> bytes:
        return b"\x8c" + bytes((len(word),)) + word.encode()

    return b"\x80\x05" + text(module) + text(name) + b"\x93" + text("true") + b"\x85R."


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("builtins", "print"),
        ("ordercast.runtime.watching", "os.system"),
        ("ordercast.protocols.stack", "msgspec.msgpack.decode"),
        ("ordercast.runtime.state", "State.restore"),
        ("ordercast.runtime.certificates", "make"),
        ("collections", "deque.clear"),
    ],
)
def test_a_snapshot_names_nothing_but_the_members_state(module: str, name: str) -> None:
    evil = stack_global(module, name)
    with pytest.raises(JournalError, match=rf"{module}\.{name}, which is no part of a member's"):
        Core.restore(evil)


def test_a_journal_with_another_snapshot_is_refused_by_its_file(tmp_path: Path) -> None:
    journal = Journal(tmp_path, identity={"member": "a"})
    journal.start(stack_global("ordercast.runtime.watching", "os.system"))
    journal.close()
    words = r"0000000001\.segment is corrupt at byte \d+: a snapshot names .*os\.system"
    with (
        Memory(tmp_path, identity={"member": "a"}, sync="write") as memory,
        pytest.raises(JournalError, match=words),
    ):
        asyncio.run(memory.recall(None, replay_from=None))


@pytest.mark.parametrize("junk", [b"", b"\x80\x05", b"\x80\x05K\x01R.", b"no pickle at all"])
def test_a_snapshot_that_is_none_is_told_as_such(junk: bytes) -> None:
    with pytest.raises(JournalError, match="a snapshot is none: "):
        Core.restore(junk)


def core_of(me: int = 0, size: int = 2) -> Core:
    return Core(catalog.build("fifo", "best_effort", me, size), life="")


@pytest.mark.parametrize("ranges", [(1,), (1, 2**60, 5), (3, 1, 7)])
def test_a_report_that_makes_no_sense_is_the_peers_fault(ranges: tuple[int, ...]) -> None:
    core = core_of()
    with pytest.raises(PeerError, match="reports what cannot be"):
        core.take(1, core.codec.encode(Report(ranges, 0)))


def test_a_report_of_everything_there_ever_was_costs_no_more_than_what_there_is() -> None:
    core = core_of()
    core.submit(pack(1, [b"x"]), 1, [b"x"])
    core.take(1, core.codec.encode(Report((1, 2**60), 1)))
    assert core.standing.lacking == {}
    assert core.standing.changed == [1, 1]


def test_taking_back_more_than_was_sent_is_the_peers_fault() -> None:
    core = core_of()
    with pytest.raises(PeerError, match="reports what cannot be"):
        core.take(1, core.codec.encode(Report((), 1)))


def test_what_is_no_bundle_never_reaches_the_protocol() -> None:
    core, other = core_of(0), core_of(1)
    for payload in (b"", b"\xc1", pack(1, []), pack(0, [b"x"])):
        _, effects = other.stack.send(payload)
        packet = next(effect.packet for effect in effects if hasattr(effect, "packet"))
        with pytest.raises(PeerError, match="is no bundle of messages"):
            core.take(1, core.codec.encode(packet))
    assert core.delivered == 0


def test_taking_up_to_the_middle_of_a_bundle_leaves_the_rest() -> None:
    core = core_of(size=1)
    core.submit(pack(1, [b"a", b"b", b"c"]), 1, [b"a", b"b", b"c"])
    core.submit(pack(4, [b"d"]), 4, [b"d"])
    core.take_up_to(2)
    left: list[Bundle] = list(core.queue)
    assert [(bundle.first, bundle.position, bundle.payloads) for bundle in left] == [
        (3, 3, [b"c"]),
        (4, 4, [b"d"]),
    ]
    assert core.standing.outstanding() == sum(bundle.cost for bundle in left)
    core.take_up_to(4)
    assert core.standing.outstanding() == 0


def test_the_dead_are_not_waited_for() -> None:
    core = Core(catalog.build("causal_vector", "majority_acks", 0, 3), life="")
    for number in range(1, 4):
        core.submit(pack(number, [b"x"]), number, [b"x"])
    assert core.standing.waits_for(2) == [0, 1, 2]
    core.bury(2)
    assert core.standing.waits_for(2) == [0, 1]
    core.submit(pack(4, [b"x"]), 4, [b"x"])
    assert core.links[2].unacknowledged == core.links[2].bytes == 0
    assert core.links[1].unacknowledged == 4


def test_what_is_left_of_a_bundle_is_read_back_whatever_its_numbers() -> None:
    """A peer may number its messages as it likes, up to a bound that the rest of them can pass."""
    bundle = Bundle(1, 1, 2**62 - 1, [b"a", b"b"], position=1, time_us=0, cost=2).after(1)
    assert snapshot.load(snapshot.dump({"bundle": bundle})) == {"bundle": bundle}


def test_a_snapshot_has_bundles_packed() -> None:
    payloads = [b"%d" % number for number in range(100)]
    bundle = Bundle(1, 1, 5, payloads, position=1, time_us=0, cost=2)
    assert pack(5, payloads) in snapshot.dump({"bundle": bundle})
