"""The operator itself, for one bucket of groups and without Spark: rows in, rows in order out.

Messages are taken in the order in which they came, one at a time; each is released as soon as it
may be, and then whoever waited for it, the first come first. So what comes out depends on the order
of arrival alone, never on where batches begin and end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ordercast.pipeline.kernels.expiring import expire, no_losses
from ordercast.pipeline.kernels.held import DUPLICATE, EXPIRED, GAP, HELD, Fates
from ordercast.pipeline.kernels.holding import arrive, may_go, waits, waits_in
from ordercast.pipeline.kernels.kernel import Ints, Kernel
from ordercast.pipeline.streaming.form import Form
from ordercast.pipeline.streaming.leaving import beside, leaving
from ordercast.pipeline.streaming.ledger import Ledger, Numbered, intervals, new_ledger
from ordercast.pipeline.streaming.messages import Parsed, parse

__all__ = [
    "Bucket",
    "Held",
    "Step",
    "Tally",
    "lacking",
    "new_bucket",
    "oldest_of",
    "take_in",
    "time_out",
]


class Held(NamedTuple):
    """Messages that wait, in the order in which they came."""

    rows: pa.Table
    arrived_ms: Ints


class Tally(NamedTuple):
    """What has become of the rows of one step, and what is held after it."""

    rows: int = 0
    released: int = 0
    gaps: int = 0
    late: int = 0
    expired: int = 0
    malformed: int = 0
    duplicates: int = 0
    held: int = 0
    oldest_ms: int | None = None
    """When the oldest of those that are held came."""
    oldest: str | None = None
    """Which one it is, and what it waits for."""


@dataclass(frozen=True)
class Bucket:
    form: Form
    ledger: Ledger
    held: Held


class Step(NamedTuple):
    after: Bucket
    out: list[pa.Table]
    """The rows that left, with `form.ADDED`."""
    tally: Tally


def new_bucket(form: Form, schema: pa.Schema) -> Bucket:
    nothing = Held(schema.empty_table(), np.empty(0, np.int64))
    return Bucket(form, new_ledger(form, schema), nothing)


def lacking(bucket: Bucket) -> list[str]:
    """What each held message waits for."""
    parsed, _ = parse(bucket.held.rows, bucket.form)
    numbered, rows = bucket.ledger.number(parsed, bucket.form), len(parsed.rows)
    at, key = np.full(rows, -1, np.int64), np.zeros(rows, np.int64)
    words = []
    for row in range(rows):
        may_go(row, numbered.messages, numbered.done, at, key)
        slot = waits_in(row, numbered.messages, at)
        words.append(numbered.name(slot, int(numbered.done[slot]) + 1, int(key[row])))
    return words


def take_in(bucket: Bucket, new: pa.Table, now_ms: int) -> Step:
    """What the rows of one batch lead to."""
    form, held = bucket.form, bucket.held
    old = len(held.rows)  # none of which is malformed: they were looked at when they came
    parsed, malformed = parse(pa.concat_tables([held.rows, new]).combine_chunks(), form)
    numbered = bucket.ledger.number(parsed, form)
    messages, before = numbered.messages, numbered.done.copy()
    fates = _fates(len(parsed.rows))
    ground, room = numbered.ground(), waits(len(parsed.rows), len(before))
    _form_for(arrive, len(parsed.rows))(old, messages, ground, room, fates)

    late = _late(numbered, fates, before)
    gone = fates.order[: int(fates.gone[0])]
    out = [leaving(parsed.rows, gone, fates, {})]
    if late:
        words = [f"{numbered.name(*row)} was given up before it came" for row in late.values()]
        out.append(beside(parsed.rows.take(list(late)), "late", words))
    out += [beside(some.rows, "malformed", some.why) for some in malformed]
    arrived = np.concatenate((held.arrived_ms, np.full(len(parsed.rows) - old, now_ms)))
    after = _after(bucket, numbered, parsed, fates, arrived)
    dropped = int((fates.outcome == DUPLICATE).sum()) - len(late)
    tally = Tally(
        rows=len(new), released=len(gone), late=len(late), duplicates=dropped,
        malformed=sum(len(some.why) for some in malformed),
    )  # fmt: skip
    return Step(after, [table for table in out if len(table)], _with_held(tally, after))


def time_out(bucket: Bucket, now_ms: int) -> Step:
    """What the policy leads to, for messages that have waited long enough by now."""
    form, held = bucket.form, bucket.held
    parsed, _ = parse(held.rows, form)
    numbered = bucket.ledger.number(parsed, form)
    messages, rows = numbered.messages, len(parsed.rows)
    fates, losses = _fates(rows), no_losses(rows, len(messages.entry_slot))
    ground, room = numbered.ground(sorted_too=True), waits(rows, len(numbered.done))
    assert form.wait_ms is not None
    due = held.arrived_ms + form.wait_ms <= now_ms
    aside = form.policy == "aside"
    _form_for(expire, rows)(aside, due, messages, ground, room, fates, losses)

    given_up = losses.missing[: int(losses.found[0])].tolist()
    lost = intervals(given_up).without(numbered.settled)
    numbered.missing = numbered.missing.with_more(lost.rows())
    gone = fates.order[: int(fates.gone[0])]
    set_aside = gone[fates.outcome[gone] == EXPIRED]
    numbered.settled = numbered.settled.with_more(
        [
            (int(messages.slot[r]), int(messages.number[r]), int(messages.number[r]))
            for r in set_aside
        ]
    )
    verb = {GAP: "released without", EXPIRED: "waited for"}
    why = {
        int(row): f"{verb[int(fates.outcome[row])]} {numbered.name(*losses.lack[row].tolist())}"
        for row in gone
        if fates.outcome[row] in verb
    }
    after = _after(bucket, numbered, parsed, fates, held.arrived_ms)
    gaps = int((fates.outcome == GAP).sum())
    tally = Tally(released=len(gone) - len(set_aside) - gaps, gaps=gaps, expired=len(set_aside))
    out = [leaving(parsed.rows, gone, fates, why)] if len(gone) else []
    return Step(after, out, _with_held(tally, after))


_seen = 0
"""Rows that this process has been through: a stream comes in small batches."""
_YET_TO_COME = 10
"""For each row that came, so many more will: a stream does not end."""


def _form_for(kernel: Kernel[..., None], rows: int) -> Any:
    global _seen
    _seen += rows
    return kernel.for_rows(_YET_TO_COME * _seen)


def _fates(rows: int) -> Fates:
    return Fates(
        np.full(rows, HELD, np.int64),
        np.full(rows, -1, np.int64),
        np.empty(rows, np.int64),
        np.zeros(1, np.int64),
    )


def _late(numbered: Numbered, fates: Fates, before: Ints) -> dict[int, tuple[int, int, int]]:
    """Rows that would be duplicates, were they not among what was given up. Each is late once."""
    if not len(numbered.missing.slot):
        return {}
    messages = numbered.messages
    old = (fates.outcome == DUPLICATE) & (messages.number <= before[messages.slot])
    found: dict[tuple[int, int, int], int] = {}
    for row in np.flatnonzero(old).tolist():
        slot, number = int(messages.slot[row]), int(messages.number[row])
        if numbered.missing.find(slot, number):
            found.setdefault((slot, number, number), row)
    if found:
        numbered.missing = numbered.missing.without(intervals([list(one) for one in found]))
    return {row: name for name, row in found.items()}


def _after(
    bucket: Bucket, numbered: Numbered, parsed: Parsed, fates: Fates, arrived: Ints
) -> Bucket:
    stay = np.flatnonzero(fates.outcome == HELD)
    before = len(bucket.held.rows)
    if len(stay) == before and (not before or stay[-1] == before - 1):
        held = bucket.held  # as it was: it need not be written again
    else:
        held = Held(parsed.rows.take(stay).combine_chunks(), arrived[stay])
    ledger = numbered.kept(timer_ms=bucket.ledger.timer_ms)
    return replace(bucket, ledger=ledger, held=held)


def oldest_of(bucket: Bucket) -> tuple[int, int | None, str | None]:
    """How many it holds, since when the oldest, and what that one waits for."""
    held = bucket.held
    if not len(held.rows):
        return 0, None, None
    first = Held(held.rows.slice(0, 1), held.arrived_ms[:1])
    oldest, _ = parse(first.rows, bucket.form)
    group = ", ".join(str(oldest.rows.column(name)[0].as_py()) for name in bucket.form.group)
    lack = lacking(replace(bucket, held=first))[0]
    words = f"{oldest.origin[0].as_py()}:{oldest.number[0]} of {group} waits for {lack}"
    return len(held.rows), int(first.arrived_ms[0]), words


def _with_held(tally: Tally, after: Bucket) -> Tally:
    held, oldest_ms, oldest = oldest_of(after)
    return tally._replace(held=held, oldest_ms=oldest_ms, oldest=oldest)
