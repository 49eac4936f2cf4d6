"""What somebody who looks on sees of a live run: frozen, so that any thread may have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

from msgspec import Struct

from ordercast.runtime.control import Moment, Sample
from ordercast.runtime.faults import Happening
from ordercast.runtime.holds import Hold

if TYPE_CHECKING:
    from ordercast.runtime.hands import Hands

__all__ = ["Audience", "Ill", "Look", "MemberLook", "State", "Trouble", "look_at"]

Ill = Literal["paused", "cut off", "down"]
State = Literal["running", "paused", "down", "starting"]


class Audience(Protocol):
    """Whoever looks on; called in the launcher's loop."""

    def begin(self, hands: Hands) -> None: ...

    def see(self, look: Look) -> None:
        """Several times a second."""


class Trouble(Struct, frozen=True):
    """Something that is, or was, the matter with a member."""

    process: int
    ill: Ill
    since_us: int
    until_us: int | None = None
    """None: still."""


class MemberLook(Struct, frozen=True, kw_only=True):
    """One member, by its latest word; counts of one that is down are those of its last one."""

    process: int
    state: State
    cut: bool
    """Nothing reaches it, and nothing that it sends reaches anyone."""
    suspected_by: tuple[int, ...]
    sent: int = 0
    delivered: int = 0
    held: int = 0
    bundles: int = 0
    stable: int = 0
    holds: tuple[Hold, ...] = ()


class Look(Struct, frozen=True, kw_only=True):
    time_us: int
    finishing: bool
    """Nobody sends any more: the group is coming to rest."""
    members: tuple[MemberLook, ...]
    moments: tuple[tuple[int, Moment], ...]
    """What has happened since the last look, and to whom."""
    every: int
    """There are only moments of messages whose number is a multiple of this."""
    troubles: tuple[Trouble, ...]
    """Those of now, and the last ones that are over."""
    happened: tuple[Happening, ...]
    """Everything, from the beginning."""


def look_at(
    process: int, sample: Sample | None, *, state: State, cut: bool, suspected_by: tuple[int, ...]
) -> MemberLook:
    """`sample` is the last word of this member, if it has ever said anything."""
    if sample is None:
        return MemberLook(process=process, state=state, cut=cut, suspected_by=suspected_by)
    down = state in ("down", "starting")
    return MemberLook(
        process=process,
        state=state,
        cut=cut,
        suspected_by=suspected_by,
        sent=sample.sent,
        delivered=sample.delivered,
        held=0 if down else sample.held,
        bundles=sample.bundles,
        stable=sample.stable,
        holds=() if down else sample.holds,
    )
