"""What may be tuned."""

from __future__ import annotations

import math
from typing import Any

from msgspec import UNSET, Struct, StructMeta, UnsetType
from msgspec.structs import fields

from ordercast.errors import UsageError
from ordercast.runtime.detector import THRESHOLD_MAX, THRESHOLD_MIN
from ordercast.runtime.frames import TOLD_BYTES_MAX
from ordercast.runtime.journal import KEEP_BYTES, SEGMENT_BYTES
from ordercast.spelling import did_you_mean

__all__ = ["Settings"]

DEAD_AFTER_S = 30.0


class _Named(StructMeta):
    """Whoever asks for a setting that there is not is told which there are; a struct has no other
    place for that."""

    def __call__(self, *values: Any, **named: Any) -> Any:
        for name in named:
            if name not in self.__struct_fields__:
                near = did_you_mean(name, self.__struct_fields__)
                raise UsageError(
                    f"there is no setting {name!r}{near}: choose from "
                    f"{', '.join(self.__struct_fields__)}"
                )
        return super().__call__(*values, **named)


class Settings(Struct, frozen=True, kw_only=True, metaclass=_Named):
    """The defaults suit a local network."""

    window_bytes: int = 4 * 2**20
    """A member's own messages that any other member's application has yet to take."""
    linger_s: float = 0.002
    """How long a message may wait for company when others have just left."""
    heartbeat_s: float = 0.25
    suspect_phi: float = 8.0
    """How sure one must be that a silent member is down (phi of an accrual detector)."""
    dead_after_s: float | UnsetType | None = UNSET
    """A member that is away or takes nothing for so long is given up for good; None: never.
    Unless it is set, half a minute for those who could not come back because they keep no journal,
    and never for those who do."""
    segment_bytes: int = SEGMENT_BYTES
    """How large a file of the journal becomes before the next one begins with a snapshot."""
    keep_bytes: int = KEEP_BYTES
    """Older files of the journal are kept up to this size, for those who replay."""

    excerpt_chars: int = 0
    """How much of each payload the trace shows to people; nothing, unless you say so."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if name != "dead_after_s" or value not in (None, UNSET):
                _check(name, value)
        if not THRESHOLD_MIN <= self.suspect_phi <= THRESHOLD_MAX:
            raise UsageError(
                f"suspect_phi = {self.suspect_phi!r}: choose from {THRESHOLD_MIN:g} to "
                f"{THRESHOLD_MAX:g}"
            )

    @property
    def told_bytes(self) -> int:
        """An application has taken so much: its sender is told, whatever else there is to say.
        The sender's setting counts, and others may have another one."""
        return min(max(self.window_bytes // 4, 1), TOLD_BYTES_MAX)

    def patience_s(self, *, journal: bool) -> float | None:
        """How long an absent member is waited for."""
        if self.dead_after_s is UNSET:
            return None if journal else DEAD_AFTER_S
        return self.dead_after_s


_WHOLE = {field.name for field in fields(Settings) if field.type is int}
_MAY_BE_0 = {"linger_s", "keep_bytes", "excerpt_chars"}


def _check(name: str, value: Any) -> None:
    whole, may_be_0 = name in _WHOLE, name in _MAY_BE_0
    number = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
    if not number or not (value < math.inf and (value > 0 or (may_be_0 and value == 0))):
        kind = "a whole number, " if whole and not number else ""
        least = "0 or more" if may_be_0 else "more than 0"
        less = ", and less than inf" if value == math.inf and not whole else ""
        raise UsageError(f"{name} = {value!r}: choose {kind}{least}{less}")
