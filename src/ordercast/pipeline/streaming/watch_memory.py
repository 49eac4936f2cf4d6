"""What a watch remembers of one run from batch to batch, beside the rows that it keeps."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct, field

from ordercast.errors import CheckpointError
from ordercast.pipeline.streaming.watch_ledger import Ledger
from ordercast.trace.manifest import Manifest
from ordercast.trace.runs import parse_id
from ordercast.trace.verdicts import Verdict, Witness

__all__ = ["Carried", "Memory"]

VERSION = 2
"""Of what is stored. Another one cannot be gone on with."""


class Carried(Struct):
    """What was found in rows that are no longer kept."""

    checked: dict[str, int] = {}
    violations: dict[str, int] = {}
    witnesses: dict[str, Witness] = {}
    """The smallest violation so far."""
    places: dict[str, int] = {}
    """The position of the row that showed it, if one did."""
    lengths: tuple[list[int], list[int], list[int]] | None = None
    """`watch_log.Lengths`"""

    def note(self, name: str, witness: Witness, place: int | None) -> None:
        """in: place: the position of the row that shows it, if one does"""
        if self.smallest(name, witness, place) is witness:
            self.witnesses[name] = witness
            self.places.pop(name, None)
            if place is not None:
                self.places[name] = place

    def smallest(self, name: str, new: Witness, place: int | None) -> Witness:
        """Of this violation and the one from before: by process, then position; of pairs and
        cycles, by names. If they are the same, this one: more may be known of it."""
        old = self.witnesses.get(name)
        if old is None:
            return new
        if name == "total_pairwise":
            return min(new, old, key=lambda one: _names(one.messages))
        if name in ("total_acyclic", "synchronous"):
            return min(new, old, key=lambda one: (len(one.messages), _names(one.messages)))
        if new.process != old.process:
            return min(new, old, key=lambda one: one.process)
        if new.messages[-1] == old.messages[-1]:
            return new
        # Without a place: what was found before comes before.
        return new if place is not None and place < self.places.get(name, -1) else old


def _names(messages: Iterable[str]) -> list[tuple[int, int]]:
    return [parse_id(message) for message in messages]


class Memory(Struct):
    version: int = VERSION
    manifest: str | None = None
    """The latest line that the run's manifest had."""
    next: dict[int, int] = {}
    """By process, the position up to which its log is here without a gap."""
    events: int = 0
    """So far, as are these."""
    messages: int = 0
    deliveries: int = 0
    repeated: int = 0
    """Rows at a position that was taken."""
    left: int = 0
    """Rows that were left when some were last dropped."""
    seen_at: float | None = None
    """When there was last anything new."""
    carried: Carried = field(default_factory=Carried)
    ledger: Ledger = field(default_factory=Ledger)
    windowed: dict[str, int] = {}
    """By property, after how many events it began to be judged in windows only."""
    standing: dict[str, Verdict] = {}
    """By property, the verdict as of now."""
    flaws: list[str] = []
    """What was wrong with the run's rows; each is said once."""
    over: bool = False
    """The run has come to rest and was judged for good."""

    def encode(self) -> bytes:
        return msgspec.msgpack.encode(self)

    @classmethod
    def decode(cls, stored: bytes) -> Memory:
        try:
            if msgspec.msgpack.decode(stored, type=_Versioned).version == VERSION:
                return msgspec.msgpack.decode(stored, type=cls)
        except msgspec.DecodeError:
            pass
        raise CheckpointError(
            "the checkpoint was written by another version of ordercast: start with a new one"
        )

    def described(self) -> Manifest | None:
        if self.manifest is None:
            return None
        return Manifest.from_json(self.manifest, where="the manifest of a watched run")


class _Versioned(Struct):
    version: int
