"""What may be tuned."""

from __future__ import annotations

import math
from typing import Any

from msgspec import UNSET, Struct, StructMeta, UnsetType

from ordercast.errors import UsageError
from ordercast.runtime.detector import THRESHOLD_MAX, THRESHOLD_MIN
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
        for name in ("window_bytes", "heartbeat_s", "suspect_phi", "dead_after_s", "segment_bytes"):
            value = getattr(self, name)
            if value not in (None, UNSET) and not (_is_number(value) and 0 < value < math.inf):
                raise UsageError(f"{name} = {value!r}: choose more than 0{_and_less(value)}")
        if not THRESHOLD_MIN <= self.suspect_phi <= THRESHOLD_MAX:
            raise UsageError(
                f"suspect_phi = {self.suspect_phi!r}: choose from {THRESHOLD_MIN:g} to "
                f"{THRESHOLD_MAX:g}"
            )
        for name in ("linger_s", "keep_bytes", "excerpt_chars"):
            value = getattr(self, name)
            if not (_is_number(value) and 0 <= value < math.inf):
                raise UsageError(f"{name} = {value!r}: choose 0 or more{_and_less(value)}")

    @property
    def told_bytes(self) -> int:
        """An application has taken so much: its sender is told, whatever else there is to say."""
        return max(self.window_bytes // 4, 1)

    def patience_s(self, *, journal: bool) -> float | None:
        """How long an absent member is waited for."""
        if self.dead_after_s is UNSET:
            return None if journal else DEAD_AFTER_S
        return self.dead_after_s


def _and_less(value: object) -> str:
    return ", and less than inf" if value == math.inf else ""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
