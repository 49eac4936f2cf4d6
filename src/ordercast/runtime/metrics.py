"""What a member counts, for Prometheus. Nothing is counted twice: a scrape reads the status.

    REGISTRY.register(ordercast.metrics(group))

Names follow Prometheus' rules: base units, `_total` on what only grows. Every sample has the
labels `group` and `member`; those of a link have `peer` as well, failed handshakes their `reason`.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from ordercast.errors import SetupError, UsageError
from ordercast.runtime.handshakes import REASONS
from ordercast.runtime.status import JournalStatus, PeerStatus, Status

try:
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
    from prometheus_client.registry import Collector
except ImportError as error:
    raise SetupError(
        "metrics need the package prometheus_client: pip install 'ordercast[metrics]'"
    ) from error

__all__ = ["GroupCollector", "exposition", "metrics"]

SCRAPE_TIMEOUT_S = 5.0
COUNTER, GAUGE = CounterMetricFamily, GaugeMetricFamily
Kind = type[CounterMetricFamily] | type[GaugeMetricFamily]

_MEMBER: list[tuple[str, Kind, str, Callable[[Status], float]]] = [
    ("messages_sent", COUNTER, "Messages sent.", lambda s: s.sent),
    ("bundles_sent", COUNTER, "Bundles sent: what the protocol numbers.", lambda s: s.bundles_sent),
    ("sent_bytes", COUNTER, "Bytes in the bundles sent.", lambda s: s.bytes_sent),
    ("messages_delivered", COUNTER, "Messages delivered: the position.", lambda s: s.delivered),
    ("bundles_delivered", COUNTER, "Bundles delivered.", lambda s: s.bundles_delivered),
    ("delivered_bytes", COUNTER, "Bytes in the bundles delivered.", lambda s: s.bytes_delivered),
    ("held_bundles", GAUGE, "Bundles that have arrived and may not be delivered yet.",
     lambda s: s.held),
    ("queued_messages", GAUGE, "Messages delivered and not taken by the application yet.",
     lambda s: s.queued),
    ("queued_bytes", GAUGE, "Bytes of these.", lambda s: s.queued_bytes),
    ("window_bytes", GAUGE, "What the slowest member may have to take before sends wait.",
     lambda s: s.window_bytes),
    ("window_used_bytes", GAUGE, "What the slowest member has yet to take.",
     lambda s: s.window_used_bytes),
    ("members", GAUGE, "Members of the group.", lambda s: len(s.members)),
    ("members_present", GAUGE, "Connected members, and this one.", lambda s: len(s.present)),
    ("refused_connections", COUNTER, "Connections dropped because the other side broke a rule.",
     lambda s: s.refused_connections),
    ("event_loop_lag_seconds", GAUGE, "How late the last heartbeat was.", lambda s: s.loop_lag_s),
]  # fmt: skip

_PEER: list[tuple[str, Kind, str, Callable[[PeerStatus], float]]] = [
    ("connected", GAUGE, "1 if there is a connection.", lambda p: p.connected),
    ("suspected", GAUGE, "1 if the peer is thought to be down.", lambda p: p.suspected),
    ("dead", GAUGE, "1 if the peer was given up for good.", lambda p: p.dead),
    ("reconnects", COUNTER, "Connections after the first one.",
     lambda p: max(p.connections - 1, 0)),
    ("packets_sent", COUNTER, "Packets put on the link.", lambda p: p.packets_sent),
    ("packets_received", COUNTER, "Packets taken from the link.", lambda p: p.packets_received),
    ("unacknowledged_packets", GAUGE, "Packets kept for a resend.",
     lambda p: p.unacknowledged_packets),
    ("unacknowledged_bytes", GAUGE, "Bytes of these.", lambda p: p.unacknowledged_bytes),
    ("undelivered_bundles", GAUGE, "Own bundles that the peer has yet to deliver.",
     lambda p: p.undelivered_bundles),
    ("window_used_bytes", GAUGE, "Own bytes that the peer's application has yet to take.",
     lambda p: p.window_used_bytes),
]  # fmt: skip

_JOURNAL: list[tuple[str, Kind, str, Callable[[JournalStatus], float]]] = [
    ("written_bytes", COUNTER, "Bytes written to the journal.", lambda j: j.written_bytes),
    ("commits", COUNTER, "Commits of the journal.", lambda j: j.commits),
    ("segment", GAUGE, "The number of the segment being written.", lambda j: j.segment),
    ("segment_bytes", GAUGE, "How full it is.", lambda j: j.segment_bytes),
]


class Watched(Protocol):
    """A group, or a replica."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...

    def status(self) -> Status: ...


def metrics(*groups: Watched) -> GroupCollector:
    """To be registered with a Prometheus registry: one collector for all groups and replicas of a
    process, as in `metrics(group, replica)`."""
    if not groups:
        raise UsageError("metrics() of nothing: give a group or a replica, or several")
    for group in groups:
        if not callable(getattr(group, "status", None)):
            raise UsageError(f"{group!r} counts nothing: give a group or a replica, or several")
    return GroupCollector(groups)


class GroupCollector(Collector):
    def __init__(self, groups: Iterable[Watched]) -> None:
        self._groups = tuple(groups)

    def collect(self) -> Iterator[Metric]:
        found = [_read(group) for group in self._groups]
        for name, kind, text, value in _MEMBER:
            family = kind(f"ordercast_{name}", text, labels=("group", "member"))
            for status in found:
                family.add_metric((status.group, status.me), value(status))
            yield family
        yield _failed_handshakes(found)
        for name, kind, text, of_peer in _PEER:
            family = kind(f"ordercast_peer_{name}", text, labels=("group", "member", "peer"))
            for status in found:
                for peer in status.peers:
                    family.add_metric((status.group, status.me, peer.name), of_peer(peer))
            yield family
        for name, kind, text, of_journal in _JOURNAL:
            family = kind(f"ordercast_journal_{name}", text, labels=("group", "member"))
            for status in found:
                if status.journal is not None:
                    family.add_metric((status.group, status.me), of_journal(status.journal))
            yield family


def _failed_handshakes(found: Iterable[Status]) -> Metric:
    """Every reason from the start, so that a rate sees the first failure."""
    text = "TLS handshakes that failed, at our door or where we dialled."
    name, labels = "ordercast_failed_handshakes", ("group", "member", "reason")
    family = CounterMetricFamily(name, text, labels=labels)
    for status in found:
        for reason in REASONS:
            count = status.failed_handshakes.get(reason, 0)
            family.add_metric((status.group, status.me, reason), count)
    return family


def exposition(group: Watched) -> bytes:
    """The text format, of this group alone."""
    registry = CollectorRegistry()
    registry.register(metrics(group))
    return generate_latest(registry)


def _read(group: Watched) -> Status:
    """On the member's own loop, whichever thread a scrape comes from."""
    loop = group.loop
    try:
        here = asyncio.get_running_loop()
    except RuntimeError:
        here = None
    if here is loop or not loop.is_running():
        return group.status()
    answer: concurrent.futures.Future[Status] = concurrent.futures.Future()

    def read() -> None:
        try:
            answer.set_result(group.status())
        except Exception as error:
            answer.set_exception(error)

    loop.call_soon_threadsafe(read)
    return answer.result(SCRAPE_TIMEOUT_S)
