"""A log's own words for what happens, in ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from ordercast.errors import UsageError
from ordercast.trace.event import Kind

__all__ = ["KINDS", "kinds_of"]

KINDS: tuple[str, ...] = get_args(Kind)


def kinds_of(words: dict[str, str], *, among: Sequence[str] = KINDS) -> dict[str, str]:
    """The same, if every word stands for one of these kinds of event, or for nothing ('')."""
    for word, kind in words.items():
        if kind and kind not in among:
            raise UsageError(f"--kinds {word}={kind}: {kind!r} is not one of {', '.join(among)}")
    return words
