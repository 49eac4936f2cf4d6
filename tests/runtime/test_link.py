"""The link under every kind of breaking connection: nothing lost, repeated or reordered."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ordercast.errors import PeerError
from ordercast.runtime.frames import Ack, Data
from ordercast.runtime.link import ACK_EVERY, Link

SIDES = st.sampled_from([0, 1])


class End:
    """One end as a host runs it: what was put in, what came out, frames on their way to it."""

    def __init__(self) -> None:
        self.link = Link()
        self.put_in: list[bytes] = []
        self.came_out: list[bytes] = []
        self.coming: deque[int | Data | Ack] = deque()  # a number stands for a hello

    def take(self, frame: int | Data | Ack) -> list[Data | Ack]:
        """What the host does with a frame; returns what it writes."""
        if isinstance(frame, int):
            return list(self.link.resume(frame))
        if isinstance(frame, Ack):
            self.link.acknowledge(frame)
            return []
        packet = self.link.receive(frame)
        if packet is not None:
            self.came_out.append(packet)
        if self.link.owes_ack_now:
            return [self.link.ack()]
        return []


class TwoLinks(RuleBasedStateMachine):
    """Two ends and a connection that breaks at any moment and then loses what is on it. Sometimes
    an end has said on a new connection what it has, and still reads a little from the old one."""

    @initialize()
    def begin(self) -> None:
        self.ends = (End(), End())
        self.connected = False
        self.reconnect(None, 0)
        self.pass_frames(0, 1)
        self.pass_frames(1, 1)

    @rule(side=SIDES, count=st.integers(1, 3))
    def send(self, side: int, count: int) -> None:
        end = self.ends[side]
        for _ in range(count):
            packet = b"%d/%d" % (side, len(end.put_in))
            end.put_in.append(packet)
            frame = end.link.send(packet)
            if frame is not None:
                self.ends[1 - side].coming.append(frame)

    @rule(side=SIDES, count=st.integers(1, 5))
    def pass_frames(self, side: int, count: int) -> None:
        end = self.ends[side]
        for _ in range(min(count, len(end.coming))):
            self.ends[1 - side].coming.extend(end.take(end.coming.popleft()))

    @rule(side=SIDES)
    def ack_timer_fires(self, side: int) -> None:
        end = self.ends[side]
        if end.link.open and end.link.owes_ack:
            self.ends[1 - side].coming.append(end.link.ack())

    @precondition(lambda self: self.connected)
    @rule()
    def cut(self) -> None:
        for end in self.ends:
            end.link.cut()
            end.coming.clear()
        self.connected = False

    @rule(overlap=st.sampled_from([None, 0, 1]), count=st.integers(0, 5))
    def reconnect(self, overlap: int | None, count: int) -> None:
        hellos = [end.link.greet() for end in self.ends]
        for side, end in enumerate(self.ends):
            end.link.cut()
            # Before the old connection's hello was read, nothing else on it can be.
            if side == overlap and end.coming and not isinstance(end.coming[0], int):
                for _ in range(min(count, len(end.coming))):
                    end.take(end.coming.popleft())  # what it answers goes nowhere
            end.coming.clear()
        for side, hello in enumerate(hellos):
            self.ends[1 - side].coming.append(hello)
        self.connected = True

    @rule(side=SIDES, sent=st.integers(1, 4), read=st.integers(1, 4), passed=st.integers(0, 8))
    def read_on_from_the_old_connection(self, side: int, sent: int, read: int, passed: int) -> None:
        """The steps that lead to a resend of what is there already; by chance alone they are
        so rare together that the link could do without dropping duplicates."""
        self.send(1 - side, sent)
        self.reconnect(side, read)
        self.pass_frames(1 - side, passed)
        self.pass_frames(side, passed)

    @invariant()
    def nothing_lost_repeated_or_reordered(self) -> None:
        if hasattr(self, "ends"):
            for side, end in enumerate(self.ends):
                other = self.ends[1 - side]
                assert end.came_out == other.put_in[: len(end.came_out)]
                assert end.link.received == len(end.came_out)
                retained = other.link.unacknowledged
                assert retained >= len(other.put_in) - len(end.came_out)

    def teardown(self) -> None:
        """Whatever happened: one connection that holds brings everything over."""
        if not hasattr(self, "ends"):
            return
        self.reconnect(None, 0)
        while any(end.coming for end in self.ends):
            for side in (0, 1):
                self.pass_frames(side, 5)
                self.ack_timer_fires(side)
        for side, end in enumerate(self.ends):
            assert end.came_out == self.ends[1 - side].put_in
            assert end.link.unacknowledged == 0


TwoLinks.TestCase.settings = settings(max_examples=300, stateful_step_count=40, deadline=None)
TestTwoLinks = TwoLinks.TestCase


def test_acknowledgements_drain_what_is_retained_without_a_timer() -> None:
    sender, receiver = Link(), Link()
    sender.resume(0)
    receiver.resume(0)
    most = 0
    for _ in range(10 * ACK_EVERY):
        frame = sender.send(b"x")
        assert frame is not None
        receiver.receive(frame)
        if receiver.owes_ack_now:
            sender.acknowledge(receiver.ack())
        most = max(most, sender.unacknowledged)
    assert most < ACK_EVERY
    assert sender.unacknowledged == 0


def test_a_packet_that_was_here_before_is_dropped() -> None:
    link = Link()
    link.resume(0)
    assert link.receive(Data(1, b"one", 0)) == b"one"
    assert link.receive(Data(1, b"one", 0)) is None
    assert link.receive(Data(2, b"two", 0)) == b"two"
    assert link.received == 2


def link_that_sent(count: int) -> Link:
    link = Link()
    link.resume(0)
    for _ in range(count):
        link.send(b"x")
    return link


@pytest.mark.parametrize("number", [2, 3, 10**18])
def test_a_gap_is_the_peers_fault(number: int) -> None:
    with pytest.raises(PeerError, match="where 1 was expected"):
        Link().receive(Data(number, b"x", 0))


def test_an_acknowledgement_from_the_future_is_the_peers_fault() -> None:
    for act in (
        lambda link: link.acknowledge(Ack(4)),
        lambda link: link.receive(Data(1, b"x", 4)),
        lambda link: link.resume(4),
    ):
        with pytest.raises(PeerError, match="claims to have 4 packets and was sent 3"):
            act(link_that_sent(3))


def test_a_peer_that_forgot_what_it_acknowledged_is_another_process() -> None:
    link = link_that_sent(3)
    link.acknowledge(Ack(2))
    with pytest.raises(PeerError, match="had acknowledged 2"):
        link.resume(0)
    assert link.unacknowledged == 1
