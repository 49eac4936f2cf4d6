"""One run that is too large for one task, and no healthy broadcast: cut across all logs.

`huge` splits a run by counting, which works as long as nearly all messages are for everyone, and
in order. Here nothing is asked of the order, nor of whom messages are for; only that they are under
way for a short time, so that few are at any cut. Two passes over the files, and nothing is
shuffled: the first looks how far each process has come every few thousand rows (`sketches`), so
that cuts can be planned (`plan`); the second judges the blocks between them (`block`), each with a
margin on either side.
"""

from __future__ import annotations

from ordercast.pipeline.blocks.judging import judge_blocks
from ordercast.pipeline.blocks.sketches import logs_of

__all__ = ["judge_blocks", "logs_of"]
