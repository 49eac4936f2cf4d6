"""What a task does for one block."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from ordercast.pipeline.blocks import inside
from ordercast.pipeline.blocks.block import LATE, Block
from ordercast.pipeline.blocks.found import Asked, Found
from ordercast.pipeline.blocks.plan import Work
from ordercast.pipeline.blocks.view import Apart
from ordercast.pipeline.huge.groups import Unhealthy
from ordercast.pipeline.kernels.index import NEVER
from ordercast.pipeline.kernels.kernel import Bools

__all__ = ["answer_block", "judge_block"]


def judge_block(
    work: Work, apart: Apart, up: Bools, properties: Collection[str], *, settled: bool
) -> Found:
    block = Block(work, apart)
    strange = block.strange()
    if strange and apart.seen:
        raise Unhealthy(LATE)
    if strange:
        return Found(reads=block.reads, strange=strange)
    found = inside.judge(block.view, up, properties, settled=settled)
    knotted = [name for name in inside.KNOTTED if name in properties]
    tied = {name: inside.tied(block.view, name, []) for name in knotted}
    marked, lacking = inside.lacking(block.view, properties) if apart.seen else ([], [])
    return msgspec.structs.replace(
        found, tied=tied, marked=marked, lacking=lacking, reads=block.reads
    )


def answer_block(work: Work, apart: Apart, asked: Asked) -> Found:
    view = Block(work, apart, chains_only=True).view
    tied = {
        name: inside.tied(view, name, asked.same.get(name, []), with_cycle=name in asked.cycles)
        for name in {*asked.same, *asked.cycles}
    }
    delivered = False
    if asked.delivered is not None:
        process, message = asked.delivered
        delivered = bool(view.first[view.index[message], process] != NEVER)
    return Found(tied=tied, delivered=delivered)
