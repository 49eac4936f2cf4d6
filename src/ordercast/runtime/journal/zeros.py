"""What was never written to a file is zero: where that begins, and what a power loss left out."""

from __future__ import annotations

import os
from itertools import pairwise
from typing import BinaryIO

__all__ = ["has_hole", "last_used"]

SECTOR_BYTES = 512
"""The least that a disk writes as a whole; larger sectors are multiples of it."""


def last_used(file: BinaryIO) -> int:
    """Where the zeros begin that end a file."""
    end = file.seek(0, os.SEEK_END)
    while end > 0:
        start = max(0, end - (1 << 18))
        file.seek(start)
        kept = len(file.read(end - start).rstrip(b"\0"))
        if kept:
            return start + kept
        end = start
    return 0


def has_hole(data: bytes, offset: int) -> bool:
    """Whether all that the data has of some sector is zero."""
    first = SECTOR_BYTES - offset % SECTOR_BYTES
    bounds = [0, *range(first, len(data), SECTOR_BYTES), len(data)]
    return any(not data[start:end].strip(b"\0") for start, end in pairwise(bounds))
