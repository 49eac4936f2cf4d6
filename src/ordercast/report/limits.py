"""How much one page draws, and the sentences that say what is left out."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ordercast.report.parts import Part, window
from ordercast.report.words import count

__all__ = ["Limits", "narrowed"]


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one page draws. What is left out is said on the page."""

    runs: int = 6
    run_lines: int = 200
    events: int = 10_000
    """A run of at most this many events is drawn whole; of another its beginning."""
    window_events: int = 1_000
    page_events: int = 15_000
    """Of all runs together: once so many are drawn, the others are drawn from their beginning."""
    processes: int = 64
    witnesses: int = 8
    waiting: int = 20
    happenings: int = 200

    def narrow(self) -> Limits:
        """For a run that the page has no room for."""
        return replace(self, events=min(self.window_events, self.events))


def narrowed(
    part: Part, events_max: int, limits: Limits, *, of: int
) -> tuple[Part, tuple[str, ...]]:
    """The beginning of a part of a run that has `of` events."""
    drawn = window(part, events_max=events_max, processes_max=limits.processes)
    left = of - len(drawn.events)
    text = f"Drawn: the first {len(drawn.events):,} of {of:,} events in time order"
    absent = len(part.processes) - len(drawn.processes)
    if absent:
        text += f", at {len(drawn.processes):,} of {len(part.processes):,} processes"
    others = f" and {count(absent, 'process', 'processes')}" if absent else ""
    return drawn, (f"{text}. Left out: {count(left, 'event')}{others}.",)
