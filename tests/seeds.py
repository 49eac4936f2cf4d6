"""Where random samples start.

The same each time, so that a change is blamed for what it did and not for what was drawn. To look
elsewhere: `ORDERCAST_SEED=5`, or `ORDERCAST_SEED=any`, which says the number it drew.
"""

from __future__ import annotations

import os
from random import SystemRandom

__all__ = ["seed"]


def seed() -> int:
    wanted = os.environ.get("ORDERCAST_SEED", "20261116")
    drawn = SystemRandom().randrange(2**32) if wanted == "any" else int(wanted)
    print(f"ORDERCAST_SEED={drawn}")  # pytest shows it with a failure
    return drawn
