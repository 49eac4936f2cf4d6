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

__all__ = ["Carried", "Memory", "better"]

VERSION = 1
"""Of what is stored. Another one cannot be gone on with."""


class Carried(Struct):
    """What was found in rows that are no longer kept."""

    checked: dict[str, int] = {}
    violations: dict[str, int] = {}
    witnesses: dict[str, Witness] = {}
    """The smallest violation so far."""
    lengths: tuple[list[int], list[int], list[int]] | None = None
    """`watch_log.Lengths`"""

    def note(self, name: str, witness: Witness | None) -> None:
        if (smaller := better(name, self.witnesses.get(name), witness)) is not None:
            self.witnesses[name] = smaller


def better(name: str, old: Witness | None, new: Witness | None) -> Witness | None:
    """The smaller one: by process, then position; of pairs and cycles, by names."""
    if old is None or new is None:
        return old or new
    if name == "total_pairwise":
        return min(new, old, key=lambda one: _names(one.messages))
    if name in ("total_acyclic", "synchronous"):
        return min(new, old, key=lambda one: (len(one.messages), _names(one.messages)))
    if new.process == old.process and new.messages[-1] == old.messages[-1]:
        return new  # the same, and more may be known of it
    return new if new.process < old.process else old  # what was found before comes before


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
