"""What a mark says when the pointer rests on it."""

from __future__ import annotations

from ordercast.report.history import name_of
from ordercast.report.scene import Arrow, Hold, Mark, Scene
from ordercast.report.words import duration, instant, message_text
from ordercast.trace import Event

__all__ = ["arrow_hint", "hold_hint", "mark_hint"]

_VERBS = {
    "send": "sent",
    "receive": "arrived",
    "deliver": "delivered",
    "crash": "crashed",
    "recover": "recovered",
    "join": "joined",
    "leave": "left",
}


def mark_hint(scene: Scene, mark: Mark, *, wait_us: int | None) -> str:
    name = name_of(scene.trace, mark.process)
    verbs = " and ".join(_VERBS[event.kind] for event in mark.events)
    if mark.message is None:
        return f"{name} {verbs}{_when(scene, mark.events)}"
    again = " again" if mark.again else " once more" if mark.kind == "copy" else ""
    waited = "" if wait_us is None else f", waited {duration(wait_us)}"
    text = message_text(mark.message)
    place = "by" if mark.kind == "send" else "at"
    return f"{text} {verbs}{again} {place} {name}{_when(scene, mark.events)}{waited}"


def arrow_hint(scene: Scene, arrow: Arrow) -> str:
    route = (
        f"{message_text(arrow.message)} from {name_of(scene.trace, arrow.message[0])} "
        f"to {name_of(scene.trace, arrow.process)}"
    )
    if arrow.fate == "never":
        return f"{route}: never arrived"
    if arrow.fate == "beyond":
        return f"{route}: arrives after the part drawn here"
    if arrow.start is None or arrow.end is None:
        known = "is not drawn here" if arrow.fate == "undrawn" else "is not in the log"
        return f"{route}: its send {known}"
    start, end = scene.marks[arrow.start].events[0], scene.marks[arrow.end].events[0]
    if start.time_us is None or end.time_us is None:
        return route
    if end.time_us < start.time_us:
        return f"{route}: it arrived before it was sent, so the two clocks disagree"
    return f"{route}: {duration(end.time_us - start.time_us)} on the way"


def hold_hint(scene: Scene, hold: Hold) -> str:
    text, name = message_text(hold.message), name_of(scene.trace, hold.process)
    reason = scene.reasons.get((hold.process, text), "")
    why = f", {reason}" if reason else ""
    if hold.fate == "never":
        return f"{text} arrived at {name} and was never delivered there{why}"
    waited = "" if hold.wait_us is None else f" for {duration(hold.wait_us)}"
    own = "its own " if hold.message[0] == hold.process else ""
    beyond = "; delivered after the part drawn here" if hold.fate == "beyond" else ""
    return f"{name} held {own}{text}{waited}{why}{beyond}"


def _when(scene: Scene, events: tuple[Event, ...]) -> str:
    first, last = events[0], events[-1]
    positions = f"position {first.position}"
    if last is not first:
        positions = f"positions {first.position} to {last.position}"
    if first.time_us is None:
        return f" ({positions})"
    return f" ({positions}, at {instant(first.time_us - scene.zero_us, 1)})"
