"""Stacks as a host sees them: ids, effects, refusals, and the wire."""

from __future__ import annotations

import re
from collections import deque
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ordercast.errors import OrdercastError, PeerError, UsageError
from ordercast.protocols import catalog
from ordercast.protocols.disseminations.gossip import Digest
from ordercast.protocols.effects import Deliver, HostEffect, StartTimer, Transmit
from ordercast.protocols.messages import Message, MessageId
from ordercast.protocols.stack import Stack

COMBINATIONS = catalog.combinations()
Entry = catalog.OrderingEntry | catalog.DisseminationEntry


def exchange(stacks: list[Stack], sends: dict[int, int]) -> tuple[list[list[Message]], list[bytes]]:
    """Let each process send so many messages and carry every packet as bytes, until rest.
    Returns what each process delivered, and all packets."""
    codec = stacks[0].codec()
    delivered: list[list[Message]] = [[] for _ in stacks]
    packets: list[bytes] = []
    under_way: deque[tuple[int, int, bytes]] = deque()
    timers: deque[tuple[int, str]] = deque()

    def perform(process: int, effects: list[HostEffect]) -> None:
        for effect in effects:
            if isinstance(effect, Deliver):
                delivered[process].append(effect.message)
            elif isinstance(effect, Transmit):
                data = codec.encode(effect.packet)
                assert codec.decode(data) == effect.packet
                packets.append(data)
                under_way.extend((process, to, data) for to in effect.to)
            elif isinstance(effect, StartTimer):
                timers.append((process, effect.name))

    for process, count in sends.items():
        for number in range(1, count + 1):
            one = stacks[process].ordering.destinations == "one"
            to = [(process + 1) % len(stacks)] if one else None
            message, effects = stacks[process].send(b"x", to)
            assert message.id == MessageId(process, number)
            perform(process, effects)
    while under_way or timers:
        if under_way:
            source, to, data = under_way.popleft()
            perform(to, stacks[to].receive(source, codec.decode(data)))
        else:
            process, name = timers.popleft()
            perform(process, stacks[process].timer(name))
    return delivered, packets


@pytest.mark.parametrize("entry", [*catalog.ORDERINGS.values(), *catalog.DISSEMINATIONS.values()])
def test_an_algorithm_is_called_what_the_catalog_calls_it(entry: Entry) -> None:
    assert entry.layer(0, 3).name == entry.name


@pytest.mark.parametrize(("ordering", "dissemination"), COMBINATIONS)
def test_whoever_cannot_send_to_some_says_what_can(ordering: str, dissemination: str) -> None:
    try:
        catalog.build(ordering, dissemination, 0, 3).destinations([1])
    except UsageError as error:
        found = re.search(r"choose (\w+) over (\w+),", str(error))
        assert found is not None
        assert catalog.ORDERINGS[found[1]].order == catalog.ORDERINGS[ordering].order
        assert catalog.build(found[1], found[2], 0, 3).destinations([1]) == (1,)


@pytest.mark.parametrize(("ordering", "dissemination"), COMBINATIONS)
def test_messages_are_numbered_from_one_travel_as_bytes_and_are_delivered(
    ordering: str, dissemination: str
) -> None:
    stacks = [catalog.build(ordering, dissemination, me, 3) for me in range(3)]
    delivered, _ = exchange(stacks, {0: 2, 2: 1})
    if catalog.ORDERINGS[ordering].destinations == "one":
        expected = [{"2:1"}, {"0:1", "0:2"}, set()]
    else:
        expected = [{"0:1", "0:2", "2:1"}] * 3
    assert [{str(m.id) for m in messages} for messages in delivered] == expected
    assert not [held for stack in stacks for held in stack.held()]


@pytest.mark.parametrize(("ordering", "dissemination"), COMBINATIONS)
@given(st.binary(max_size=60))
def test_strange_bytes_are_the_peers_fault(ordering: str, dissemination: str, data: bytes) -> None:
    stack = catalog.build(ordering, dissemination, 0, 3)
    with suppress(PeerError):
        stack.receive(1, stack.codec().decode(data))


@pytest.mark.parametrize(("ordering", "dissemination"), COMBINATIONS)
@given(st.data())
def test_a_well_formed_packet_with_wrong_numbers_is_the_peers_fault_at_worst(
    ordering: str, dissemination: str, data: st.DataObject
) -> None:
    _, packets = exchange(
        [catalog.build(ordering, dissemination, me, 3) for me in range(3)], {1: 1, 2: 1}
    )
    stack = catalog.build(ordering, dissemination, 0, 3)
    to = [1] if catalog.ORDERINGS[ordering].destinations == "one" else None
    stack.send(b"mine", to)
    for _ in range(3):
        fields = msgspec.msgpack.decode(data.draw(st.sampled_from(packets)))
        packet = msgspec.msgpack.encode(_distort(fields, data))
        with suppress(PeerError):
            stack.receive(data.draw(st.integers(1, 2)), stack.codec().decode(packet))
        assert all(held.waits_for or held.waits_on for held in stack.held())


def _distort(value: object, data: st.DataObject) -> object:
    """The same shape with other numbers, and sometimes another length."""
    if isinstance(value, list | tuple):
        rows = [_distort(part, data) for part in value]
        return rows[: data.draw(st.integers(len(rows) - 1, len(rows)))]
    if isinstance(value, int):
        return data.draw(st.sampled_from([value, 0, 1, 2, 3, 5, 2**40, -1]))
    return value


def test_a_stamp_that_does_not_fit_is_the_peers_fault() -> None:
    receiver = catalog.build("causal_vector", "best_effort", 1, 3)
    for size in (2, 4):
        _, effects = catalog.build("causal_vector", "best_effort", 0, size).send(b"")
        with pytest.raises(PeerError, match="stamp that does not fit"):
            receiver.receive(0, next(e.packet for e in effects if isinstance(e, Transmit)))


def test_what_is_behind_a_message_that_was_refused_is_not_forgotten() -> None:
    """Everyone has it, and here it has yet to arrive: what comes next finds it."""
    sender, other, receiver = (catalog.build("causal_vector", "gossip", me, 3) for me in (0, 1, 2))
    rumours = []
    for _ in range(4):
        _, effects = sender.send(b"")
        rumours += [each.packet for each in effects if isinstance(each, Transmit)][:1]
    wrong = replace(rumours[1], message=replace(rumours[1].message, stamp=(1,)))
    for rumour in rumours:
        other.receive(0, rumour)
    for rumour in (rumours[2], wrong):
        receiver.receive(0, rumour)
    with pytest.raises(PeerError, match="stamp that does not fit"):
        receiver.receive(0, rumours[0])
    for source in (0, 1):
        receiver.receive(source, Digest((3, 0, 0), asks=False))
    receiver.receive(0, rumours[3])


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        (lambda: catalog.build("causal", "best_effort", 0, 3), "no 'causal' in the catalog"),
        (lambda: catalog.build("fifo", "pigeon", 0, 3), "no 'pigeon' in the catalog"),
        (lambda: catalog.build("fifo", "direct", 3, 3), "process 3 cannot be in a group of 3"),
        (lambda: catalog.choose("best"), "no order 'best'"),
        (lambda: catalog.build("fifo", "direct", 0, 3).send(b"", to=[3]), "not in this group"),
        (lambda: catalog.build("fifo", "direct", 0, 3).send(b"", to=[]), "needs a destination"),
        (lambda: catalog.build("fifo", "best_effort", 0, 3).send(b"", to=[1]), "broadcasts only"),
        (
            lambda: catalog.build("causal_vector", "direct", 0, 3).send(b"", to=[1]),
            "broadcasts only",
        ),
    ],
)
def test_misuse_gets_a_sentence(act: object, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        act()  # type: ignore[operator]


def test_a_refused_send_uses_up_no_number() -> None:
    stack = catalog.build("fifo", "best_effort", 0, 3)
    with pytest.raises(OrdercastError):
        stack.send(b"", to=[1])
    message, effects = stack.send(b"")
    assert message.id == MessageId(0, 1)
    assert effects[-1] == Deliver(message)


def test_fifo_to_subsets_waits_only_for_its_own_channel() -> None:
    sender = catalog.build("fifo", "direct", 0, 3)
    receiver = catalog.build("fifo", "direct", 2, 3)

    def for_p2(effects: list[HostEffect]) -> object:
        [packet] = [e.packet for e in effects if isinstance(e, Transmit) and 2 in e.to]
        return packet

    sender.send(b"a", to=[1])
    first, effects = sender.send(b"b", to=[2])
    earlier = for_p2(effects)
    second, effects = sender.send(b"c")
    assert receiver.receive(0, for_p2(effects)) == []
    assert [str(held) for held in receiver.held()] == ["0:3, waiting for 0:2"]
    assert receiver.receive(0, earlier) == [Deliver(first), Deliver(second)]


def test_addressees() -> None:
    everyone, some = Message(MessageId(0, 1), b""), Message(MessageId(0, 1), b"", (0, 2))
    assert list(everyone.addressees(3)) == [0, 1, 2]
    assert list(some.addressees(3)) == [0, 2]
    assert everyone.addressed_to(1)
    assert not some.addressed_to(1)
