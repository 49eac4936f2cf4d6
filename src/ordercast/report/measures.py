"""How large marks and texts are, in CSS pixels."""

from __future__ import annotations

from ordercast.report.focus import Focus
from ordercast.report.scene import Hold, Mark
from ordercast.report.words import duration, message_text

__all__ = [
    "CHARACTER",
    "LABEL_SIDE",
    "RADIUS",
    "STUB",
    "bar_texts",
    "bar_width",
    "extent",
    "note_text",
    "note_width",
]

CHARACTER = 6.7
"""The width of one character of a label (11px monospace, with some air)."""
RADIUS = 4.5
LABEL_SIDE = 4.0
"""From the middle of a mark to its label."""
STUB = 34.0
"""How far to the right an arrow goes whose message never arrives."""


def extent(mark: Mark) -> tuple[float, float]:
    """How far a mark with its label reaches to the left and to the right of its middle.

    Messages leave to the right and come from the left, so a send has its label on the left
    and everything else on the right, out of the way of its own arrow."""
    if not mark.label:
        return RADIUS, RADIUS
    label = LABEL_SIDE + len(mark.label) * CHARACTER
    return (label, RADIUS) if mark.kind == "send" else (RADIUS, label)


def bar_texts(hold: Hold) -> tuple[str, str]:
    """The label of a wait, and the longer one that it carries where there is room."""
    text = message_text(hold.message)
    if hold.fate == "never":
        return f"{text} never", f"{text} never delivered"
    return text, text if hold.wait_us is None else f"{text} held {duration(hold.wait_us)}"


def bar_width(text: str) -> float:
    return len(text) * CHARACTER + 6.0


def note_text(focus: Focus) -> str:
    return f"{message_text(focus.message)} {focus.note}"


def note_width(focus: Focus) -> float:
    return len(note_text(focus)) * CHARACTER + 30.0
