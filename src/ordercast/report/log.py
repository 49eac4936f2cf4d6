"""What the page's script knows about a run: who sent and delivered what, and the words about each
message that are not in the diagram."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
from markupsafe import Markup

from ordercast.report.history import History, Id, name_of
from ordercast.report.words import count, listing, message_text
from ordercast.trace import Event
from ordercast.trace.own_ids import own_id, shown

__all__ = ["log_of"]

EXCERPT = 80
NAMED_MAX = 6


@dataclass(slots=True)
class _Rows:
    """A process's sends and first deliveries, in its own order."""

    kinds: list[str] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    messages: list[Id] = field(default_factory=list)

    def add(self, event: Event) -> None:
        self.kinds.append(event.kind[0])
        self.positions.append(event.position)
        self.messages.append(event.message)


def log_of(history: History) -> Markup:
    """As JSON that can stand inside a script element."""
    rows: dict[int, _Rows] = {}
    for event in history.trace.events:
        if event.kind == "send":
            counts = history.sends[event.message] is event
        else:
            counts = (
                event.kind == "deliver" and history.delivery(event.message, event.process) is event
            )
        if counts:
            rows.setdefault(event.process, _Rows()).add(event)
    log = [
        [process, "".join(own.kinds), own.positions, *zip(*own.messages, strict=True)]
        for process, own in sorted(rows.items())
    ]
    payloads = history.trace.manifest.extra.get("payloads")
    known = payloads if isinstance(payloads, dict) else {}
    messages = {
        message_text(message): text
        for message in history.sends
        if (text := _about(history, message, known.get(message_text(message))))
    }
    made = msgspec.json.encode({"log": log, "messages": messages}).decode()
    return Markup(made.replace("<", "\\u003c"))  # noqa: S704 - no tag can begin in it


def _about(history: History, message: Id, payload: object) -> str:
    send = history.sends[message]
    own = own_id(history.trace.manifest, message_text(message))
    facts = [] if own is None else [f"in the log {shown(own)}"]
    if send.destinations is not None:
        names = [name_of(history.trace, process) for process in send.destinations]
        if len(names) > NAMED_MAX:
            names = [*names[:NAMED_MAX], f"{len(names) - NAMED_MAX:,} others"]
        facts.append(f"to {listing(names) or 'nobody'}")
    if send.bytes is not None:
        facts.append(f"{count(send.bytes, 'byte')} of payload")
    if send.control_bytes is not None:
        facts.append(f"{count(send.control_bytes, 'byte')} of ordering metadata")
    if isinstance(payload, str):
        facts.append(f"“{payload if len(payload) <= EXCERPT else payload[: EXCERPT - 1] + '…'}”")
    return ", ".join(facts)
