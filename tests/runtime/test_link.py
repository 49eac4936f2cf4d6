"""The link under every kind of breaking connection: nothing lost, repeated or reordered."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ordercast.errors import PeerError
from ordercast.runtime.frames import Ack, Data
from ordercast.runtime.link import ACK_EVERY, ForgetfulPeerError, Link

SIDES = st.sampled_from([0, 1])


class End:
    """One end as a host runs it: what was put in, what came out, frames on their way to it."""

    def __init__(self) -> None:
        self.link = Link()
        self.put_in: list[bytes] = []
        self.came_out: list[bytes] = []
        self.coming: deque[tuple[int, int] | Data | Ack] = deque()  # a pair stands for a hello

    def take(self, frame: tuple[int, int] | Data | Ack) -> list[Data | Ack]:
        """What the host does with a frame; returns what it writes."""
        if isinstance(frame, tuple):
            self.link.resume(*frame)
            return self.written()
        if isinstance(frame, Ack):
            self.link.acknowledge(frame)
            return []
        for packet in self.link.receive(frame):
            self.link.received += 1
            self.came_out.append(packet)
        self.commit()
        if self.link.owes_ack_now:
            return [self.link.ack()]
        return []

    def commit(self) -> None:
        self.link.commit(self.link.sent, self.link.received)

    def written(self) -> list[Data | Ack]:
        frames: list[Data | Ack] = []
        while (frame := self.link.next_frame()) is not None:
            frames.append(frame)
        return frames


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

    @rule(side=SIDES, count=st.integers(1, 3), held_back=st.booleans())
    def send(self, side: int, count: int, held_back: bool = False) -> None:
        """What is held back is not committed yet, and leaves with the next that is."""
        end = self.ends[side]
        for _ in range(count):
            packet = b"%d/%d" % (side, len(end.put_in))
            end.put_in.append(packet)
            end.link.put(packet)
            if not held_back:
                end.commit()
                self.ends[1 - side].coming.extend(end.written())

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
            if side == overlap and end.coming and not isinstance(end.coming[0], tuple):
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
        for end in self.ends:
            end.commit()
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


def linked() -> Link:
    link = Link()
    link.resume(0, 0)
    return link


def link_that_sent(count: int) -> Link:
    link = linked()
    for _ in range(count):
        link.put(b"x")
    link.commit(count, 0)
    link.next_frame()
    return link


def arrive(link: Link, data: Data) -> list[bytes]:
    packets = link.receive(data)
    link.received += len(packets)
    link.commit(link.sent, link.received)
    return packets


def test_acknowledgements_drain_what_is_retained_without_a_timer() -> None:
    sender, receiver = linked(), linked()
    most = 0
    for number in range(1, 10 * ACK_EVERY + 1):
        sender.put(b"x")
        sender.commit(number, 0)
        frame = sender.next_frame()
        assert frame is not None
        arrive(receiver, frame)
        if receiver.owes_ack_now:
            sender.acknowledge(receiver.ack())
        most = max(most, sender.unacknowledged)
    assert most < ACK_EVERY
    assert (sender.unacknowledged, sender.bytes) == (0, 0)


def test_a_packet_that_was_here_before_is_dropped() -> None:
    link = linked()
    assert arrive(link, Data(1, [b"one"], 0)) == [b"one"]
    assert arrive(link, Data(1, [b"one"], 0)) == []
    assert arrive(link, Data(1, [b"one", b"two"], 0)) == [b"two"]
    assert link.received == 2


def test_what_is_not_committed_neither_leaves_nor_is_acknowledged() -> None:
    link = linked()
    link.put(b"caused by what may be lost")
    link.received += len(link.receive(Data(1, [b"one"], 0)))
    assert link.next_frame() is None
    assert not link.owes_ack
    assert link.greet() == (0, 1)
    link.commit(1, 1)
    assert link.next_frame() == Data(1, [b"caused by what may be lost"], 1)


def test_many_packets_share_a_frame_and_large_ones_do_not() -> None:
    small, large = link_that_sent(0), link_that_sent(0)
    for _ in range(100):
        small.put(b"x")
        large.put(bytes(200_000))
    small.commit(100, 0)
    large.commit(100, 0)
    first = small.next_frame()
    assert first is not None
    assert (first.number, len(first.packets)) == (1, 100)
    assert small.next_frame() is None
    first, second = large.next_frame(), large.next_frame()
    assert first is not None
    assert second is not None
    assert (first.number, len(first.packets), second.number) == (1, 1, 2)


def test_what_came_on_an_older_connection_may_be_acknowledged_on_this_one() -> None:
    """Before it is written here: the peer said what it had, and then more of the old arrived."""
    link = link_that_sent(3)
    link.resume(1, 0)
    link.acknowledge(Ack(2))
    assert link.next_frame() == Data(3, [b"x"], 0)


@pytest.mark.parametrize("number", [2, 3, 10**18])
def test_a_gap_is_the_peers_fault(number: int) -> None:
    with pytest.raises(PeerError, match="where 1 was expected"):
        Link().receive(Data(number, [b"x"], 0))


def test_an_acknowledgement_from_the_future_is_the_peers_fault() -> None:
    for act in (
        lambda link: link.acknowledge(Ack(4)),
        lambda link: link.receive(Data(1, [b"x"], 4)),
        lambda link: link.resume(4, 0),
    ):
        with pytest.raises(PeerError, match="claims to have 4 packets and was sent 3"):
            act(link_that_sent(3))


def test_a_peer_that_forgot_what_it_acknowledged_is_not_let_in() -> None:
    link = link_that_sent(3)
    link.acknowledge(Ack(2))
    link.open = True
    with pytest.raises(ForgetfulPeerError, match="had acknowledged 2"):
        link.resume(0, 0)
    assert link.unacknowledged == 1
    assert link.open, "whoever is refused does not end the connection that we have"


def test_a_peer_that_forgot_what_it_sent_is_not_let_in() -> None:
    link = linked()
    arrive(link, Data(1, [b"x", b"x"], 0))
    with pytest.raises(ForgetfulPeerError, match="knows of 1 packets that it sent, and we have 2"):
        link.resume(0, 1)


@pytest.mark.parametrize("sent", [2, 3, 100])
def test_nor_is_one_that_has_sent_others_since(sent: int) -> None:
    """Their numbers are those of packets that it sent before, and has forgotten."""
    link = linked()
    link.session = "before"
    arrive(link, Data(1, [b"x", b"x"], 0))
    with pytest.raises(ForgetfulPeerError, match="knows of 1 packets that it sent, and we have 2"):
        link.resume(0, sent, "after", 1)
    link.resume(0, sent, "after", 2)
    link.cut()
    link.session = "after"
    link.resume(0, sent, "after", 1)  # it is the one that we know: all of this we have from it


def test_without_a_connection_nothing_is_written() -> None:
    link = Link()
    link.put(b"a packet")
    link.commit(1, 0)
    assert link.next_frame() is None
    link.resume(0, 0)
    assert link.next_frame() == Data(1, [b"a packet"], 0)
    link.cut()
    assert link.next_frame() is None
