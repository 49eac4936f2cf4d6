"""What is noted of a run: three counts per property, one witness each, and a list of the rest.

counts      property × (checked, violations, doubts); a doubt is what might be a violation, if the
            log has holes or the run has not come to rest
witness     property × the fields below: the smallest violation or, without one, the smallest doubt
hits        violations one by one, the smallest first, as (property, process, row, message)
"""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.kernel import Ints, part

__all__ = [
    "AGREEMENT",
    "AT",
    "CAUSAL",
    "CHECKED",
    "DELIVERED",
    "DOUBTS",
    "EARLIER",
    "FIFO",
    "FIRST",
    "INDIRECT",
    "LATER",
    "LINK",
    "LISTED",
    "MESSAGE",
    "MISSING",
    "NO_CREATION",
    "NO_DUPLICATION",
    "OTHER",
    "PROCESS",
    "ROW",
    "SECOND",
    "SENT",
    "SYNCHRONOUS",
    "TOTAL_ACYCLIC",
    "TOTAL_GAP_FREE",
    "TOTAL_PAIRWISE",
    "UNIFORM_AGREEMENT",
    "VALIDITY",
    "VIOLATIONS",
    "WIDTH",
    "listed",
    "note",
]

# The properties, in the order of `trace.verdicts.PROPERTIES`.
NO_DUPLICATION, NO_CREATION = 0, 1
VALIDITY, AGREEMENT, UNIFORM_AGREEMENT = 2, 3, 4
FIFO, CAUSAL = 5, 6
TOTAL_PAIRWISE, TOTAL_ACYCLIC, TOTAL_GAP_FREE = 7, 8, 9
SYNCHRONOUS = 10

CHECKED, VIOLATIONS, DOUBTS = 0, 1, 2

# The fields of a witness. Processes and messages are indices; -1: not there.
PROCESS = 0
"""Where it shows."""
ROW = 1
"""When, there."""
MESSAGE = 2
"""The message; of an order, the one that should have come first."""
LATER = 3
"""Of an order, the one that should have come second."""
OTHER = 4
"""The process whose deed obliges the first one."""
LINK = 5
"""How MESSAGE came before LATER: SENT, DELIVERED, INDIRECT. Of a crossed pair, whether MESSAGE
came FIRST or SECOND at OTHER."""
MISSING = 6
"""Not done at all, rather than late."""
EARLIER = 7
"""The row of the first delivery, where ROW is the second."""
AT = 8
"""0 for a violation, 1 for a doubt, 2 for nothing yet."""
WIDTH = 9

SENT, DELIVERED, INDIRECT = 1, 2, 3
FIRST, SECOND = 1, 2

LISTED = 100
"""How many violations of one property in one run are listed one by one."""


@part
def note(
    witness: Ints,
    grade: int,
    process: int,
    row: int,
    message: int,
    later: int,
    other: int,
    link: int,
    missing: int,
    earlier: int,
) -> None:
    witness[PROCESS] = process
    witness[ROW] = row
    witness[MESSAGE] = message
    witness[LATER] = later
    witness[OTHER] = other
    witness[LINK] = link
    witness[MISSING] = missing
    witness[EARLIER] = earlier
    witness[AT] = grade


@part
def listed(hits: Ints, count: int, name: int, process: int, row: int, message: int) -> Ints:
    """Adds the `count`-th hit; the list grows as needed."""
    if count == len(hits):
        wider = np.empty((2 * count + 16, 4), np.int64)
        for i in range(count):
            for k in range(4):
                wider[i, k] = hits[i, k]
        hits = wider
    hits[count, 0] = name
    hits[count, 1] = process
    hits[count, 2] = row
    hits[count, 3] = message
    return hits
