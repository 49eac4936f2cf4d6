"""One run that is too large for one task, split.

Two passes over the files, and nothing is shuffled. The first looks at each piece of each process's
log (`kernels.scan`): if all of them are what a healthy broadcast leaves behind, then a few counts
per piece say which messages are where, and settle most properties at once. The second judges
windows (`kernels.window`), each with the pieces that have something to do with its messages.

Whatever does not fit (holes, omissions, swaps, forgeries, messages for some members only) makes the
run `Unhealthy`: then it is one task's work after all, see `engine`.
"""

from __future__ import annotations

from ordercast.pipeline.huge.segments import Segment, Unhealthy, scan_pieces
from ordercast.pipeline.huge.tally import WINDOWED, Tally, Window, windows
from ordercast.pipeline.huge.window import Found, Gap, Pair, judge_window

__all__ = [
    "WINDOWED",
    "Found",
    "Gap",
    "Pair",
    "Segment",
    "Tally",
    "Unhealthy",
    "Window",
    "judge_window",
    "scan_pieces",
    "windows",
]
