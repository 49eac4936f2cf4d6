"""What a hello has to say before its sender is let in."""

from __future__ import annotations

from ordercast.runtime.connection import FinalPeerError, ForeignPeerError
from ordercast.runtime.frames import VERSION, Hello

__all__ = ["check_belonging", "check_continuity"]


def check_belonging(hello: Hello, me: str, group: str, charter: str) -> None:
    """The same version, the same group, the same members and algorithms. Who fails in that says
    nothing of itself that another start could not change, and nothing of us. Both sides read why,
    in the same words: so they name the one that says no."""
    if hello.version != VERSION:
        raise ForeignPeerError(f"{me} speaks version {VERSION}, and not {hello.version}")
    if hello.group != group:
        raise ForeignPeerError(f"{me} belongs to the group {group!r}, and not to {hello.group!r}")
    if hello.charter != charter:
        raise ForeignPeerError(f"{me} runs {charter!r}, and not {hello.charter!r}")


def check_continuity(hello: Hello, name: str, life: str | None) -> None:
    """Whoever we have met before must still know what it knew."""
    if life is not None and hello.life != life:
        raise FinalPeerError(
            f"{name} has come back without what it knew: start it with its journal, "
            "or start the whole group afresh"
        )
