"""One run that is too large for one task, split.

Two passes over the files, and nothing is shuffled. The first looks at each piece of each process's
log (`kernels.scan`). What is not as a healthy broadcast leaves it behind, a few messages skipped,
late, repeated, forged or for some members only, is set apart (`apart`), and of the rest a few
counts per piece say which messages are where. The second judges windows (`kernels.window`), each
with the pieces that have something to do with its messages; and what was set apart is compared with
everything by counts (`aside` and what builds on it).

If that is too much, the run is `Unhealthy`: then it is one task's work after all, see `engine`.
"""

from __future__ import annotations

from ordercast.pipeline.huge.attempt import Each, Split
from ordercast.pipeline.huge.groups import Unhealthy
from ordercast.pipeline.huge.splitting import split

__all__ = ["Each", "Split", "Unhealthy", "split"]
