"""A line for people, with the words of strangers in it."""

from __future__ import annotations

import sys

from ordercast.readable import readable

__all__ = ["say", "say_aside"]


def say(line: str) -> None:
    """On stdout. What is for programs, JSON above all, is printed as it is."""
    print(readable(line), flush=True)


def say_aside(line: str) -> None:
    """On stderr."""
    print(readable(line), file=sys.stderr, flush=True)
