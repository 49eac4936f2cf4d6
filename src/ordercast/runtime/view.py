"""Who is in a group, and how they are."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["View"]


class View(Struct, frozen=True):
    """The group as it looks from here."""

    me: str
    members: tuple[str, ...]
    present: tuple[str, ...]
    """Connected with us right now, and ourselves."""
    suspected: tuple[str, ...]
    """Thought to be down; a suspicion may be withdrawn."""
    dead: tuple[str, ...]
    """Given up for good."""
    leader: str | None
    """Whom everyone's order depends on right now, as far as is known here; None if on nobody."""
