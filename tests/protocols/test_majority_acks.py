"""What `majority_acks` passes on of a member that is suspected: all that others lack, once."""

from __future__ import annotations

from ordercast.protocols.disseminations.majority_acks import Data, MajorityAcks
from ordercast.protocols.effects import Transmit
from ordercast.protocols.messages import Message, MessageId

ME, ORIGIN, OTHER = 0, 1, 2


def arrive(acks: MajorityAcks, number: int) -> None:
    message = Message(MessageId(ORIGIN, number), b"payload")
    list(acks.receive(ORIGIN, Data(message, (0, number, 0))))


def passed_on(acks: MajorityAcks) -> list[int]:
    """Numbers of the messages that a suspicion has sent, all of them to the third member."""
    numbers = []
    for effect in acks.suspect(ORIGIN):
        assert isinstance(effect, Transmit)
        assert effect.to == (OTHER,)
        assert isinstance(effect.packet, Data)
        numbers.append(effect.packet.message.id.number)
    return numbers


def test_a_suspicion_that_is_renewed_sends_only_what_is_new() -> None:
    acks = MajorityAcks(ME, 3)
    for number in (1, 2):
        arrive(acks, number)
    assert passed_on(acks) == [1, 2]
    assert passed_on(acks) == []
    arrive(acks, 3)
    assert passed_on(acks) == [3]


def test_what_comes_into_a_gap_is_passed_on_as_well() -> None:
    acks = MajorityAcks(ME, 3)
    for number in (1, 3):
        arrive(acks, number)
    assert passed_on(acks) == [1, 3]
    arrive(acks, 2)
    assert passed_on(acks) == [2, 3]
    assert passed_on(acks) == []


def test_nothing_is_remembered_of_who_was_given_up() -> None:
    acks = MajorityAcks(ME, 3)
    arrive(acks, 1)
    passed_on(acks)
    list(acks.bury(OTHER))
    assert acks.passed_on == {ORIGIN: {}}
