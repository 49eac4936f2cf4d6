"""Where random samples start, and how large they are.

They start at the same place each time, so that a change is blamed for what it did and not for what
was drawn. To look elsewhere: `ORDERCAST_SEED=5`, or `ORDERCAST_SEED=any`, which says the number it
drew. They are as large as there is time for in every run; to look longer: `ORDERCAST_LONG=1`.
"""

from __future__ import annotations

import os
from random import SystemRandom

__all__ = ["LONG", "often", "seed"]

LONG = os.environ.get("ORDERCAST_LONG", "0") != "0"


def seed() -> int:
    wanted = os.environ.get("ORDERCAST_SEED", "20261116")
    drawn = SystemRandom().randrange(2**32) if wanted == "any" else int(wanted)
    print(f"ORDERCAST_SEED={drawn}")  # pytest shows it with a failure
    return drawn


def often(short: int, *, long: int) -> int:
    """How often, in every run and in a long one."""
    return long if LONG else short
