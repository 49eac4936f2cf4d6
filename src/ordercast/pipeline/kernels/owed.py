"""Validity and the two agreements: who owes which delivery.

What is said of a message is said of all members, of which there may be too many to be looked at all
at once: so of each message a few numbers are kept, until all have been seen.
"""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.findings import (
    AGREEMENT,
    CHECKED,
    DOUBTS,
    LISTED,
    UNIFORM_AGREEMENT,
    VALIDITY,
    VIOLATIONS,
    listed,
    note,
)
from ordercast.pipeline.kernels.index import ADDRESSED, NEVER
from ordercast.pipeline.kernels.kernel import Bools, Ints, part
from ordercast.pipeline.kernels.sorting import smaller

__all__ = ["DEBTS", "list_unmet", "look_for_debts", "obligations", "to_list"]

# What is kept of a message.
ANYONE, SOMEONE_UP, DEBTOR = 0, 1, 2
"""The first member that delivered it; of those up that did; of those up that should have. Or -1."""
DUE, UNMET = 3, 4
"""How many of those up should have delivered it, and did not."""
OWN = 5
"""What its sender should have done: nothing (-1), or what it did (0), or what it did not do (1)."""
DEBTS = 6


@part
def look_for_debts(base: Ints, first: Ints, marks: Ints, up: Bools, low: int, debts: Ints) -> None:
    """At the members from `low` on. Before the first of them, `debts` is -1 all over."""
    members = len(up)
    for o in range(members):
        for m in range(base[o], base[o + 1]):
            anyone, someone_up, debtor = debts[m, ANYONE], debts[m, SOMEONE_UP], debts[m, DEBTOR]
            due, unmet = 0, 0
            for c in range(min(first.shape[1], members - low)):
                p = low + c
                done = first[m, c] != NEVER
                if done and anyone < 0:
                    anyone = p
                if up[p]:
                    if done and someone_up < 0:
                        someone_up = p
                    if marks[m, c] & ADDRESSED:
                        due += 1
                        if not done:
                            unmet += 1
                            if debtor < 0:
                                debtor = p
            debts[m, ANYONE], debts[m, SOMEONE_UP], debts[m, DEBTOR] = anyone, someone_up, debtor
            debts[m, DUE] = max(debts[m, DUE], 0) + due
            debts[m, UNMET] = max(debts[m, UNMET], 0) + unmet
            if low <= o < low + first.shape[1] and marks[m, o - low] & ADDRESSED:
                debts[m, OWN] = 1 if first[m, o - low] == NEVER else 0


@part
def obligations(
    origins: Ints,
    numbers: Ints,
    base: Ints,
    up: Bools,
    debts: Ints,
    settled: bool,
    counts: Ints,
    witness: Ints,
) -> None:
    """What is owed and not done is a violation once the log is whole and the run has come to rest
    (`settled`); before, it is a doubt."""
    unmet_column = VIOLATIONS if settled else DOUBTS
    grade = 0 if settled else 1
    for o in range(len(up)):
        for m in range(base[o], base[o + 1]):
            for name in (VALIDITY, AGREEMENT, UNIFORM_AGREEMENT):
                due, lacking, who = debts[m, DUE], debts[m, UNMET], debts[m, DEBTOR]
                because = o
                if name == VALIDITY:
                    if not up[o]:
                        continue
                    if debts[m, OWN] >= 0:
                        due, lacking, who = 1, debts[m, OWN], o
                else:
                    because = debts[m, SOMEONE_UP] if name == AGREEMENT else debts[m, ANYONE]
                    if because < 0:
                        continue
                counts[name, CHECKED] += due
                counts[name, unmet_column] += lacking
                if lacking > 0:
                    seen = witness[name]
                    if (
                        seen[0] < 0
                        or who < seen[0]
                        or (who == seen[0] and smaller(origins, numbers, m, seen[2]))
                    ):
                        note(seen, grade, who, -1, m, -1, because, 0, 1, -1)


@part
def to_list(counts: Ints, settled: bool) -> Ints:
    """How many of each property are listed one by one."""
    left = np.zeros(len(counts), np.int64)
    for name in (VALIDITY, AGREEMENT, UNIFORM_AGREEMENT):
        left[name] = min(counts[name, VIOLATIONS], LISTED) if settled else 0
    return left


@part
def list_unmet(
    base: Ints,
    first: Ints,
    marks: Ints,
    up: Bools,
    low: int,
    debts: Ints,
    left: Ints,
    hits: Ints,
    many: int,
) -> tuple[Ints, int]:
    """By process and then message, which is not the order that they are counted in; the members
    from `low` on. `left`: how many of each property are still to be listed."""
    members = len(up)
    for p in range(low, min(low + first.shape[1], members)):
        if not up[p] or left[VALIDITY] + left[AGREEMENT] + left[UNIFORM_AGREEMENT] == 0:
            continue
        for o in range(members):
            for m in range(base[o], base[o + 1]):
                if first[m, p - low] != NEVER or not marks[m, p - low] & ADDRESSED:
                    continue
                for name in (VALIDITY, AGREEMENT, UNIFORM_AGREEMENT):
                    if name == VALIDITY:
                        because = up[o] and (p == o or debts[m, OWN] < 0)
                    else:
                        because = debts[m, SOMEONE_UP if name == AGREEMENT else ANYONE] >= 0
                    if because and left[name] > 0:
                        hits = listed(hits, many, name, p, -1, m)
                        many += 1
                        left[name] -= 1
    return hits, many
