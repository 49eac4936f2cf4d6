"""What runs cost, by plain loops over their rows: slow, and plain to see that they are right."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from math import ceil
from typing import Any

from ordercast.trace.event import Event

Row = dict[str, Any]


def nearest(values: list[int], share: float) -> int | None:
    values = sorted(values)
    return values[max(ceil(share * len(values)), 1) - 1] if values else None


def expected_costs(events: list[Event]) -> Iterator[Row]:
    sends = {(e.run, *e.message): e for e in reversed(events) if e.kind == "send"}
    logs: dict[tuple[str, int], list[Event]] = defaultdict(list)
    for event in sorted(events, key=lambda e: e.position):
        logs[event.run, event.process].append(event)
    for (run, process), log in logs.items():
        by_class: dict[str | None, list[Event]] = defaultdict(list)
        for event in log:
            if event.kind in ("receive", "deliver"):
                by_class[class_of(sends.get((run, *event.message)))].append(event)
        times = [event.time_us for event in log if event.time_us is not None]
        for word, mine in by_class.items():
            yield {"run": run, "process": process, "class": word, **account(mine, sends, times)}


def class_of(send: Event | None) -> str | None:
    if send is None:
        return None
    if send.destinations is None:
        return "broadcast"
    return "unicast" if len(set(send.destinations)) == 1 else "multicast"


def account(log: list[Event], sends: dict[Any, Event], times: list[int]) -> Row:
    """in: the receive and deliver rows of one process and class; its send rows; all its times"""
    received: dict[tuple[int, int], Event] = {}
    delivered: dict[tuple[int, int], Event] = {}
    for event in log:
        (received if event.kind == "receive" else delivered).setdefault(event.message, event)
    latencies, waits, skewed, judged = [], [], 0, False
    for message, event in delivered.items():
        send, arrival = sends.get((event.run, *message)), received.get(message)
        latency = since(send, event) if event.process != event.origin else None
        wait = since(arrival, event) if arrival and arrival.position < event.position else None
        known = [value for value in (latency, wait) if value is not None]
        judged |= bool(known)
        skewed += any(value < 0 for value in known)
        latencies += [latency] if latency is not None and latency >= 0 else []
        waits += [wait] if wait is not None and wait >= 0 else []
    copies = [event for event in log if event.kind == "receive"]
    control = [event.control_bytes for event in copies if event.control_bytes is not None]
    sizes = [size for size in (size_of(e, sends) for e in delivered.values()) if size is not None]
    depth, mean = queue(log, received, delivered, sends, times)
    return {
        "deliveries": len(delivered),
        **spread("latency", latencies),
        **spread("held", waits),
        "clock_skew": skewed if judged else None,
        "depth_max": depth if copies else None,
        "depth_mean": mean if copies else None,
        "copies": len(copies) / len(delivered) if copies and delivered else None,
        "bytes": sum(sizes) / len(sizes) if sizes else None,
        "control_bytes": sum(control) / len(delivered) if control and delivered else None,
    }


def since(start: Event | None, end: Event) -> int | None:
    if start is None or start.time_us is None or end.time_us is None:
        return None
    return end.time_us - start.time_us


def size_of(event: Event, sends: dict[Any, Event]) -> int | None:
    send = sends.get((event.run, *event.message))
    return event.bytes if event.bytes is not None or send is None else send.bytes


def spread(name: str, values: list[int]) -> Row:
    shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
    return {f"{name}_{word}_us": nearest(values, share) for word, share in shares.items()}


def queue(
    log: list[Event],
    received: dict[tuple[int, int], Event],
    delivered: dict[tuple[int, int], Event],
    sends: dict[Any, Event],
    times: list[int],
) -> tuple[int, float | None]:
    """The most at once, and the mean over time."""
    held: set[tuple[int, int]] = set()
    depth, waited = 0, 0
    for event in log:
        first = received if event.kind == "receive" else delivered
        if first.get(event.message) is not event:
            continue
        if event.kind == "deliver":
            held.discard(event.message)
            continue
        end, send = delivered.get(event.message), sends.get((event.run, *event.message))
        if end is None:
            addressed = (
                send is None or send.destinations is None or event.process in send.destinations
            )
            if addressed:
                held.add(event.message)
                waited += max(times) - event.time_us if event.time_us is not None else 0
        elif end.position > event.position and since(event, end) != 0:
            held.add(event.message)
            waited += max(since(event, end) or 0, 0)
        depth = max(depth, len(held))
    span = max(times) - min(times) if times else 0
    return depth, waited / span if span else None


def expected_throughput(events: list[Event]) -> Iterator[Row]:
    ends: dict[str, list[int]] = defaultdict(list)
    for event in events:
        if event.time_us is not None:
            ends[event.run].append(event.time_us)
    counts: Counter[tuple[Any, ...]] = Counter()
    for event in events:
        if event.kind in ("send", "deliver"):
            bucket = width = None
            if event.time_us is not None:
                span = max(ends[event.run]) - min(ends[event.run])
                width = next(10**power for power in range(19) if span <= 316 * 10**power)
                bucket = event.time_us // width * width
            counts[event.run, event.process, width, bucket, event.kind] += 1
    for run, process, width, bucket in {key[:4] for key in counts}:
        yield {
            "run": run,
            "process": process,
            "width_us": width,
            "bucket_us": bucket,
            "sends": counts[run, process, width, bucket, "send"],
            "deliveries": counts[run, process, width, bucket, "deliver"],
        }
