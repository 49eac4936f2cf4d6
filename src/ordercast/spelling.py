"""What was meant by a word that nobody knows: one place, so that all of us guess alike."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["did_you_mean"]


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """To be put behind the word: ` (did you mean causal?)`, or nothing if none is near."""
    near = get_close_matches(str(word).lower(), list(known), n=1)
    return f" (did you mean {near[0]}?)" if near else ""
