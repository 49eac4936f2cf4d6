"""The receiving end of one simulated link: drops repetitions and, if asked to, restores order.

Together with the sender's retransmission this makes the perfect link that protocols assume."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

__all__ = ["Letter", "Link"]


class Letter(Struct, frozen=True, gc=False):
    """A packet on its way."""

    source: int
    to: int
    sequence: int
    packet: Any
    size: int
    """Bytes on the wire."""


class Link:
    def __init__(self, *, fifo: bool) -> None:
        self.fifo = fifo
        self.sent = 0
        self.contiguous = 0
        """Every sequence number up to this one has come in."""
        self.ahead: dict[int, Letter] = {}

    def next_sequence(self) -> int:
        self.sent += 1
        return self.sent

    def arrived(self, letter: Letter) -> list[Letter]:
        """What may be handed over now that this letter is here: none, it, or a whole row."""
        if letter.sequence <= self.contiguous or letter.sequence in self.ahead:
            return []
        self.ahead[letter.sequence] = letter
        row = []
        while (following := self.ahead.pop(self.contiguous + 1, None)) is not None:
            self.contiguous += 1
            row.append(following)
        return row if self.fifo else [letter]
