"""Writes down what one process did, in its own order. It never looks at a protocol's stamps."""

from __future__ import annotations

from collections.abc import Callable

from ordercast.protocols.messages import Message
from ordercast.trace.event import Event, Kind

__all__ = ["Recorder"]


class Recorder:
    """One process's pen: numbers the events, asks the clock, hands each row to `write`."""

    def __init__(
        self,
        run: str,
        process: int,
        *,
        write: Callable[[Event], None],
        clock_us: Callable[[], int],
    ) -> None:
        self._run = run
        self._process = process
        self._write = write
        self._clock_us = clock_us
        self._position = 0

    def send(self, message: Message, *, control_bytes: int) -> None:
        self._message("send", message, control_bytes)

    def receive(self, message: Message, *, control_bytes: int) -> None:
        self._message("receive", message, control_bytes)

    def deliver(self, message: Message) -> None:
        self._message("deliver", message, None)

    def mark(self, kind: Kind) -> None:
        """An event without a message: crash, recover, join, leave."""
        self._row(Event(self._run, self._process, self._position, kind, time_us=self._clock_us()))

    def _message(self, kind: Kind, message: Message, control_bytes: int | None) -> None:
        self._row(
            Event(
                self._run,
                self._process,
                self._position,
                kind,
                message.id.origin,
                message.id.number,
                message.destinations if kind == "send" else None,
                self._clock_us(),
                len(message.payload),
                control_bytes,
            )
        )

    def _row(self, event: Event) -> None:
        self._position += 1
        self._write(event)
