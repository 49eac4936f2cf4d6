"""Frames survive any cutting of the stream, and nothing malformed gets through."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.errors import PeerError
from ordercast.runtime.frames import (
    FRAME_BYTES_MAX,
    HELLO_BYTES_MAX,
    LENGTH,
    Ack,
    Ask,
    Bye,
    Data,
    Frame,
    FrameBuffer,
    Hello,
    Members,
    around,
    decode_frame,
    encode_frame,
)

counts = st.integers(0, 2**62 - 1)
texts = st.text(max_size=200)
frames = st.one_of(
    st.builds(Hello, st.just(2), texts, texts, st.integers(0, 2**16 - 1), texts, counts, counts),
    st.builds(
        Data,
        st.integers(1, 2**62 - 1),
        st.lists(st.binary(max_size=200), min_size=1, max_size=3),
        counts,
    ),
    st.builds(Ack, counts),
    st.builds(Bye, texts, st.booleans()),
    st.builds(Ask, st.just(2), texts, texts, texts),
    st.builds(Members, texts, st.dictionaries(texts, texts, max_size=3)),
)


class Reader:
    """Feeds a buffer as a socket would: as much at a time as there is room for."""

    def __init__(self) -> None:
        self.buffer = FrameBuffer()

    def trust(self) -> None:
        self.buffer.trust()

    def feed(self, data: bytes) -> Iterator[Frame]:
        while data:
            room = self.buffer.room()
            part = data[: len(room)]
            room[: len(part)] = part
            yield from self.buffer.filled(len(part))
            data = data[len(part) :]


def trusting_reader() -> Reader:
    reader = Reader()
    reader.trust()
    return reader


@given(st.lists(frames, max_size=5), st.data())
def test_frames_come_out_whole_however_the_stream_is_cut(
    sent: list[Frame], data: st.DataObject
) -> None:
    stream = b"".join(map(encode_frame, sent))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    edges = [0, *cuts, len(stream)]
    reader = trusting_reader()
    pieces = [stream[a:b] for a, b in pairwise(edges)]
    assert [frame for piece in pieces for frame in reader.feed(piece)] == sent


@given(st.binary(max_size=300))
def test_random_bytes_are_frames_or_the_peers_fault(noise: bytes) -> None:
    reader = trusting_reader()
    try:
        for frame in reader.feed(len(noise).to_bytes(4, "big") + noise):
            assert isinstance(frame, Frame)
    except PeerError:
        pass


def refused(body: object) -> bytes:
    encoded = msgspec.msgpack.encode(body)
    return len(encoded).to_bytes(4, "big") + encoded


@pytest.mark.parametrize(
    "body",
    [
        ["d", 0, [b"x"], 0],  # numbers start at 1
        ["d", 2**62, [b"x"], 0],
        ["d", 1, [b"x"], -1],
        ["d", 1, ["text"], 0],
        ["d", 1, b"x", 0],
        ["d", 1, [], 0],
        ["d", 1, [b"x"]],
        ["d", 1, [b"x"], 0, "more"],
        ["a", -1],
        ["a", 1.5],
        ["h", 1, "group", "charter", 2**16, "life", 0, 0],
        ["h", 1, "g" * 301, "charter", 0, "life", 0, 0],
        ["h", 1, b"group", "charter", 0, "life", 0, 0],
        ["h", 1, "group", "charter", 0, "life", 0, -1],
        ["m", "a", {"a": 1}],
        ["b", "reason", 1],
        ["z", 1],
        [],
        {"d": 1},
        None,
    ],
)
def test_what_does_not_fit_is_the_peers_fault(body: object) -> None:
    with pytest.raises(PeerError, match="wire format"):
        list(trusting_reader().feed(refused(body)))


@pytest.mark.parametrize("length", [0, FRAME_BYTES_MAX + 1, 2**32 - 1])
def test_a_length_is_refused_before_anything_is_kept(length: int) -> None:
    with pytest.raises(PeerError, match=f"a frame of {length} bytes"):
        list(trusting_reader().feed(length.to_bytes(4, "big")))


def test_a_stranger_may_not_send_long_frames_and_a_member_may() -> None:
    long = encode_frame(Data(1, [b"x" * 2 * HELLO_BYTES_MAX], 0))
    with pytest.raises(PeerError, match=f"from 1 to {HELLO_BYTES_MAX} are allowed"):
        list(Reader().feed(long))
    assert len(list(trusting_reader().feed(long))) == 1


@given(
    number=st.integers(1, 2**62 - 1),
    received=st.integers(0, 2**62 - 1),
    hurry=st.booleans(),
    size=st.sampled_from([0, 1, 2**15, 2**16 - 1, 2**16, 300_000]),
)
def test_a_long_packet_is_framed_without_a_copy(
    number: int, received: int, hurry: bool, size: int
) -> None:
    data = Data(number, [b"x" * size], received, hurry)
    before, after = around(data)
    frame = before + data.packets[0] + after
    assert int.from_bytes(frame[:LENGTH]) == len(frame) - LENGTH
    assert decode_frame(frame[LENGTH:]) == data


def test_trust_counts_for_what_was_read_in_the_same_piece() -> None:
    reader = Reader()
    seen = []
    hello = encode_frame(Hello(2, "group", "charter", 0, "life", 0, 0))
    for frame in reader.feed(hello + encode_frame(Data(1, [b"x" * 2 * HELLO_BYTES_MAX], 0))):
        seen.append(type(frame))
        reader.trust()
    assert seen == [Hello, Data]


def test_the_memory_of_a_long_frame_is_given_back() -> None:
    reader = trusting_reader()
    list(reader.feed(encode_frame(Data(1, [bytes(FRAME_BYTES_MAX - 100)], 0))))
    list(reader.feed(encode_frame(Ack(0))))
    assert len(reader.buffer.room()) <= 2**18
