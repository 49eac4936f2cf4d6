"""When a bundle leaves, by a clock that only the test moves; and what many tasks make of one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from ordercast import Group, JournalError
from ordercast.protocols import catalog
from ordercast.runtime import outgoing
from ordercast.runtime.bundle import BUNDLE_MESSAGES_MAX, pack
from ordercast.runtime.core import Core
from ordercast.runtime.frames import PAYLOAD_BYTES_MAX
from ordercast.runtime.inputs import LoggedCore, replay
from ordercast.runtime.outgoing import BUNDLE_BYTES_MAX, MANY, Outgoing
from ordercast.runtime.settings import Settings

from .helpers import group as group_of
from .helpers import until
from .test_join import joined, take
from .test_lives import Pair

pytestmark = pytest.mark.timeout(60)

LINGER_S = 8.0
PLAIN = {"order": "fifo", "reliability": "best_effort"}


class Clock:
    """In place of the loop: a `turn` calls what was to be called soon, and timers that are up."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._calls: list[tuple[float, asyncio.Handle]] = []

    def time(self) -> float:
        return self.now

    def call_soon(self, callback: Callable[..., Any], *arguments: Any) -> asyncio.Handle:
        return self.call_later(0, callback, *arguments)

    def call_later(
        self, delay_s: float, callback: Callable[..., Any], *arguments: Any
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, arguments, asyncio.get_running_loop())
        self._calls.append((self.now + delay_s, handle))
        return handle

    def turn(self) -> None:
        up = [handle for when, handle in self._calls if when <= self.now]
        self._calls = [(when, handle) for when, handle in self._calls if when > self.now]
        for handle in up:
            if not handle.cancelled():
                handle._run()


class Sender:
    """A member's outgoing messages, and the sizes of the bundles that have left."""

    def __init__(self) -> None:
        self.left: list[int] = []
        self.failures: list[BaseException] = []
        self.clock = Clock()
        self._node: Any = SimpleNamespace(
            settings=Settings(linger_s=LINGER_S),
            core=SimpleNamespace(sent=0, standing=SimpleNamespace(outstanding=lambda: 0)),
            submit=self._submit,
            intake=SimpleNamespace(see_to_all=lambda: None),
            turn=SimpleNamespace(end_with=lambda step: step()),
            fail=self.failures.append,
        )
        self._outgoing = Outgoing(self._node)
        self._outgoing._loop = self.clock  # type: ignore[assignment]

    def send(self, count: int = 1) -> None:
        slot = self._outgoing.slot or self._outgoing.begin(None)
        slot.payloads += [b""] * count

    def turns(self) -> list[int]:
        """Enough for all that is to happen at this moment."""
        for _ in range(4):
            self.clock.turn()
        return self.left

    def pass_s(self, seconds: float) -> list[int]:
        self.clock.now += seconds
        return self.turns()

    @property
    def keeps_sending(self) -> bool:
        return self._outgoing.keeps_sending()

    def _submit(self, _: bytes, __: int, payloads: list[bytes], ___: None) -> int:
        self.left.append(len(payloads))
        return len(self.left)


def run(test: Callable[[Sender], None]) -> None:
    async def inside() -> None:
        test(Sender())

    asyncio.run(inside())


def test_whoever_sends_little_never_waits() -> None:
    def test(sender: Sender) -> None:
        for count in range(1, MANY + 1):
            sender.send()
            assert sender.turns() == [1] * count

    run(test)


def test_whoever_never_sent_has_not_sent_lately_on_a_machine_that_has_just_started() -> None:
    def test(sender: Sender) -> None:
        sender.clock.now = outgoing.SENDS_S / 2
        assert not sender.keeps_sending
        sender.send()
        sender.turns()
        assert sender.keeps_sending

    run(test)


def test_after_many_a_message_waits_half_the_time_if_no_company_comes() -> None:
    def test(sender: Sender) -> None:
        sender.send(MANY)
        assert sender.turns() == [MANY]
        sender.send()
        sender.send()
        assert sender.turns() == [MANY]
        assert sender.pass_s(LINGER_S * 0.49) == [MANY]
        assert sender.pass_s(LINGER_S * 0.02) == [MANY, 2]

    run(test)


@pytest.mark.parametrize("share", [0.5, 0.7, 0.9])
def test_whoever_comes_back_after_half_the_time_waits_for_one_turn(share: float) -> None:
    def test(sender: Sender) -> None:
        sender.send(MANY)
        sender.turns()
        sender.pass_s(LINGER_S * share)
        sender.send(3)
        assert sender.turns() == [MANY, 3]

    run(test)


def test_while_company_comes_all_wait_the_whole_time() -> None:
    def test(sender: Sender) -> None:
        sender.send(MANY)
        sender.turns()
        sender.clock.now += LINGER_S * 0.6
        for _ in range(10):
            sender.send()
            sender.clock.turn()
        assert sender.pass_s(LINGER_S * 0.39) == [MANY]
        assert sender.pass_s(LINGER_S * 0.02) == [MANY, 10]

    run(test)


@pytest.mark.parametrize("payload", [b"", bytes(BUNDLE_BYTES_MAX)], ids=["many", "large"])
def test_a_bundle_that_nobody_would_take_never_leaves(payload: bytes) -> None:
    count = 1 if payload else BUNDLE_MESSAGES_MAX + 1

    def test(sender: Sender) -> None:
        sender.send()
        slot = sender._outgoing.slot
        assert slot is not None
        slot.payloads[:] = [payload] * count
        with pytest.raises(AssertionError, match=f"a bundle of {count} messages and"):
            sender._outgoing.flush()
        assert not sender.left
        assert len(sender.failures) == 1

    run(test)


async def received(group: Group, count: int) -> list[bytes]:
    found: list[bytes] = []
    async with asyncio.timeout(30):
        async for batch in group.batches():
            assert len(batch) <= BUNDLE_MESSAGES_MAX
            found += batch.payloads
            if len(found) >= count:
                break
    return found


@pytest.mark.parametrize(("count", "size"), [(3 * BUNDLE_MESSAGES_MAX, 0), (40, 100_000)])
def test_tasks_that_all_send_at_once_fill_several_bundles_in_their_order(
    count: int, size: int
) -> None:
    sent = [b"%d" % number + bytes(size) for number in range(count)]

    async def run() -> None:
        async with joined("a", "b", **PLAIN) as (a, b):
            own, other = (asyncio.create_task(received(group, count)) for group in (a, b))
            receipts = await asyncio.gather(*map(a.send, sent))
            assert [receipt.number for receipt in receipts] == list(range(1, count + 1))
            assert await own == await other == sent
            async with asyncio.timeout(20):
                assert await receipts[-1].delivered_by() == ("a", "b")

    asyncio.run(run())


@pytest.mark.parametrize(("count", "size"), [(5000, 10), (3, 6_000_000)])
def test_tasks_that_waited_for_the_window_are_served_in_their_order(
    count: int, size: int, tmp_path: Path
) -> None:
    """And the journal can be gone on with."""
    full = [bytes(2**20)] * 4
    sent = [b"%d" % number + bytes(size) for number in range(count)]

    async def run() -> None:
        async with Pair(tmp_path, **PLAIN) as pair:
            a, b = await pair.both()
            own = asyncio.create_task(received(a, 4 + count))
            for payload in full:
                await a.send(payload)
            tasks = [asyncio.create_task(a.send(payload)) for payload in sent]
            await asyncio.sleep(0.1)
            assert not any(task.done() for task in tasks)
            assert await received(b, 4 + count) == await own == full + sent
            numbers = [receipt.number for receipt in await asyncio.gather(*tasks)]
            assert numbers == list(range(5, 5 + count))
            await pair.die("a", a)
            a = await pair.join("a")
            await a.send(b"again")
            assert await take(b, 1) == [f"a:{5 + count} again"]

    asyncio.run(run())


def test_whoever_is_cancelled_while_it_waits_for_room_sends_nothing_and_holds_up_nobody() -> None:
    chance = Random(5)

    async def run() -> None:
        settings = Settings(window_bytes=10_000)
        async with joined("a", "b", settings=settings, **PLAIN) as (a, b):
            own = asyncio.create_task(received(a, 10**9))
            await a.send(bytes(12_000))
            tasks = [asyncio.create_task(a.send(b"%d" % number)) for number in range(300)]
            await asyncio.sleep(0.05)
            gone = {0, 1, 299, *chance.sample(range(300), 150)}
            other = asyncio.create_task(received(b, 1 + 300 - len(gone)))
            for number in gone - {1}:
                tasks[number].cancel()
            await until(lambda: tasks[1].cancel() or tasks[1].done())
            assert [int(payload) for payload in (await other)[1:]] == [
                number for number in range(300) if number not in gone
            ]
            assert all(task.done() for task in tasks)
            own.cancel()

    asyncio.run(run())


def test_whoever_waits_for_room_sees_the_end() -> None:
    async def run() -> None:
        async with joined("a", "b", settings=Settings(window_bytes=1000), **PLAIN) as (a, _):
            await a.send(bytes(2000))
            tasks = [asyncio.create_task(a.send(b"")) for _ in range(100)]
            await asyncio.sleep(0.05)
            a._node.fail(ZeroDivisionError("the end"))
            async with asyncio.timeout(10):
                ends = await asyncio.gather(*tasks, return_exceptions=True)
            assert {type(end) for end in ends} == {ZeroDivisionError}
            with pytest.raises(ZeroDivisionError):
                await a.send(b"")

    asyncio.run(run())


@pytest.mark.parametrize("window_bytes", [1, 5_000, 4 * 2**20])
def test_senders_of_all_kinds_together_lose_nothing(window_bytes: int) -> None:
    chance = Random(window_bytes)
    sizes = [0, 10, 1000, 300_000] if window_bytes > 5_000 else [0, 10, 1000]

    async def one(group: Group, name: bytes) -> int:
        sent = 0
        for _ in range(20):
            payloads = [
                b"%s %d " % (name, sent + more) + bytes(chance.choice(sizes))
                for more in range(chance.randrange(1, 10))
            ]
            sent += len(payloads)
            if chance.random() < 0.5:
                await group.send_many(payloads, chance.choice([None, ("a", "b")]))
            else:
                for payload in payloads:
                    await group.send(payload, chance.choice([None, ("a", "b")]))
        return sent

    async def run() -> None:
        settings = Settings(window_bytes=window_bytes)
        async with joined("a", "b", settings=settings, **PLAIN) as (a, b):
            found: list[bytes] = []

            async def read() -> None:
                async for batch in b.batches():
                    found.extend(batch.payloads)

            readers = [asyncio.create_task(read()), asyncio.create_task(received(a, 10**9))]
            async with asyncio.timeout(40):
                counts = await asyncio.gather(*(one(a, b"%d" % name) for name in range(8)))
                await until(lambda: len(found) == sum(counts))
            for name, count in enumerate(counts):
                own = [
                    payload.split()[1] for payload in found if payload.split()[0] == b"%d" % name
                ]
                assert own == [b"%d" % number for number in range(count)]
            for reader in readers:
                reader.cancel()

    asyncio.run(run())


def test_the_largest_message_fits_behind_a_bundle_that_is_almost_full() -> None:
    async def run() -> None:
        async with joined("a", "b", **PLAIN) as (a, b):
            small = bytes(a._outgoing.limit - 200)
            large = bytes(PAYLOAD_BYTES_MAX)
            await a.send(small)
            await a.send(large)
            assert await received(b, 2) == [small, large]

    asyncio.run(run())


def test_what_a_member_sent_itself_is_never_left_out_of_its_replay() -> None:
    core = Core(catalog.build("fifo", "direct", 0, 2), life="a life")
    records: list[bytes] = []
    too_many = [b""] * (BUNDLE_MESSAGES_MAX + 1)
    inputs = LoggedCore(core, lambda *parts: records.append(b"".join(parts)), pytest.fail)
    inputs.submit(pack(1, too_many), 1, too_many, None)
    again = Core(catalog.build("fifo", "direct", 0, 2), life="a life")
    with pytest.raises(JournalError, match=r"a bundle of this member's own .* 0:1 .*afresh"):
        replay(again, records)


@pytest.mark.parametrize("many", [False, True])
def test_in_synchronous_order_messages_to_oneself_are_sent_one_after_the_other(many: bool) -> None:
    async def run() -> None:
        async with group_of("synchronous", 2) as members:
            me = members.members[1]
            for _ in range(2):
                if many:
                    last = list(await me.send_many([b"x"] * 3, ["p1"]))[-1]
                else:
                    last = [await me.send(b"x", ["p1"]) for _ in range(3)][-1]
                await me.send_many([b"y"] * 2, ["p0"])
            async with asyncio.timeout(10):
                assert await last.delivered_by() == ("p1",)
            await until(members.resting)
            assert [each.number for each in members.delivered[1]] == [1, 2, 3, 6, 7, 8]
            assert not members.violations()

    asyncio.run(run())
