"""What a run cost, by process: from its events, or from the tables of `verify --output`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ordercast.report.history import Copy, History, Id, name_of
from ordercast.trace import Event

__all__ = ["Cost", "Spread", "cost_of_all", "costs_of", "depths_of"]


@dataclass(frozen=True, slots=True)
class Spread:
    """Nearest ranks."""

    p50: int
    p90: int
    p99: int
    max: int

    @classmethod
    def of(cls, values: Iterable[int]) -> Spread | None:
        found = sorted(values)
        if not found:
            return None
        p50, p90, p99 = (found[-(-len(found) * share // 100) - 1] for share in (50, 90, 99))
        return cls(p50, p90, p99, found[-1])


@dataclass(frozen=True, slots=True)
class Cost:
    """At one process, or at all of them. What the log does not tell is None."""

    process: int
    name: str
    deliveries: int
    latency_us: Spread | None
    """From the send to the first delivery here, of other processes' messages."""
    held_us: Spread | None
    """From the first arrival to the delivery."""
    depth_max: int | None
    """The most messages that had arrived and were not delivered yet."""
    copies: float | None
    """Arrivals, for each message delivered."""
    control_bytes: float | None
    """What all copies carried beside the payload, for each message delivered."""


@dataclass(slots=True)
class _Sums:
    deliveries: int = 0
    copies: int = 0
    control_bytes: int = 0
    told: bool = False
    latencies: list[int] = field(default_factory=list)
    waits: list[int] = field(default_factory=list)

    def add(self, history: History, message: Id, process: int, copy: Copy) -> None:
        self.copies += len(copy.receives)
        sizes = [event.control_bytes for event in copy.receives if event.control_bytes is not None]
        self.told |= bool(sizes)
        self.control_bytes += sum(sizes)
        if not copy.deliveries:
            return
        self.deliveries += 1
        send = history.sends.get(message)
        if send is not None and process != message[0]:
            self.latencies += _between(send, copy.deliveries[0])
        if copy.receives:
            self.waits += _between(copy.receives[0], copy.deliveries[0])

    def cost(self, process: int, name: str, depths: Sequence[tuple[int, int]]) -> Cost:
        each = self.deliveries
        return Cost(
            process=process,
            name=name,
            deliveries=each,
            latency_us=Spread.of(self.latencies),
            held_us=Spread.of(self.waits),
            depth_max=max((depth for _, depth in depths), default=None),
            copies=self.copies / each if self.copies and each else None,
            control_bytes=self.control_bytes / each if self.told and each else None,
        )


def costs_of(history: History) -> list[Cost]:
    """At each process."""
    sums: dict[int, _Sums] = {process: _Sums() for process in history.trace.members}
    for (message, process), copy in history.copies.items():
        sums.setdefault(process, _Sums()).add(history, message, process, copy)
    depths = depths_of(history)
    return [
        own.cost(process, name_of(history.trace, process), depths.get(process, ()))
        for process, own in sorted(sums.items())
    ]


def cost_of_all(history: History) -> Cost:
    """At all processes together; the depth is that of the fullest."""
    sums = _Sums()
    for (message, process), copy in history.copies.items():
        sums.add(history, message, process, copy)
    levels = [level for levels in depths_of(history).values() for level in levels]
    return sums.cost(-1, "all", levels)


def depths_of(history: History) -> dict[int, list[tuple[int, int]]]:
    """For each process with timed arrivals, when how many messages had arrived and were not
    delivered yet: the times at which this changes, counted from the start of the run."""
    changes: dict[int, list[tuple[int, int]]] = {}
    for (message, process), copy in history.copies.items():
        if not copy.receives or copy.receives[0].time_us is None:
            continue
        start = copy.receives[0].time_us - history.zero_us
        own = changes.setdefault(process, [])
        if not copy.deliveries:
            addressed = message not in history.sends or process in history.addressees(message)
            own += [(start, 1)] if addressed else []
        elif (end := copy.deliveries[0].time_us) is not None and end - history.zero_us > start:
            own += [(start, 1), (end - history.zero_us, -1)]
    return {process: _levels(own) for process, own in sorted(changes.items())}


def _levels(changes: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    depth = 0
    levels: dict[int, int] = {}
    for time_us, change in sorted(changes):
        depth += change
        levels[time_us] = depth
    return [(0, 0), *levels.items()] if 0 not in levels else list(levels.items())


def _between(earlier: Event, later: Event) -> list[int]:
    """Nothing if a clock is missing, or if the two clocks disagree."""
    if earlier.time_us is None or later.time_us is None or later.time_us < earlier.time_us:
        return []
    return [later.time_us - earlier.time_us]
