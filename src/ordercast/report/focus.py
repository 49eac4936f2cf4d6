"""The one spot of a witness to look at, and the few words that stand there.

A witness names a process and messages but not the property, so the spot follows from what
the process did: the delivery that overtook, came twice, or came from nowhere; or the message
that never came.
"""

from __future__ import annotations

from dataclasses import dataclass

from ordercast.report.history import History, Id
from ordercast.report.words import message_text
from ordercast.trace import Event

__all__ = ["Focus", "focus_of"]


@dataclass(frozen=True, slots=True)
class Focus:
    process: int
    message: Id
    event: Event | None
    """The offending delivery; None if the offence is that there is none."""
    note: str


def focus_of(history: History, messages: list[Id], process: int) -> Focus | None:
    if not messages:
        return None
    if len(messages) == 1:
        return _alone(history, messages[0], process)
    delivered = [m for m in messages if history.delivery(m, process) is not None]
    for index, earlier in enumerate(messages):
        for later in messages[index + 1 :]:
            if later in delivered and _overtakes(history, later, earlier, process):
                return _delivered(history, later, process, f"before {message_text(earlier)}")
    if not delivered:
        return Focus(process, messages[0], None, "never delivered")
    # Its own order is in line with the sentence, and somebody else's is not.
    note = f"after {message_text(delivered[-2])}" if len(delivered) > 1 else "delivered here"
    return _delivered(history, delivered[-1], process, note)


def _alone(history: History, message: Id, process: int) -> Focus:
    deliveries = history.copy(message, process).deliveries
    if not deliveries:
        return Focus(process, message, None, "never delivered")
    if len(deliveries) > 1:
        return Focus(process, message, deliveries[1], "delivered again")
    if message not in history.sends:
        return Focus(process, message, deliveries[0], "no send is known")
    if process not in history.addressees(message):
        return Focus(process, message, deliveries[0], "not addressed here")
    return Focus(process, message, deliveries[0], "delivered here")


def _delivered(history: History, message: Id, process: int, note: str) -> Focus:
    return Focus(process, message, history.delivery(message, process), note)


def _overtakes(history: History, later: Id, earlier: Id, process: int) -> bool:
    """Did the process deliver `later` first? A message that is not meant for it cannot be late."""
    first, second = history.delivery(later, process), history.delivery(earlier, process)
    if first is None:
        return False
    if second is not None:
        return first.position < second.position
    return earlier in history.sends and process in history.addressees(earlier)
