"""Counts and times, as people say them."""

from __future__ import annotations

__all__ = ["counted", "duration"]


def counted(count: int, word: str) -> str:
    """`1 event`, `2 events`, `3 processes`."""
    ending = "es" if word.endswith("s") else "s"
    return f"{count} {word}" if count == 1 else f"{count} {word}{ending}"


def duration(us: float) -> str:
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if us >= size:
            return f"{us / size:.1f} {unit}"
    return f"{us:.0f} µs"
