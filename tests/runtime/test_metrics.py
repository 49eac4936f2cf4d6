"""Prometheus reads what members count."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

import ordercast
from ordercast import Group
from ordercast.runtime.discovery import Address
from ordercast.runtime.watching import Watch

from .helpers import until
from .test_join import addresses, joined, take

pytestmark = pytest.mark.timeout(60)

Labels = tuple[tuple[str, str], ...]


def samples(text: str) -> dict[tuple[str, Labels], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def read(registry: CollectorRegistry, name: str, group: Group, peer: str | None = None) -> float:
    labels = {"group": group.name, "member": group.me}
    value = registry.get_sample_value(name, labels if peer is None else labels | {"peer": peer})
    assert value is not None, f"there is no {name}"
    return value


def test_a_scrape_reads_what_is_counted_anyway(tmp_path: Path) -> None:
    async def run() -> None:
        settings = ordercast.Settings(window_bytes=50_000)
        async with joined("a", "b", settings=settings) as (a, b):
            registry = CollectorRegistry()
            registry.register(ordercast.metrics(a, b))  # many groups, one collector
            for _ in range(20):
                await a.send(b"x" * 100)
            await until(lambda: b.status().delivered == 20)
            assert read(registry, "ordercast_messages_sent_total", a) == 20
            assert read(registry, "ordercast_messages_sent_total", b) == 0
            assert read(registry, "ordercast_bundles_sent_total", a) == 1
            assert 2000 < read(registry, "ordercast_sent_bytes_total", a) < 2200
            assert read(registry, "ordercast_messages_delivered_total", b) == 20
            assert read(registry, "ordercast_queued_messages", b) == 20
            assert read(registry, "ordercast_window_bytes", a) == 50_000
            assert 2000 < read(registry, "ordercast_window_used_bytes", a) < 2200
            assert read(registry, "ordercast_peer_connected", a, "b") == 1
            assert read(registry, "ordercast_members_present", a) == 2
            await take(b, 20)
            assert read(registry, "ordercast_queued_messages", b) == 0
            assert 2000 < read(registry, "ordercast_delivered_bytes_total", b) < 2200
            assert "ordercast_journal_commits_total{" not in generate_latest(registry).decode()
            await b.aclose()
            await until(lambda: a.view.suspected == ("b",) and a.view.present == ("a",))
            assert read(registry, "ordercast_peer_connected", a, "b") == 0
            assert read(registry, "ordercast_peer_suspected", a, "b") == 1

    asyncio.run(run())


def test_a_reconnect_is_counted(tmp_path: Path) -> None:
    async def run() -> None:
        async with joined("a", "b") as (a, b):
            registry = CollectorRegistry()
            registry.register(ordercast.metrics(a))
            assert read(registry, "ordercast_peer_reconnects_total", a, "b") == 0
            connection = b._node.company.peers[0].connection
            assert connection is not None
            connection.abort()
            await until(lambda: read(registry, "ordercast_peer_reconnects_total", a, "b") == 1)

    asyncio.run(run())


def test_a_scrape_from_another_thread_is_answered_by_the_loop(tmp_path: Path) -> None:
    async def run() -> Group:
        async with joined("a", journal=tmp_path / "journal") as (a,):
            registry.register(ordercast.metrics(a))
            await (await a.send(b"x")).stable()
            text = (await asyncio.to_thread(generate_latest, registry)).decode()
            found = samples(text)
            mine = (("group", "g"), ("member", "a"))
            assert found["ordercast_messages_sent_total", mine] == 1
            assert found["ordercast_journal_commits_total", mine] >= 1
            assert found["ordercast_journal_segment", mine] == 1
            return a

    registry = CollectorRegistry()
    group = asyncio.run(run())
    assert read(registry, "ordercast_messages_sent_total", group) == 1, "after the loop as well"


def test_prometheus_is_served_and_nothing_else(tmp_path: Path) -> None:
    async def run() -> None:
        async with joined("a") as (a,):
            where = Address.parse(addresses("x")["x"])
            async with contextlib.aclosing(Watch.on_port(where)) as watch:
                await watch.open()
                watch.serve(a)
                answer = await asyncio.to_thread(fetch, f"http://{where}/metrics")
                assert samples(answer)["ordercast_members", (("group", "g"), ("member", "a"))] == 1
                with pytest.raises(urllib.error.HTTPError, match="404"):
                    await asyncio.to_thread(fetch, f"http://{where}/status")

    asyncio.run(run())


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=20) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text: str = answer.read().decode()
        return text


@pytest.mark.parametrize("watched", [(), (3,), (None,)])
def test_what_counts_nothing_is_told(watched: tuple[Any, ...]) -> None:
    with pytest.raises(ordercast.UsageError, match="give a group or a replica, or several"):
        ordercast.metrics(*watched)


@pytest.mark.parametrize(
    ("module", "name", "extra"),
    [("prometheus_client", "metrics", "metrics"), ("opentelemetry", "traced", "otel")],
)
def test_without_the_extra_it_is_said_what_to_install(module: str, name: str, extra: str) -> None:
    program = (
        f"import sys\nsys.modules[{module!r}] = None\nimport ordercast\n"
        "from ordercast import *\n"
        f"try: ordercast.{name}\nexcept ordercast.SetupError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"pip install 'ordercast[{extra}]'" in done.stdout
