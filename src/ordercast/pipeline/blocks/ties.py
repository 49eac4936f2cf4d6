"""Knots of a whole run, from what its blocks tell of theirs.

What leads from a message out of its block and back leads through doors. So all blocks' doors, with
what leads from one to another, are a graph that has the same knots, as far as they have doors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

import numpy as np

from ordercast.pipeline.blocks.found import Tied
from ordercast.pipeline.huge.found import Name
from ordercast.pipeline.kernels.cycles import components
from ordercast.pipeline.kernels.doors import AFTER, BEFORE

__all__ = ["Knots", "tie"]


class Knots(NamedTuple):
    edges: int
    """Neighbours in the chains."""
    through_doors: int
    """How many knots have doors."""
    same: list[list[list[Name]]]
    """For each block the doors that lie in one knot, as far as the block does not know that they
    do: then it must count once more how many of its knots have no door."""


def tie(blocks: Sequence[Tied]) -> Knots:
    names = sorted({name for one in blocks for name in one.doors})
    node = {name: i for i, name in enumerate(names)}
    steps = [(node[one.doors[a]], node[one.doors[b]]) for one in blocks for a, b in one.ways]
    across, edges = _across(blocks, node)
    steps += across
    entries = np.array(steps, np.int32).reshape(-1)
    group = np.zeros(len(names), np.int32)
    many = components.for_rows(len(entries))(
        entries, np.arange(0, len(entries) + 1, 2), group, np.empty_like(group)
    )
    alone = {
        name
        for one in blocks
        for name, knot in zip(one.doors, one.knots, strict=True)
        if knot and not group[node[name]]
    }
    return Knots(
        edges, int(many) + len(alone), [_same(one, node, group.tolist()) for one in blocks]
    )


def _across(blocks: Sequence[Tied], node: dict[Name, int]) -> tuple[list[tuple[int, int]], int]:
    """What comes after the last message of a block in a chain; how many neighbours there are."""
    steps, edges = [], 0
    for p in range(len(blocks[0].ends)):
        last, size = -1, 0
        for one in blocks:
            ends = one.ends[p]
            if ends is None:
                continue
            size += one.sizes[p]
            if last >= 0:
                steps.append((last, node[one.doors[ends[0]]]))
            last = node[one.doors[ends[1]]]
        edges += max(size - 1, 0)
    return steps, edges


def _same(one: Tied, node: dict[Name, int], group: list[int]) -> list[list[Name]]:
    """As long as they are on one side, there is no closed knot between them."""
    together: dict[int, list[int]] = {}
    for i, name in enumerate(one.doors if one.closed else ()):
        if group[node[name]]:
            together.setdefault(group[node[name]], []).append(i)
    return [
        [one.doors[i] for i in those]
        for those in together.values()
        if len({one.knots[i] or -1 - i for i in those}) > 1
        and reduce(or_, (one.sides[i] for i in those)) == BEFORE | AFTER
    ]
