"""What the air does to the packets of one link."""

from __future__ import annotations

import asyncio

import pytest

from ordercast.errors import UsageError
from ordercast.runtime import weather as weather_module
from ordercast.runtime.weather import Air, Weather

from .helpers import until


def air(weather: Weather, *, seed: str = "s", fifo: bool = False) -> tuple[Air, list[bytes]]:
    handed: list[bytes] = []
    return Air(weather, seed=seed, fifo=fifo, hand=handed.append), handed


def put(air: Air, *packets: bytes) -> None:
    for packet in packets:
        air.put(packet, broadcast=True)


def test_calm_weather_hands_over_at_once() -> None:
    async def run() -> None:
        sky, handed = air(Weather())
        put(sky, b"1", b"2")
        assert handed == [b"1", b"2"]
        assert sky.packets == 0

    asyncio.run(run())


def test_pairs_are_swapped_and_an_odd_one_goes_when_sending_ends() -> None:
    async def run() -> None:
        sky, handed = air(Weather(swap_pairs=True))
        put(sky, b"1")
        assert (handed, sky.packets) == ([], 1)
        put(sky, b"2", b"3", b"4", b"5")
        assert (handed, sky.packets) == ([b"2", b"1", b"4", b"3"], 1)
        sky.release_odd()
        assert (handed[-1], sky.packets) == (b"5", 0)

    asyncio.run(run())


def test_only_broadcasts_of_this_process_are_swapped() -> None:
    async def run() -> None:
        sky, handed = air(Weather(swap_pairs=True))
        put(sky, b"1")
        sky.put(b"control", broadcast=False)
        put(sky, b"2")
        assert handed == [b"control", b"2", b"1"]

    asyncio.run(run())


def test_an_odd_one_goes_by_itself_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weather_module, "SWAP_FLUSH_S", 0.01)

    async def run() -> None:
        sky, handed = air(Weather(swap_pairs=True))
        put(sky, b"1")
        await until(lambda: handed == [b"1"])
        put(sky, b"2", b"3")
        assert handed == [b"1", b"3", b"2"]

    asyncio.run(run())


def test_delays_reorder_and_the_air_counts_what_is_held_back() -> None:
    async def run() -> None:
        sky, handed = air(Weather(delay_ms=(0, 50)))
        packets = [b"%d" % number for number in range(50)]
        put(sky, *packets)
        assert sky.packets == 50
        await until(lambda: sky.packets == 0)
        assert handed != packets
        assert sorted(handed) == sorted(packets)

    asyncio.run(run())


def test_links_that_must_keep_their_order_do_so_under_delays() -> None:
    async def run() -> None:
        sky, handed = air(Weather(delay_ms=(5, 50)), fifo=True)
        packets = [b"%d" % number for number in range(50)]
        put(sky, *packets)
        await asyncio.sleep(0)
        assert handed == []
        await until(lambda: sky.packets == 0)
        assert handed == packets

    asyncio.run(run())
    with pytest.raises(UsageError, match="keep their order"):
        air(Weather(swap_pairs=True), fifo=True)


def test_flush_lets_go_of_everything_once() -> None:
    async def run() -> None:
        sky, handed = air(Weather(delay_ms=(10, 10), swap_pairs=True))
        put(sky, b"1", b"2", b"3")
        sky.flush()
        assert (sorted(handed), sky.packets) == ([b"1", b"2", b"3"], 0)
        await asyncio.sleep(0.03)
        assert len(handed) == 3

    asyncio.run(run())


def test_the_seed_decides_the_delays() -> None:
    async def order(seed: str) -> list[bytes]:
        sky, handed = air(Weather(delay_ms=(0, 400)), seed=seed)
        put(sky, *(b"%d" % number for number in range(5)))
        await until(lambda: sky.packets == 0)
        return handed

    async def run() -> None:
        first, again, other = await asyncio.gather(order("a"), order("a"), order("b"))
        assert first == again != other

    asyncio.run(run())


@pytest.mark.parametrize("delay_ms", [(-1, 2), (3, 2), (0, 1e9), (float("nan"), 1)])
def test_impossible_delays_are_the_callers_fault(delay_ms: tuple[float, float]) -> None:
    with pytest.raises(UsageError, match="delay"):
        Weather(delay_ms=delay_ms)
