"""One event of one process, and the rules that every row must keep."""

from __future__ import annotations

import re
from typing import Annotated, Literal, get_args

from msgspec import Meta, Struct

__all__ = ["MESSAGE_KINDS", "REQUIRED", "Event", "Kind", "flaw", "misfit", "no_kind"]

Kind = Literal["send", "receive", "deliver", "crash", "recover", "join", "leave"]
MESSAGE_KINDS = ("send", "receive", "deliver")
REQUIRED = ("run", "process", "position", "kind", "origin", "number")

Index = Annotated[int, Meta(ge=0, lt=2**31)]
Long = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class Event(Struct, frozen=True):
    """A row of the trace. The field order is the column order."""

    run: str
    process: Index
    position: Long
    kind: Kind
    origin: Index | None = None
    number: Annotated[int, Meta(ge=1, le=2**63 - 1)] | None = None
    destinations: tuple[Index, ...] | None = None
    time_us: Long | None = None
    bytes: Index | None = None
    control_bytes: Index | None = None

    @property
    def message(self) -> tuple[int, int]:
        """The message's id as (origin, number); only for rows that have one."""
        assert self.origin is not None
        assert self.number is not None
        return self.origin, self.number


_OTHER_KIND = re.compile(r"Invalid enum value (.*) - at `\$\.kind`", re.DOTALL)


def no_kind(quoted: str) -> str:
    return f"there is no kind {quoted}, only {', '.join(get_args(Kind))}"


def misfit(error: Exception) -> str:
    """Why something is no event at all, in the words of who tried to decode it; but that one does
    not say which kinds there are."""
    other = _OTHER_KIND.fullmatch(str(error))
    return str(error) if other is None else no_kind(other[1])


def flaw(event: Event) -> str | None:
    """What is wrong with a row whose columns all have the right type; None if nothing is."""
    if event.kind in MESSAGE_KINDS:
        if event.origin is None or event.number is None:
            return f"a {event.kind!r} row needs both origin and number"
        if event.kind == "send" and event.origin != event.process:
            return f"process {event.process} cannot send a message whose origin is {event.origin}"
    elif event.origin is not None or event.number is not None:
        return f"a {event.kind!r} row has no message, so origin and number must be null"
    return None
