"""Stacks as a host sees them: ids, effects, refusals, and the wire."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.errors import OrdercastError, PeerError, UsageError
from ordercast.protocols import catalog
from ordercast.protocols.effects import Deliver, Transmit
from ordercast.protocols.messages import Message, MessageId, message_of

COMBINATIONS = [
    (ordering.name, dissemination.name)
    for ordering in catalog.ORDERINGS.values()
    for dissemination in catalog.DISSEMINATIONS.values()
    if catalog.refusal(ordering, dissemination) is None
]


@pytest.mark.parametrize(("ordering", "dissemination"), COMBINATIONS)
def test_messages_are_numbered_from_one_and_travel_as_bytes(
    ordering: str, dissemination: str
) -> None:
    sender = catalog.build(ordering, dissemination, 0, 3)
    receiver = catalog.build(ordering, dissemination, 1, 3)
    codec = sender.codec()
    for number in (1, 2):
        message, effects = sender.send(b"x")
        assert message.id == MessageId(0, number)
        [transmit] = [effect for effect in effects if isinstance(effect, Transmit)]
        assert transmit.to == (1, 2)
        packet = codec.decode(codec.encode(transmit.packet))
        assert packet == transmit.packet
        assert message_of(packet) == message
        assert receiver.receive(0, packet) == [Deliver(message)]


@pytest.mark.parametrize(("ordering", "dissemination"), COMBINATIONS)
@given(st.binary(max_size=60))
def test_strange_bytes_are_the_peers_fault(ordering: str, dissemination: str, data: bytes) -> None:
    stack = catalog.build(ordering, dissemination, 0, 3)
    try:
        stack.receive(1, stack.codec().decode(data))
    except PeerError:
        pass


@pytest.mark.parametrize(("ordering", "dissemination"), COMBINATIONS)
@given(st.data())
def test_a_well_formed_packet_with_wrong_numbers_is_the_peers_fault_at_worst(
    ordering: str, dissemination: str, data: st.DataObject
) -> None:
    stack = catalog.build(ordering, dissemination, 0, 3)
    _, effects = catalog.build(ordering, dissemination, 1, 3).send(b"")
    fields = msgspec.to_builtins(next(e.packet for e in effects if isinstance(e, Transmit)))
    packet = msgspec.msgpack.encode(_distort(fields, data))
    for _ in range(2):
        try:
            stack.receive(1, stack.codec().decode(packet))
        except PeerError:
            pass
        assert all(held.waits_for for held in stack.held())


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
    _, only_p1 = sender.send(b"a", to=[1])
    first, to_p2 = sender.send(b"b", to=[2])
    second, to_all = sender.send(b"c")
    copies = [e for e in to_all if isinstance(e, Transmit) and 2 in e.to]
    assert receiver.receive(0, copies[0].packet) == []
    assert [str(held) for held in receiver.held()] == ["0:3, waiting for 0:2"]
    assert receiver.receive(0, to_p2[0].packet) == [Deliver(first), Deliver(second)]


def test_addressees() -> None:
    everyone, some = Message(MessageId(0, 1), b""), Message(MessageId(0, 1), b"", (0, 2))
    assert list(everyone.addressees(3)) == [0, 1, 2]
    assert list(some.addressees(3)) == [0, 2]
    assert everyone.addressed_to(1)
    assert not some.addressed_to(1)
