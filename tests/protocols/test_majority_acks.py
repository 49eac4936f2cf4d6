"""What `majority_acks` passes on of a member that is suspected: all that others lack, once.
And when it tells others how far it has got."""

from __future__ import annotations

from ordercast.protocols.disseminations.majority_acks import (
    TELL,
    TELL_US,
    Counts,
    Data,
    MajorityAcks,
)
from ordercast.protocols.effects import StartTimer, Transmit
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


def tells_after_us(acks: MajorityAcks, number: int) -> list[int]:
    """How long it waits to tell of this message of the origin's, if it means to tell of it anew."""
    counts = tuple(number if process == ORIGIN else 0 for process in range(acks.size))
    effects = acks.receive(ORIGIN, Data(Message(MessageId(ORIGIN, number), b""), counts))
    return [e.delay_us for e in effects if isinstance(e, StartTimer) and e.name == TELL]


def test_a_lone_message_that_lacks_a_quorum_is_told_of_at_once() -> None:
    acks = MajorityAcks(ME, 5)
    assert tells_after_us(acks, 1) == [0]
    assert [effect.packet for effect in acks.timer(TELL)] == [Counts((0, 1, 0, 0, 0))]
    assert tells_after_us(acks, 2) == [TELL_US]  # more are under way
    assert tells_after_us(acks, 3) == []  # the same vector will speak for it
    list(acks.timer(TELL))
    list(acks.receive(OTHER, Counts((0, 3, 0, 0, 0))))  # now a quorum has all three
    assert tells_after_us(acks, 4) == [0]


def test_a_lone_message_that_only_its_sender_waits_for_is_told_of_at_once() -> None:
    acks = MajorityAcks(ME, 3)
    assert tells_after_us(acks, 1) == [0]
    assert acks.arrived[ORIGIN] == 1
    assert tells_after_us(acks, 2) == []  # the same vector will speak for it
    list(acks.timer(TELL))
    assert tells_after_us(acks, 3) == [0]


def test_of_two_that_came_before_it_could_tell_one_is_not_alone() -> None:
    acks = MajorityAcks(ME, 3)
    acks.telling = True  # as while the timer runs
    assert tells_after_us(acks, 1) == []
    acks.telling = False
    assert tells_after_us(acks, 2) == [TELL_US]
