"""Numbers, times and properties as a person says them."""

from __future__ import annotations

from collections.abc import Sequence

from ordercast.trace.verdicts import PROPERTIES

__all__ = [
    "MEANINGS",
    "capital",
    "count",
    "duration",
    "instant",
    "listing",
    "message_text",
    "property_words",
    "rank",
    "span",
]

_WORDS = {
    "no_duplication": "no duplication",
    "no_creation": "no creation",
    "validity": "validity",
    "agreement": "agreement",
    "uniform_agreement": "uniform agreement",
    "fifo": "FIFO order",
    "causal": "causal order",
    "total_pairwise": "pairwise total order",
    "total_acyclic": "acyclic total order",
    "total_gap_free": "gap-free total order",
    "synchronous": "synchronous order",
}

MEANINGS = {
    "no_duplication": "No process delivers a message twice.",
    "no_creation": "Only what was sent to a process is delivered there.",
    "validity": "What a correct process sends is delivered.",
    "agreement": "What one correct process delivers, every correct addressee delivers.",
    "uniform_agreement": "What any process delivers, even one that crashes, "
    "every correct addressee delivers.",
    "fifo": "Messages of one sender are delivered in the order they were sent.",
    "causal": "No message is delivered before one that happened before it.",
    "total_pairwise": "No two processes deliver two messages in opposite orders.",
    "total_acyclic": "All delivery orders together contain no cycle.",
    "total_gap_free": "Nobody skips a message that others delivered earlier.",
    "synchronous": "Every message could have been instantaneous.",
}


def property_words(name: str) -> str:
    return _WORDS.get(name, name.replace("_", " "))


def rank(name: str) -> tuple[int, str]:
    """Sorts properties as the design lists them, and strangers after them."""
    return (PROPERTIES.index(name) if name in PROPERTIES else len(PROPERTIES)), name


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def count(number: int, noun: str, plural: str | None = None) -> str:
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def listing(words: Sequence[str]) -> str:
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def message_text(message: tuple[int, int]) -> str:
    return f"{message[0]}:{message[1]}"


def duration(time_us: int) -> str:
    """Three digits are enough to compare, and the unit stays one a person can picture."""
    if time_us < 1_000:
        return f"{time_us} µs"
    if time_us < 1_000_000:
        return f"{time_us / 1_000:.3g} ms" if time_us < 999_500 else "1 s"
    if time_us < 60_000_000:
        return f"{time_us / 1_000_000:.3g} s"
    minutes, seconds = divmod(round(time_us / 1_000_000), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours:,} h {minutes} min" if minutes else f"{hours:,} h"
    return f"{minutes} min {seconds} s" if seconds else f"{minutes} min"


def span(time_us: float) -> str:
    """A duration on an axis."""
    return duration(round(time_us)) if time_us else "0"


def instant(time_us: int, step_us: int) -> str:
    """A point in time, with digits enough to tell it from others a step away."""
    if time_us < 1_000 * step_us or step_us >= 1_000_000:
        return duration(time_us)
    unit, name = next(
        (unit, name)
        for unit, name in ((1_000_000, "s"), (1_000, "ms"), (1, "µs"))
        if time_us >= unit
    )
    digits = len(str(unit // step_us - 1)) if step_us < unit else 0
    text = f"{time_us / unit:,.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if digits else text} {name}"
