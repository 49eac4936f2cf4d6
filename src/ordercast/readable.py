"""What strangers wrote, for a person to read: one place, so that all of us escape alike."""

from __future__ import annotations

import re

__all__ = ["readable"]

_UNREADABLE = re.compile(
    r"[\x00-\x08\x0a-\x1f\x7f-\x9f]"  # would be commands to a terminal, or begin another line
    r"|[\u2028\u2029]"  # the same, for some
    r"|[\u202a-\u202e\u2066-\u2069]"  # turn the direction of whatever stands around them
    r"|[\ud800-\udfff]"  # cannot be printed at all
)


def readable(text: str) -> str:
    """On one line, with whatever a terminal would obey escaped: a name may come from anyone and
    hold anything."""
    if text.isprintable():
        return text
    return _UNREADABLE.sub(lambda found: ascii(found[0])[1:-1], text)
