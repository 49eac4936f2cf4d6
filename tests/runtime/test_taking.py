"""Deliveries and their reader, in Python and in C: each by itself, and both side by side."""

from __future__ import annotations

import asyncio
import copy
import gc
import importlib
import pickle
import sys
import weakref
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.runtime import taking
from ordercast.runtime.deliveries import COMPILED

TWINS = ("python", "compiled")


def twin_named(name: str) -> ModuleType:
    if name == "python":
        return taking
    if not COMPILED:
        pytest.skip(
            "the compiled twin was not built: there was no C compiler when it was installed"
        )
    return importlib.import_module("ordercast.runtime._taking")


@pytest.fixture(params=TWINS)
def twin(request: pytest.FixtureRequest) -> ModuleType:
    return twin_named(request.param)


async def at_the_end() -> Any:
    raise StopAsyncIteration


def payloads(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


# Deliveries.


def test_a_delivery_is_a_value(twin: ModuleType) -> None:
    one = twin.Delivery("a", 7, b"seven", 9, 1_000_000_007)
    same = twin.Delivery(sender="a", number=7, payload=b"seven", position=9, time_us=1_000_000_007)
    assert (one, hash(one), one.id) == (same, hash(same), "a:7")
    assert copy.deepcopy(one) == copy.copy(one) == one
    assert repr(one) == (
        "Delivery(sender='a', number=7, payload=b'seven', position=9, time_us=1000000007)"
    )
    match one:
        case twin.Delivery("a", 7, payload, position, time_us):
            assert (payload, position, time_us) == (b"seven", 9, 1_000_000_007)
        case _:
            pytest.fail("it does not match")


def test_deliveries_survive_pickling() -> None:
    from ordercast import Delivery

    one = Delivery("a", 7, b"seven", 9, 5)
    assert pickle.loads(pickle.dumps(one)) == one


@pytest.mark.parametrize("field", ["sender", "number", "payload", "position", "time_us"])
def test_deliveries_differ_if_any_field_does(twin: ModuleType, field: str) -> None:
    values = {"sender": "a", "number": 1, "payload": b"x", "position": 2, "time_us": 3}
    other: dict[str, Any] = {**values, field: "b" if field == "sender" else b"y"}
    if isinstance(values[field], int):
        other[field] = 2**40
    one, another = twin.Delivery(**values), twin.Delivery(**other)
    assert ((one == another), (one != another)) == (False, True)
    assert getattr(another, field) == other[field]


def test_a_delivery_is_equal_to_nothing_else(twin: ModuleType) -> None:
    one = twin.Delivery("a", 1, b"x", 2, 3)
    assert one != ("a", 1, b"x", 2, 3)
    with pytest.raises(TypeError):
        _ = one < one


def test_a_delivery_does_not_change(twin: ModuleType) -> None:
    one = twin.Delivery("a", 1, b"x", 2, 3)
    for name in ("sender", "number", "id", "anything"):
        with pytest.raises(AttributeError):
            setattr(one, name, 5)


@pytest.mark.parametrize("arguments", [(), ("a",), ("a", 1, b"x", 2, 3, 4)])
def test_a_delivery_has_five_fields(twin: ModuleType, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        twin.Delivery(*arguments)


# Readers.


def test_all_but_the_last_are_at_hand(twin: ModuleType) -> None:
    reader, ticks = twin.Reader(at_the_end), memoryview(bytearray(8))
    assert reader.take() is None
    reader.begin("a", 5, payloads(4), 11, 99, ticks)
    for place in range(3):
        assert reader.taken == place
        assert bytes(ticks) == b"\1" * place + bytes(8 - place)
        assert reader.take() == twin.Delivery("a", 5 + place, b"%d" % place, 11 + place, 99)
    assert reader.take() is None
    assert reader.drop() == 3
    assert reader.drop() == reader.taken == 0


def test_what_is_not_at_hand_is_asked_for(twin: ModuleType) -> None:
    rest = [twin.Delivery("a", number, b"", number, 0) for number in (3, 4)]

    async def advance() -> Any:
        if not rest:
            raise StopAsyncIteration
        await asyncio.sleep(0)
        return rest.pop(0)

    async def run() -> None:
        reader = twin.Reader(advance)
        reader.begin("a", 1, payloads(3), 1, 0, None)
        assert [delivery.number async for delivery in reader] == [1, 2, 3, 4]
        assert [delivery.number async for delivery in reader] == []
        with pytest.raises(StopAsyncIteration):
            await reader.__anext__()

    asyncio.run(run())


def test_what_is_not_awaited_is_not_taken(twin: ModuleType) -> None:
    async def run() -> None:
        reader = twin.Reader(at_the_end)
        reader.begin("a", 1, payloads(5), 1, 0, None)
        task = asyncio.ensure_future(reader.__anext__())
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert reader.taken == 0
        first, second = reader.__anext__(), reader.__anext__()
        assert (await second).number == 1
        assert (await asyncio.wait_for(first, 5)).number == 2

    asyncio.run(run())


def test_whoever_comes_too_late_waits_for_the_next(twin: ModuleType) -> None:
    """Between asking and awaiting, somebody else has taken the last one at hand."""

    async def advance() -> Any:
        return "the next"

    async def run() -> None:
        reader = twin.Reader(advance)
        reader.begin("a", 1, payloads(2), 1, 0, None)
        one, other = reader.__anext__(), reader.__anext__()
        assert (await one).number == 1
        assert await other == "the next"

    asyncio.run(run())


def test_errors_of_whoever_brings_more_come_out(twin: ModuleType) -> None:
    async def advance() -> Any:
        raise LookupError("the group is ill")

    async def run() -> None:
        reader = twin.Reader(advance)
        with pytest.raises(LookupError, match="is ill"):
            async for _ in reader:
                pass

    asyncio.run(run())


def test_iterators_go_no_further_in_what_was_dropped(twin: ModuleType) -> None:
    async def run() -> None:
        reader = twin.Reader(at_the_end)
        reader.begin("a", 1, payloads(9), 1, 0, None)
        one = aiter(reader)
        assert (await anext(one)).number == 1
        assert reader.drop() == 1
        reader.begin("b", 1, payloads(2), 10, 0, None)
        assert [delivery.id async for delivery in one] == ["b:1"]

    asyncio.run(run())


class _Both:
    """The same things done to both twins; whatever can be seen is the same."""

    def __init__(self) -> None:
        self.ways = [SimpleNamespace(twin=twin_named(name)) for name in TWINS]
        for way in self.ways:
            way.ticks = bytearray(8)
            way.reader = way.twin.Reader(at_the_end)
            way.iterators = []

    async def do(self, step: tuple[str, int]) -> None:
        seen = [await self._do(way, *step) for way in self.ways]
        assert seen[0] == seen[1], step

    async def _do(self, way: SimpleNamespace, name: str, count: int) -> object:
        found: object = None
        if name == "begin":
            ticks = memoryview(way.ticks) if count % 2 else None
            way.reader.begin("a", count, payloads(count), 2 * count, 5, ticks)
        elif name == "take":
            found = repr(way.reader.take())
        elif name == "drop":
            found = way.reader.drop()
        elif name == "iterate":
            way.iterators.append(aiter(way.reader))
        elif way.iterators:
            try:
                found = repr(await anext(way.iterators[count % len(way.iterators)]))
            except StopAsyncIteration:
                way.iterators.pop(count % len(way.iterators))
        return found, way.reader.taken, bytes(way.ticks)


_STEPS = st.tuples(st.sampled_from(["begin", "take", "drop", "iterate", "next"]), st.integers(1, 8))


@given(st.lists(_STEPS, max_size=40))
def test_both_do_the_same(steps: list[tuple[str, int]]) -> None:
    async def run() -> None:
        both = _Both()
        for step in steps:
            await both.do(step)

    asyncio.run(run())


# What only compiled code can get wrong.


@pytest.fixture
def compiled() -> ModuleType:
    return twin_named("compiled")


def test_nothing_is_kept_of_what_was_handed_out(compiled: ModuleType) -> None:
    sender, ticks, texts = (
        "".join(["a", "b"]),
        bytearray(100),
        [bytes([n]) * 50 for n in range(100)],
    )
    watched = (compiled.Delivery, sender, texts, texts[7])
    before = [sys.getrefcount(each) for each in watched]

    async def run() -> None:
        reader = compiled.Reader(at_the_end)
        for _ in range(3):
            reader.begin(sender, 1, texts, 1, 0, memoryview(ticks))
            taken = [delivery async for delivery in reader]
            assert [delivery.payload for delivery in taken] == texts[:-1]
            assert len({*taken, *map(copy.copy, taken)}) == 99
            assert [repr(delivery) for delivery in taken]

    asyncio.run(run())
    assert [sys.getrefcount(each) for each in watched] == before
    ticks.clear()  # nobody looks at it any more, or this would not be allowed


def test_a_reader_and_its_group_go_together(compiled: ModuleType) -> None:
    class Owner:
        def __init__(self) -> None:
            self.reader = compiled.Reader(self.advance)

        async def advance(self) -> None: ...

    owner = Owner()
    ticks = bytearray(4)
    owner.reader.begin("a", 1, payloads(4), 1, 0, memoryview(ticks))
    gone = weakref.ref(owner)
    del owner
    gc.collect()
    assert gone() is None
    ticks.clear()


def test_what_makes_no_sense_is_refused(compiled: ModuleType) -> None:
    reader = compiled.Reader(at_the_end)
    for payloads_, ticks in ((("a", "b"), None), (payloads(3), b"read only"), (payloads(3), 7)):
        with pytest.raises((TypeError, BufferError)):
            reader.begin("a", 1, payloads_, 1, 0, ticks)
    with pytest.raises(ValueError, match="no room"):
        reader.begin("a", 1, payloads(9), 1, 0, memoryview(bytearray(3)))
    assert reader.take() is None
    texts = payloads(5)
    reader.begin("a", 1, texts, 1, 0, None)
    del texts[1:]
    assert reader.take().payload == b"0"
    with pytest.raises(IndexError):
        reader.take()
    with pytest.raises(TypeError):
        compiled.Reader()
