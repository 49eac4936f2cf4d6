"""Rows that are sound each for itself, and cannot be true together."""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.index import SEND
from ordercast.pipeline.kernels.kernel import Bools, Ints, kernel
from ordercast.pipeline.kernels.sorting import by_name

__all__ = ["NUMBER_TWICE", "POSITION_TWICE", "TO_STRANGER", "UNKNOWN_PROCESS", "contradictions"]

POSITION_TWICE, NUMBER_TWICE, UNKNOWN_PROCESS, TO_STRANGER = 1, 2, 3, 4


@kernel
def contradictions(
    run_start: Ints,
    size: Ints,
    process: Ints,
    position: Ints,
    kind: Ints,
    number: Ints,
    everyone: Bools,
    dest_start: Ints,
    dest: Ints,
) -> Ints:
    """For each row 0, or what is wrong with it in view of its manifest and the rows before it."""
    wrong = np.zeros(len(process), np.int8)
    for r in range(len(run_start) - 1):
        begin = run_start[r]
        while begin < run_start[r + 1]:
            end = begin
            rising, previous, sends = True, np.int64(-1), 0
            while end < run_start[r + 1] and process[end] == process[begin]:
                if end > begin and position[end] == position[end - 1]:
                    wrong[end] = POSITION_TWICE
                if kind[end] == SEND:
                    sends += 1
                    if number[end] <= previous:
                        rising = False
                    previous = number[end]
                    if size[r] >= 0 and not everyone[end]:
                        for i in range(dest_start[end], dest_start[end + 1]):
                            if dest[i] >= size[r]:
                                wrong[end] = TO_STRANGER
                if size[r] >= 0 and process[end] >= size[r]:
                    wrong[end] = UNKNOWN_PROCESS
                end += 1
            if not rising:
                rows = np.empty(sends, np.int64)
                sends = 0
                for row in range(begin, end):
                    if kind[row] == SEND:
                        rows[sends] = row
                        sends += 1
                rows = by_name(process, number, rows)
                for i in range(1, sends):
                    if number[rows[i]] == number[rows[i - 1]] and wrong[rows[i]] == 0:
                        wrong[rows[i]] = NUMBER_TWICE
            begin = end
    return wrong
