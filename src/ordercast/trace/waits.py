"""Why messages were held, as a manifest keeps it.

Under `held` a run lists what arrivals waited for (the first so many), and under `waiting` what
was still held when it ended: who, which message, and which messages or processes it waited for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from ordercast.protocols.messages import Held
from ordercast.trace.manifest import Manifest

__all__ = ["HELD_MAX", "Wait", "read_waits", "write_waits"]

HELD_MAX = 1_000
"""How many arrivals a manifest explains: it is one line, and people read it."""


class Wait(Struct, frozen=True):
    process: int
    message: str
    waits_for: tuple[str, ...] = ()
    waits_on: tuple[int, ...] = ()

    def reason(self, names: tuple[str, ...]) -> str:
        """Such as `waiting for 0:1` or `waiting for word from p2`."""
        causes = list(self.waits_for)
        if self.waits_on:
            who = (names[p] if p < len(names) else f"p{p}" for p in self.waits_on)
            causes.append("word from " + ", ".join(who))
        return "waiting for " + ", ".join(causes)


def write_waits(held: Iterable[tuple[int, Held]]) -> list[dict[str, Any]]:
    return [
        {
            "process": process,
            "message": str(message.id),
            "waits_for": [str(id) for id in message.waits_for],
            "waits_on": list(message.waits_on),
        }
        for process, message in held
    ]


def read_waits(manifest: Manifest, key: str) -> list[Wait]:
    """What the manifest says under a key; nothing if it says it in some other way."""
    try:
        return msgspec.convert(manifest.extra.get(key, []), list[Wait])
    except msgspec.ValidationError:
        return []
