"""What a watch says while a run goes on, for whoever prints it: new verdicts, how it goes, and what
is wrong with the log."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from ordercast.trace.verdicts import Verdict

__all__ = ["Flaw", "News", "Quantiles", "Said", "Status"]


class Quantiles(Struct, frozen=True):
    p50: int
    p99: int


class Said(Struct, frozen=True, tag_field="kind", tag="verdict"):
    """A verdict that is new."""

    time: datetime
    verdict: Verdict
    since: str


class Status(Struct, frozen=True, tag_field="kind", tag="status"):
    """How a run is doing; see `docs/watching.md`."""

    run: str
    time: datetime
    events: int
    messages: int
    deliveries: int
    kept: int
    waiting: int
    repeated: int
    events_per_s: float | None
    deliveries_per_s: float | None
    latency_us: Quantiles | None
    held_us: Quantiles | None
    order_held: str
    promised: tuple[str, ...]
    over: bool
    standing: tuple[Verdict, ...]


class Flaw(Struct, frozen=True, tag_field="kind", tag="flaw"):
    run: str
    time: datetime
    flaw: str


News = Said | Status | Flaw
