"""`ordercast.join` as an application uses it: several members in one loop, on real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import math
import re
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import ordercast
from ordercast import Group, UsageError
from ordercast.protocols import catalog
from ordercast.trace.spans import log_files

from .helpers import until

pytestmark = pytest.mark.timeout(60)


def addresses(*names: str) -> dict[str, str]:
    """Ports that are free now."""
    sockets = [socket.socket() for _ in names]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    found = {
        name: f"127.0.0.1:{each.getsockname()[1]}"
        for name, each in zip(names, sockets, strict=True)
    }
    for each in sockets:
        each.close()
    return found


@contextlib.asynccontextmanager
async def joined(*names: str, **options: Any) -> AsyncIterator[list[Group]]:
    """All members of a group, come together."""
    peers = addresses(*names)
    async with contextlib.AsyncExitStack() as stack:
        joins = [
            stack.enter_async_context(ordercast.join("g", me=name, peers=peers, **options))
            for name in names
        ]
        yield list(await asyncio.gather(*joins))


async def take(group: Group, count: int) -> list[str]:
    """So many deliveries, as `sender:number payload`."""
    found: list[str] = []
    async with asyncio.timeout(20):
        async for delivery in group:
            found.append(f"{delivery.id} {delivery.payload.decode()}")
            if len(found) == count:
                break
    return found


def test_a_reply_never_precedes_its_question() -> None:
    async def run() -> None:
        async with joined("a", "b", "c") as (a, b, c):
            assert a.algorithm == "causal_vector over majority_acks"
            await a.send(b"a question")
            assert await take(b, 1) == ["a:1 a question"]
            await b.send(b"an answer")
            for group in (a, c):
                assert await take(group, 2) == ["a:1 a question", "b:1 an answer"]
            delivery = await anext(b)
            assert (delivery.sender, delivery.number, delivery.position) == ("b", 1, 2)

    asyncio.run(run())


@pytest.mark.parametrize("reliability", ["best_effort", "reliable", "uniform"])
def test_receipts(reliability: str) -> None:
    async def run() -> None:
        async with joined("a", "b", "c", reliability=reliability) as (a, _, c):
            receipts = [await a.send(b"%d" % number) for number in range(5)]
            assert [receipt.id for receipt in receipts] == [f"a:{n}" for n in range(1, 6)]
            async with asyncio.timeout(10):
                await receipts[4].stable()
                assert set(await receipts[0].delivered_by("b")) >= {"b"}
                assert await receipts[2].delivered_by() == ("a", "b", "c")
            assert len(await take(c, 5)) == 5
            with pytest.raises(UsageError, match="'d' is no member of 'g': it has a, b, c"):
                await receipts[0].delivered_by("d")
            with pytest.raises(UsageError, match=r"\(\['b', 'c'\],\) does not name members: give"):
                await receipts[0].delivered_by(["b", "c"])  # type: ignore[arg-type]
            with pytest.raises(UsageError, match="5 does not name members: give their names"):
                await a.send(b"", to=5)  # type: ignore[arg-type]
            with pytest.raises(UsageError, match="5 does not name members: give their names"):
                await a.send_many([b""], to=5)  # type: ignore[arg-type]

    asyncio.run(run())


def test_a_message_for_some() -> None:
    async def run() -> None:
        async with joined("a", "b", "c", order="fifo", reliability="best_effort") as (a, b, c):
            receipt = await a.send(b"for c", to=["c"])
            await a.send(b"for both", to=["b", "c"])
            await a.send(b"for all")
            assert await take(c, 3) == ["a:1 for c", "a:2 for both", "a:3 for all"]
            assert await take(b, 2) == ["a:2 for both", "a:3 for all"]
            assert await take(a, 1) == ["a:3 for all"]
            assert await receipt.delivered_by() == ("c",)
            with pytest.raises(UsageError, match="it was not sent to b"):
                await receipt.delivered_by("b")
            with pytest.raises(UsageError, match="no member"):
                await a.send(b"", to="x")
        async with joined("a", "b") as (a, b):
            with pytest.raises(
                UsageError, match=r"causal_vector .* choose causal_matrix over direct"
            ):
                await a.send(b"to one alone", to=["b"])
            await a.send(b"to all")
            assert await take(b, 1) == ["a:1 to all"]
        async with joined("a", "b", order="synchronous") as (a, b):
            with pytest.raises(UsageError, match="sends to one process: name it"):
                await a.send(b"to all")
            await a.send(b"to one", to=["b"])
            assert await take(b, 1) == ["a:1 to one"]

    asyncio.run(run())


def test_batches_and_deliveries_can_be_mixed_and_nothing_is_lost_by_stopping() -> None:
    async def run() -> None:
        async with joined("a", "b") as (a, b):
            for number in range(1000):
                await a.send(b"%d" % number)
            found: list[bytes] = [delivery.payload for delivery in [await anext(b)]]
            async for batch in b.batches():
                assert batch.first == len(found) + 1 == batch.position
                found += batch.payloads
                break
            while len(found) < 1000:
                task = asyncio.ensure_future(anext(b))
                await asyncio.sleep(0)
                if not task.done():
                    task.cancel()
                    with contextlib.suppress(asyncio.CancelledError):
                        found.append((await task).payload)
                else:
                    found.append(task.result().payload)
            assert found == [b"%d" % number for number in range(1000)]

    asyncio.run(run())


def test_a_slow_reader_slows_senders_and_a_cancelled_send_was_not_sent() -> None:
    async def run() -> None:
        settings = ordercast.Settings(window_bytes=10_000)
        async with joined("a", "b", settings=settings) as (a, b):
            reading = asyncio.create_task(take(a, 10**9))
            sent = 0
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    while True:
                        await a.send(b"x" * 1000)
                        sent += 1
            assert 10 <= sent <= 10 + 3  # a quarter of the window may be on top
            assert len(await take(b, sent)) == sent
            await a.send(b"now there is room")
            assert await take(b, 1) == [f"a:{sent + 1} now there is room"]
            reading.cancel()

    asyncio.run(run())


def test_leaving_ends_iterators_after_what_is_here() -> None:
    async def run() -> None:
        async with joined("a", "b") as (a, b):
            receipt = await a.send(b"last words")
            await receipt.delivered_by("b")
            await a.aclose()
            await b.aclose()
            assert [delivery.payload async for delivery in b] == [b"last words"]
            with pytest.raises(UsageError, match="has left the group"):
                await b.send(b"too late")

    asyncio.run(run())


def test_the_view_says_who_is_there() -> None:
    async def run() -> None:
        async with joined("a", "b", "c") as (a, b, c):
            view = a.view
            assert (view.me, view.members, view.present) == ("a", ("a", "b", "c"), ("a", "b", "c"))
            await c.aclose()
            await until(lambda: a.view.present == ("a", "b"))
            assert a.view.suspected == ("c",)
            receipt = await a.send(b"two of three are enough")
            async with asyncio.timeout(10):
                await receipt.stable()
            assert b.view.suspected == ("c",)

    asyncio.run(run())


def test_why_a_message_is_held() -> None:
    async def run() -> None:
        async with joined("a", "b", "c") as (a, b, c):
            for group in (b, c):
                await group.aclose()
            await a.send(b"nobody else holds it")
            await until(lambda: a.why_held() != [])
            (hold,) = a.why_held()
            assert (hold.sender, hold.first, hold.last) == ("a", 1, 1)
            assert hold.waits_on == ("b", "c")
            assert str(hold) == "a:1 waits for word from b, c"

    asyncio.run(run())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"order": "best"}, "no order 'best'"),
        ({"order": "Casual"}, r"no order 'Casual' \(did you mean causal\?\): choose one of causal"),
        ({"reliability": "unifrom"}, r"'unifrom' \(did you mean uniform\?\): choose one of best_"),
        ({"reliability": "perfect"}, "no reliability 'perfect'"),
        ({"order": "total_skeen", "reliability": "uniform"}, "cannot be uniform"),
        ({"peers": {"a": "10.0.0.1:7000"}, "listen": "127.0.0.1"}, "in the clear"),
        ({"peers": "dns:localhost:7001?size=3"}, "on one port, here 7001, .*: give listen"),
        ({"peers": "nowhere"}, "does not say who the members are"),
        ({"me": "x"}, "'x' is not in the list"),
        ({"keys": "/nowhere"}, "ordercast keys"),
        ({"keys": "/nowhere", "insecure": True}, "keys are for TLS, and insecure=True is"),
        ({"insecure": "no"}, "insecure='no': give True or False"),
        ({"journal": "j", "sync": "disc"}, "sync='disc': choose one of 'write' and 'disk'"),
        ({"sync": "disk"}, "give journal=DIR as well"),
        ({"replay_from": 3}, "nothing to replay: give journal=DIR as well"),
        ({"journal": "j", "replay_from": 0}, "replay_from=0: give a position, from 1 on"),
        ({"journal": "j", "replay_from": True}, "replay_from=True: give a position, from 1 on"),
        ({"timeout_s": 0}, "timeout_s=0: give a number of seconds, more than 0"),
        ({"timeout_s": "5"}, "timeout_s='5': give a number"),
        ({"settings": {"window_bytes": 9}}, "give an ordercast.Settings"),
        ({"me": 3}, "3 cannot be the name of a member"),
        ({"group": 3}, "3 cannot be the name of a group"),
        ({"peers": {3: "127.0.0.1:7000"}}, "3 cannot be the name of a member"),
        ({"journal": 3}, "journal=3: give a directory"),
        ({"trace": ["t"]}, r"trace=\['t'\]: give a directory"),
        ({"keys": 3}, "keys=3: give a directory"),
        ({"listen": 7000}, "listen=7000: give 'host:port' or a host"),
        ({"on_progress": 3}, "on_progress=3: give a function"),
        ({"trace": "/proc/x"}, r"no trace can be written to /proc/x: No such file.*; choose a"),
        ({"trace": __file__}, r"test_join\.py is a file: name a directory"),
        ({"trace": f"{__file__}/t"}, r"t: .*test_join\.py is a file: name a directory"),
        ({"journal": "/proc/x"}, "/proc/x cannot be opened"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(options: dict[str, Any], words: str) -> None:
    async def run() -> None:
        arguments: dict[str, Any] = {"me": "a", "peers": addresses("a"), "group": "g", **options}
        with pytest.raises(ordercast.OrdercastError, match=words):
            async with ordercast.join(**arguments):
                pass

    asyncio.run(run())


@pytest.mark.parametrize(
    "options",
    [
        {"window_bytes": "4"},
        {"window_bytes": 0},
        {"dead_after_s": True},
        {"suspect_phi": 0},
        {"suspect_phi": 301},
        {"suspect_phi": 1e-300},
    ],
)
def test_a_setting_that_cannot_be_is_told(options: dict[str, Any]) -> None:
    [(name, value)] = options.items()
    with pytest.raises(UsageError, match=f"{name} = {value!r}: choose"):
        ordercast.Settings(**options)


@pytest.mark.parametrize("name", ordercast.Settings().__struct_fields__)
def test_only_the_setting_for_which_it_means_something_may_be_none(name: str) -> None:
    if name == "dead_after_s":
        assert ordercast.Settings(dead_after_s=None).patience_s(journal=False) is None
        return
    with pytest.raises(UsageError, match=f"^{name} = None: choose .*(more than 0|0 or more)$"):
        ordercast.Settings(**{name: None})


@pytest.mark.parametrize("value", [1.5, 4096.0, math.inf, math.nan])
@pytest.mark.parametrize("name", ["window_bytes", "segment_bytes", "keep_bytes", "excerpt_chars"])
def test_a_setting_that_counts_is_a_whole_number(name: str, value: float) -> None:
    with pytest.raises(UsageError, match=f"^{name} = {value!r}: choose a whole number, "):
        ordercast.Settings(**{name: value})


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("typo", "there is no setting 'typo': choose from window_bytes, "),
        (
            "heartbeat",
            "'heartbeat' (did you mean heartbeat_s?): choose from window_bytes, linger_s",
        ),
    ],
)
def test_a_setting_that_there_is_not_is_told_with_those_that_there_are(
    name: str, sentence: str
) -> None:
    with pytest.raises(UsageError) as raised:
        ordercast.Settings(**{name: 1})
    assert sentence in str(raised.value)


def test_a_choice_is_listed_once() -> None:
    with pytest.raises(UsageError) as raised:
        catalog.choose("causal", "unifrom")
    words = str(raised.value).rpartition("one of ")[2].split(", ")
    assert len(words) == len(set(words))
    assert {"best_effort", "uniform", "majority_acks"} <= set(words)


def test_a_trace_of_another_life_is_left_alone(tmp_path: Path) -> None:
    """A member without memory numbers its messages from 1: no judge could tell the two apart."""
    trace, journal = tmp_path / "trace", tmp_path / "journal"

    async def live(**options: Any) -> None:
        async with ordercast.join("g", me="a", peers=addresses("a"), **options) as group:
            await group.send(b"x")
            await anext(group)

    def logged() -> bytes:
        (file,) = log_files(trace)
        return file.read_bytes()

    asyncio.run(live(trace=trace))
    before = logged()
    for options in ({}, {"journal": tmp_path / "new"}):
        with pytest.raises(UsageError, match=r"an earlier a.*choose another trace directory"):
            asyncio.run(live(trace=trace, **options))
    assert logged() == before
    asyncio.run(live(trace=tmp_path / "another"))

    before = b""
    trace = tmp_path / "kept"
    for _ in range(2):  # whoever has a journal goes on
        asyncio.run(live(trace=trace, journal=journal))
        assert len(logged()) > len(before)
        before = logged()


def test_help_says_a_word_on_every_argument() -> None:
    told = inspect.getdoc(ordercast.join) or ""
    for name in inspect.signature(ordercast.join).parameters:
        assert re.search(rf"^(\w+, )?{name}\b", told, re.MULTILINE), name
    for name in ("send", "send_many", "batches", "view", "why_held", "status", "aclose"):
        assert getattr(Group, name).__doc__, name


def test_members_that_want_different_things_are_told(tmp_path: Path) -> None:
    async def run() -> None:
        peers = addresses("a", "b")

        async def come(me: str, order: str) -> None:
            async with ordercast.join("g", me=me, peers=peers, order=order, timeout_s=1):
                pass

        results = await asyncio.gather(
            come("a", "fifo"), come("b", "causal"), return_exceptions=True
        )
        for result in results:
            assert isinstance(result, ordercast.DiscoveryError)
        why = r"a runs 'fifo over [^']*', and not 'causal_vector over [^']*'"
        first, second = map(str, results)
        assert re.search(f"no connection with b: the last one was turned away, since {why}", first)
        assert re.search(f"whoever is at the address of a hung up and said: “{why}”", second)

    asyncio.run(run())


def test_whoever_is_turned_down_again_and_again_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Every dial is answered with the same words, several times a second."""

    async def come(me: str, reliability: str, peers: dict[str, str]) -> None:
        with pytest.raises(ordercast.DiscoveryError):
            async with ordercast.join(
                "g", me=me, peers=peers, reliability=reliability, timeout_s=1.5
            ):
                pass

    async def run() -> None:
        peers = addresses("a", "b")
        await asyncio.gather(come("a", "reliable", peers), come("b", "uniform", peers))

    with caplog.at_level(logging.INFO, "ordercast.runtime"):
        asyncio.run(run())
    lines = [record.getMessage() for record in caplog.records]
    assert sum("hung up and said" in line for line in lines) == 1
    assert sum("dropped the connection" in line for line in lines) == 1


def test_strangers_while_the_others_are_waited_for_are_a_line_as_well(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    async def knock(peers: dict[str, str], words: bytes) -> None:
        host, port = peers["a"].split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(words)
        writer.write_eof()
        await reader.read()
        writer.close()

    async def run() -> None:
        peers = addresses("a")
        waiting = ordercast.join(
            "g", me="a", peers=f"registry:{tmp_path}?size=2", listen=peers["a"], timeout_s=1
        )
        joining = asyncio.create_task(waiting.__aenter__())
        await until(lambda: any(tmp_path.glob("a.json")))
        for _ in range(5):
            await knock(peers, b"GET / HTTP/1.1\r\n\r\n")
            await knock(peers, b"")
        with pytest.raises(ordercast.DiscoveryError):
            await joining

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    http, silent = sorted(record.getMessage() for record in caplog.records)[::-1]
    assert http.startswith("a: turned someone away at the door: it speaks HTTP, as no member does")
    assert silent == "a: turned someone away at the door: it hung up before it had said anything"


@pytest.mark.parametrize("me", ["a", "c"])
def test_a_host_that_is_not_known_is_told(me: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it is dialled from here, or expected to dial."""
    real = socket.getaddrinfo

    def resolve(host: Any, *rest: Any, **options: Any) -> Any:
        if host == "no.such.host.invalid":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return real(host, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    peers = {**addresses(me), "b": "no.such.host.invalid:17202"}

    async def run() -> None:
        async with ordercast.join("g", me=me, peers=peers, insecure=True, timeout_s=0.3):
            pass

    words = r"b cannot be reached at no\.such\.host\.invalid:17202: Name or service not known$"
    with pytest.raises(ordercast.DiscoveryError, match=words):
        asyncio.run(run())


def test_whoever_is_not_there_is_told_as_the_system_says_it() -> None:
    async def run() -> None:
        async with ordercast.join("g", me="b", peers=addresses("a", "b"), timeout_s=0.3):
            pass

    with pytest.raises(ordercast.DiscoveryError, match=r"a cannot .* at 127.*: Connection refused"):
        asyncio.run(run())


def test_whoever_waits_in_vain_is_told_for_whom() -> None:
    async def run() -> None:
        seen: list[str] = []
        told = "no connection with b, c: check that they are running and can reach this member$"
        with pytest.raises(ordercast.DiscoveryError, match=told):
            async with ordercast.join(
                "g",
                me="a",
                peers=addresses("a", "b", "c"),
                timeout_s=0.5,
                on_progress=lambda presence: seen.append(str(presence)),
            ):
                pass
        assert seen[-1] == "1 of 3 present"

    asyncio.run(run())


@pytest.mark.parametrize("uvloop", [False, True])
def test_a_port_is_free_again_whenever_joining_is_cancelled(uvloop: bool) -> None:
    async def run() -> None:
        peers = addresses("a", "b")
        for turns in range(12):
            joining = asyncio.create_task(
                ordercast.join("g", me="a", peers=peers, timeout_s=5).__aenter__()
            )
            for _ in range(turns):
                await asyncio.sleep(0)
            joining.cancel()
            with pytest.raises(asyncio.CancelledError):
                await joining
            host, _, port = peers["a"].partition(":")
            (await asyncio.start_server(lambda *_: None, host, int(port))).close()

    loop = pytest.importorskip("uvloop") if uvloop else asyncio
    loop.run(run())


def test_a_port_in_use_is_told_in_a_sentence() -> None:
    async def run() -> None:
        peers = addresses("a", "b")
        with (
            socket.create_server(("127.0.0.1", int(peers["a"].partition(":")[2]))),
            pytest.raises(UsageError, match=r"a cannot listen at 127\.0\.0\.1:\d+: Address al"),
        ):
            async with ordercast.join("g", me="a", peers=peers, timeout_s=1):
                pass

    asyncio.run(run())


@pytest.mark.parametrize("payload", [None, 17, "text"])
def test_what_is_no_message_is_told(payload: Any) -> None:
    async def run() -> None:
        async with joined("a") as (a,):
            with pytest.raises(UsageError, match="send bytes, as in"):
                await a.send(payload)
            for some in ([b"x", payload], b"bytes are numbers"):
                with pytest.raises(UsageError, match="send bytes, as in"):
                    await a.send_many(some)  # type: ignore[arg-type]

    asyncio.run(run())


def test_another_thread_is_told_how_to_send() -> None:
    async def run() -> None:
        async with joined("a") as (a,):
            for use in (a.send(b"1"), a.send_many([b"2"]), a.__anext__(), take(a, 1)):
                with pytest.raises(UsageError, match="belongs to another event loop: from another"):
                    await asyncio.to_thread(asyncio.run, use)
            proper = asyncio.run_coroutine_threadsafe(a.send(b"3"), a.loop)
            assert (await asyncio.wrap_future(proper)).id == "a:1"

    asyncio.run(run())


def test_receipts_do_not_count_the_dead() -> None:
    async def run() -> None:
        settings = ordercast.Settings(heartbeat_s=0.05, dead_after_s=0.3)
        options = {"order": "fifo", "reliability": "relay", "settings": settings}
        async with contextlib.AsyncExitStack() as all_of_them:
            peers = addresses("a", "b", "c")
            stacks = [contextlib.AsyncExitStack() for _ in peers]
            for stack in stacks:
                await all_of_them.enter_async_context(stack)
            joins = [
                stack.enter_async_context(ordercast.join("g", me=me, peers=peers, **options))
                for stack, me in zip(stacks, peers, strict=True)
            ]
            a, b, c = await asyncio.gather(*joins)
            early = await a.send(b"for three")
            for group in (a, b, c):
                await take(group, 1)
            assert await early.delivered_by() == ("a", "b", "c")
            for stack in stacks[1:]:
                await stack.aclose()
            late = await a.send(b"for nobody else")
            await take(a, 1)
            await until(lambda: a.view.dead == ("b", "c"))
            later = await a.send(b"for the dead")
            await take(a, 1)
            for receipt in (late, later):
                assert await receipt.delivered_by() == ("a",)
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.2):
                        await receipt.stable()
            assert await early.delivered_by() == ("a", "b", "c")

    asyncio.run(run())
