"""What is asked of a judgement."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ordercast.trace.verdicts import PROPERTIES

__all__ = ["Options"]


@dataclass(frozen=True, slots=True)
class Options:
    properties: Collection[str] = PROPERTIES
    quiesced: bool = False
    """Runs without a manifest had come to rest."""
    skip: bool = False
    """Rows that cannot be used are left out."""
    torn: bool = False
    """Any run may have holes, whatever its manifest says."""
    demanded: Collection[str] | None = None
    """What must hold, whatever was promised."""
    excused: Collection[str] = ()
    """Of that, what need not be known."""
    listed: bool = True
    """Violations are wanted one by one. Of very many runs they are most of what there is to say."""
