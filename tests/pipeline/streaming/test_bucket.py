"""The operator without Spark, against its definition."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.pipeline.kernels.expiring import expire
from ordercast.pipeline.kernels.heap import EMPTY
from ordercast.pipeline.kernels.held import Messages
from ordercast.pipeline.kernels.holding import _place, arrive
from ordercast.pipeline.streaming import bucket as buckets
from ordercast.pipeline.streaming.bucket import Bucket, Step, new_bucket, take_in, time_out
from ordercast.pipeline.streaming.state import read_counts, read_held, write_counts, write_held

from .builders import ARRAY, FORM, sent, shuffled, split, table
from .oracle import Message, Oracle


def kept(bucket: Bucket) -> Bucket:
    """As the state store gives it back."""
    form = bucket.form
    ledger = read_counts(write_counts(bucket.ledger, form), form)
    return Bucket(form, ledger, read_held(write_held(bucket.held, form), form))


def outcomes(step: Step) -> list[tuple[int, str]]:
    rows = [row for out in step.out for row in out.to_pylist()]
    return [(row["label"], row["outcome"]) for row in rows]


def in_order(found: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    return [one for one in found if one[1] in ("released", "gap")]


def stream(seed: int, *, lost: bool) -> tuple[list[Message], Random, int]:
    random = Random(seed)
    width = random.randint(1, 4)
    messages = sent(
        random, groups=random.randint(1, 3), origins=width, messages=random.randint(1, 40)
    )
    if lost:
        messages = [m for m in messages if random.random() < 0.8] or messages
    twice = messages + random.sample(messages, k=len(messages) // 4)
    return shuffled(random, twice, reach=random.choice((0, 3, 60))), random, width


@given(st.integers(0, 2**32))
@settings(max_examples=100)
def test_what_comes_out_is_what_the_definition_says_whatever_the_batches(seed: int) -> None:
    messages, random, width = stream(seed, lost=random_bool(seed))
    oracle = Oracle()
    for message in messages:
        oracle.arrive(message, 0)
    bucket, found, duplicates = new_bucket(FORM, ARRAY), [], 0
    for batch in split(random, messages):
        step = take_in(kept(bucket), table(batch, width=width), 0)
        bucket, duplicates = step.after, duplicates + step.tally.duplicates
        found += outcomes(step)
    assert found == [(m.label, outcome) for m, outcome in oracle.out]
    assert bucket.held.rows.column("label").to_pylist() == [m.label for m, _ in oracle.held]
    assert len(found) + len(oracle.held) + duplicates == len(messages)


def random_bool(seed: int) -> bool:
    return seed % 2 == 1


@given(st.integers(0, 2**32), st.sampled_from(["release", "aside"]))
@settings(max_examples=120)
def test_what_waits_too_long_goes_as_the_definition_says(seed: int, policy: str) -> None:
    messages, random, width = stream(seed, lost=True)
    form = replace(FORM, wait_ms=3, policy=policy)  # type: ignore[arg-type]
    oracle, bucket = Oracle(policy=policy, wait=3), new_bucket(form, ARRAY)
    for now, batch in enumerate(split(random, messages)):
        step = take_in(kept(bucket), table(batch, width=width), now)
        for message in batch:
            oracle.arrive(message, now)
        # What is no part of the order has no place in it.
        assert sorted(outcomes(step)) == sorted((m.label, word) for m, word in oracle.out)
        assert in_order(outcomes(step)) == in_order((m.label, word) for m, word in oracle.out)
        oracle.out.clear()
        step = time_out(kept(step.after), now)
        oracle.expire(now)
        assert outcomes(step) == [(m.label, word) for m, word in oracle.out]
        oracle.out.clear()
        bucket = step.after
    assert bucket.held.rows.column("label").to_pylist() == [m.label for m, _ in oracle.held]


@given(st.integers(0, 2**32))
@settings(max_examples=100)
def test_stamps_that_make_no_sense_are_released_all_the_same(seed: int) -> None:
    """Random needs: cycles, and numbers that no one ever sends."""
    random = Random(seed)
    messages = [
        Message("g", o, n, tuple((p, random.randrange(6)) for p in range(3) if p != o), 10 * o + n)
        for o in range(3)
        for n in random.sample(range(1, 6), k=random.randrange(6))
    ]
    random.shuffle(messages)
    form = replace(FORM, wait_ms=0, policy="release")
    oracle = Oracle(policy="release")
    for message in messages:
        oracle.arrive(message, 0)
    oracle.expire(0)
    step = take_in(new_bucket(form, ARRAY), table(messages, width=3), 0)
    found = outcomes(step) + outcomes(time_out(step.after, 0))
    assert found == [(m.label, word) for m, word in oracle.out]
    assert len(found) == len(messages)


@pytest.mark.parametrize("policy", ["keep", "release", "aside"])
def test_compiled_it_does_the_same(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    form = FORM if policy == "keep" else replace(FORM, wait_ms=1, policy=policy)  # type: ignore[arg-type]

    def run() -> list[list[tuple[int, str]]]:
        messages, random, width = stream(12, lost=policy != "keep")
        bucket, found = new_bucket(form, ARRAY), []
        for now, batch in enumerate(split(random, messages)):
            step = take_in(bucket, table(batch, width=width), now)
            found.append(outcomes(step))
            if policy != "keep":
                step = time_out(step.after, now)
                found.append(outcomes(step))
            bucket = step.after
        return found

    plain = run()
    assert sum(map(len, plain)) > 10
    assert arrive.for_rows(10**9) is not arrive.plain
    assert expire.for_rows(10**9) is not expire.plain
    monkeypatch.setattr(buckets, "_seen", 10**9)
    assert run() == plain


def positions(steps: Sequence[Step], group: str) -> list[int]:
    rows = [row for step in steps for out in step.out for row in out.to_pylist()]
    return [row["position"] for row in rows if row["room"] == group]


def test_positions_count_the_releases_of_a_group() -> None:
    messages = sent(Random(1), groups=2, origins=2, messages=30)
    first = take_in(new_bucket(FORM, ARRAY), table(messages[:11], width=2), 0)
    second = take_in(kept(first.after), table(messages[11:], width=2), 0)
    for group in ("g0", "g1"):
        mine = positions([first, second], group)
        assert mine == list(range(len(mine)))


def test_a_number_that_nobody_can_count_to_costs_nothing() -> None:
    form = replace(FORM, wait_ms=0, policy="release")
    hostile = Message("g", 0, 10**15, ((1, 10**18),), 1)
    step = take_in(new_bucket(form, ARRAY), table([hostile], width=2), 0)
    [(label, outcome)] = outcomes(time_out(step.after, 0))
    assert (label, outcome) == (1, "gap")
    after = kept(time_out(step.after, 0).after)
    assert len(write_counts(after.ledger, form)) < 4000
    later = Message("g", 0, 10**15 + 1, ((1, 10**18),), 2)
    assert outcomes(take_in(after, table([later], width=2), 0)) == [(2, "released")]


def state_bytes(messages: int) -> int:
    random = Random(3)
    whole = sent(random, groups=5, origins=3, messages=messages)
    bucket = new_bucket(FORM, ARRAY)
    for at in range(0, messages, 500):
        bucket = take_in(bucket, table(whole[at : at + 500], width=3), 0).after
    assert not len(bucket.held.rows)
    return len(write_counts(bucket.ledger, FORM)) + len(write_held(bucket.held, FORM))


def test_state_is_as_large_as_what_is_held_not_as_what_was_seen() -> None:
    assert state_bytes(3_000) == state_bytes(1_000)


def test_groups_that_released_nothing_leave_nothing_behind() -> None:
    """One has a message that is held, the other one that is malformed."""
    rows = [
        {"room": "a", "origin": 0, "number": 2, "stamp": [2], "label": 1},
        {"room": "b", "origin": 9, "number": 1, "stamp": [1], "label": 2},
    ]
    step = take_in(new_bucket(FORM, ARRAY), pa.Table.from_pylist(rows, ARRAY), 0)
    assert (step.tally.held, step.tally.malformed) == (1, 1)
    assert len(step.after.ledger.groups) == len(step.after.ledger.done) == 0


@pytest.mark.parametrize(("slots", "numbers"), [(400, 10), (100, 40), (20, 200), (1, 4000)])
@pytest.mark.parametrize("first", [1, 10**12])
def test_held_rows_lie_apart_however_they_are_numbered(
    slots: int, numbers: int, first: int
) -> None:
    """A look goes on to the next free place: no row of taken ones may be long."""
    slot = np.repeat(np.arange(slots), numbers)
    number = np.tile(np.arange(first, first + numbers), slots)
    none = np.empty(0, np.int64)
    messages = Messages(slot, number, slot, none, none, none)
    held = np.full(8192, EMPTY, np.int64)
    for row in range(len(slot)):
        held[_place(row, messages, held)] = row
    free = np.flatnonzero(np.tile(held, 2) == EMPTY)
    assert np.diff(free).max() <= 20
