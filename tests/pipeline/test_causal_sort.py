"""Batch causal order against its definition: shuffled, cut small, with stamps that are wrong."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import groupby
from operator import gt
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from ordercast.errors import TraceError, UsageError
from ordercast.pipeline import causal_sort
from ordercast.pipeline.sorting.check import carried, look, summed
from ordercast.pipeline.sorting.columns import Columns

from .stamped import Message, as_rows, breaks, contradicts, history

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.usefixtures("compiled")

TYPES = {
    False: "group int, origin int, number bigint, stamp array<bigint>, text string",
    True: "group int, origin string, number bigint, stamp map<string, bigint>, text string",
}


def frame_of(
    spark: SparkSession, messages: Iterable[Message], *, named: bool = False, parts: int = 3
) -> DataFrame:
    rows = as_rows(messages, named=named)
    return spark.createDataFrame(rows, TYPES[named]).repartition(parts)


def histories(seed: int, groups: int, count: int = 25) -> list[Message]:
    rng = random.Random(seed)
    sizes = [rng.randint(1, 5) for _ in range(groups)]
    found = [one for group, n in enumerate(sizes) for one in history(rng, group, n, count)]
    rng.shuffle(found)
    return found


def in_order(frame: DataFrame, messages: Iterable[Message]) -> list[Message]:
    """The messages as the rows lie, partition after partition."""
    known = {(m.group, m.origin, m.number): m for m in messages}
    rows = frame.collect()
    assert [row["position"] for row in rows] == list(range(len(rows)))
    return [known[row["group"], int(str(row["origin"]).strip("p")), row["number"]] for row in rows]


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("rows_each", [40, 10_000])
def test_every_message_comes_after_all_that_it_knows(
    spark: SparkSession, named: bool, rows_each: int
) -> None:
    messages = histories(seed=rows_each + named, groups=12)
    given = frame_of(spark, messages, named=named)
    ordered = causal_sort(given, group="group", rows_each=rows_each)
    found = in_order(ordered, messages)
    assert sorted(found) == sorted(messages)
    assert not breaks(found)
    assert len([group for group, _ in groupby(found, key=lambda one: one.group)]) == 12


def test_a_group_that_is_longer_than_a_part(spark: SparkSession) -> None:
    messages = histories(seed=3, groups=1, count=60)
    ordered = causal_sort(frame_of(spark, messages), rows_each=6)
    assert ordered.rdd.getNumPartitions() == 10
    assert not breaks(in_order(ordered, messages))


def test_the_same_messages_give_the_same_parts(spark: SparkSession) -> None:
    messages = histories(seed=5, groups=2, count=20)

    def parts(shuffled: list[Message], count: int) -> list[list[Any]]:
        given = frame_of(spark, shuffled, parts=count)
        return causal_sort(given, group="group", rows_each=9, check=False).rdd.glom().collect()

    assert parts(messages, 1) == parts(sorted(messages), 7)


def broken(messages: list[Message], rng: random.Random) -> list[Message]:
    """The same, with one entry of one stamp that says something else."""
    victim = rng.randrange(len(messages))
    message = messages[victim]
    others = [one for one in range(len(message.stamp)) if one != message.origin]
    if not others:
        return messages
    place, stamp = rng.choice(others), list(message.stamp)
    stamp[place] = max(0, stamp[place] + rng.choice([-3, -2, -1, 1, 2, 9]))
    return [*messages[:victim], message._replace(stamp=tuple(stamp)), *messages[victim + 1 :]]


def looked_at(ordered: list[Message], size: int, *, named: bool) -> tuple[int, bool]:
    """What the tasks of a check say of parts of that size, without Spark: how many are late, and
    whether a stamp is wrong."""
    columns = Columns(group="group")
    rows = as_rows(ordered, named=named)
    stamp = pa.map_(pa.string(), pa.int64()) if named else pa.list_(pa.int64())
    origin = pa.string() if named else pa.int32()
    types = {"group": pa.int32(), "origin": origin, "number": pa.int64(), "stamp": stamp}
    kept = [{name: row[name] for name in types} for row in rows]
    whole = pa.Table.from_pylist(kept, pa.schema(types))
    parts = [whole.slice(at, size) for at in range(0, len(whole), size)]
    sums = [row for i, one in enumerate(parts) for row in told(summed(i, one, columns=columns))]
    known = carried(sums)
    found = [
        row
        for i, one in enumerate(parts)
        for row in told(look(i, one, columns=columns, known=known))
    ]
    by_name = {(m.group, f"p{m.origin}" if named else str(m.origin), m.number): m for m in ordered}
    asked = [
        (by_name.get((row["group"], row["_causal_seen_origin"], row["_causal_seen_number"])), row)
        for row in found
        if row["_causal_kind"] == "ask"
    ]
    wrong = any(
        any(map(gt, seen.stamp, by_name[row["group"], str(row["origin"]), row["number"]].stamp))
        for seen, row in asked
        if seen is not None
    )
    late = sum(row["_causal_count"] for row in found if row["_causal_kind"] == "late")
    return late, wrong or any(row["_causal_kind"] == "wrong" for row in found)


def told(batches: Iterable[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("named", [False, True])
def test_wrong_stamps_are_found_and_no_others(named: bool) -> None:
    """Two groups, the second one with a stamp that may be wrong, however they are cut."""
    rng, outcomes = random.Random(17 + named), set()
    for _ in range(80):
        size = rng.randint(2, 4)
        messages = history(rng, 0, 3, 9) + broken(history(rng, 1, size, 30), rng)
        if rng.random() < 0.3:
            messages = rng.sample(messages, 25)  # a data set need not be whole
        ordered = sorted(messages, key=lambda m: (m.group, sum(m.stamp), m.origin, m.number))
        late, wrong = breaks(ordered), contradicts(messages)
        for cut in (1, 4, 11, 100):
            found = looked_at(ordered, cut, named=named)
            # Who comes too late may be looked for in vain; that it does is what is told.
            assert found == (len(late), wrong) or (late and found[0] == len(late))
        outcomes.add((bool(late), wrong))
    assert len(outcomes) >= 3  # late, contradictory only, and broken where nobody can tell


@pytest.mark.parametrize("cut", [1, 2, 100])
def test_a_stamp_is_wrong_though_the_message_before_it_is_not_there(cut: int) -> None:
    """0:3 forgets what 0:1 knew, and 0:2, which would show it, is missing."""
    ordered = [
        Message(0, 2, 1, (0, 0, 1)),
        Message(0, 1, 1, (0, 1, 1)),
        Message(0, 0, 1, (1, 1, 1)),
        Message(0, 0, 3, (3, 1, 0)),
    ]
    assert looked_at(ordered, cut, named=False) == (0, True)


def test_the_sentence_names_who_contradicts_whom(spark: SparkSession) -> None:
    """1:1 answers 0:2, and forgets that 0:2 came after 2:1."""
    messages = [
        Message(0, 2, 1, (0, 0, 1)),
        Message(0, 0, 1, (1, 0, 0)),
        Message(0, 0, 2, (2, 0, 1)),
        Message(0, 1, 1, (2, 1, 0)),
    ]
    for rows_each in (1, 100):
        with pytest.raises(
            TraceError, match="1:1 knows 0:2, which knew 2:1, but it knows only 2:0"
        ):
            causal_sort(frame_of(spark, messages), rows_each=rows_each)


def test_the_sentence_names_who_is_late(spark: SparkSession) -> None:
    messages = [Message(0, 0, 1, (1, 1)), Message(0, 1, 1, (9, 1))]
    for rows_each in (1, 100):
        with pytest.raises(TraceError, match="1:1 comes after 0:1, whose stamp knows it already"):
            causal_sort(frame_of(spark, messages), rows_each=rows_each)


def test_a_message_that_is_there_twice(spark: SparkSession) -> None:
    messages = [Message(0, 0, 1, (1, 0)), Message(0, 0, 1, (1, 4)), Message(0, 1, 1, (0, 1))]
    for rows_each in (1, 100):
        with pytest.raises(TraceError, match="message 0:1 is there more than once"):
            causal_sort(frame_of(spark, messages), rows_each=rows_each)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ((0, None, [1]), "message 0:None: its number is null"),
        ((0, 0, [1]), "message 0:0: numbers count from 1, and its own is 0"),
        ((1, 1, [1]), "its stamp has 1 entries, from 0 on, and none for origin 1"),
        ((-1, 1, [1]), "none for origin -1"),
        ((0, 1, [1, -2]), "an entry of its stamp is negative"),
        ((0, 1, [1, None]), "an entry of its stamp is null"),
        ((0, 1, [1, 1 << 60]), "an entry of its stamp is too large"),
        ((0, 1, None), "its stamp is null"),
        ((0, 3, [7, 0]), "its own entry counts something else than messages: it is 7"),
    ],
)
def test_rows_that_cannot_be_used(spark: SparkSession, row: Any, words: str) -> None:
    types = "origin int, number bigint, stamp array<bigint>"
    given = spark.createDataFrame([(0, 9, [9, 0]), row], types)
    with pytest.raises(TraceError, match=words):
        causal_sort(given)


@pytest.mark.parametrize(
    ("types", "words"),
    [
        (
            "origin int, number bigint, clock array<bigint>",
            "no column 'stamp' for stamp: it has origin",
        ),
        ("origin int, number string, stamp array<bigint>", "'number' is of type string"),
        ("origin string, number int, stamp array<bigint>", "'origin' is of type string"),
        ("origin int, number int, stamp string", "'stamp' is of type string"),
        ("origin int, number int, stamp array<int>, position int", "a column 'position' already"),
    ],
)
def test_columns_that_cannot_be_used(spark: SparkSession, types: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        causal_sort(spark.createDataFrame([], types))


def test_columns_may_have_any_names(spark: SparkSession) -> None:
    """Also those of our own, names with dots, and some that differ only in case."""
    types = "`page.id` int, place int, count bigint, stamp array<bigint>, Stamp int, Position int"
    rows = [(0, 1, 1, [1, 1], 4, 5), (0, 0, 1, [1, 0], 4, 5)]
    given = spark.createDataFrame(rows, types)
    named = {"group": "page.id", "origin": "place", "number": "count"}
    ordered = causal_sort(given, **named, rows_each=1, check=False)
    assert [tuple(row) for row in ordered.collect()] == [(*rows[1], 0), (*rows[0], 1)]
    forgetful = spark.createDataFrame([*rows, (0, 1, 2, [0, 2], 4, 5)], types)
    with pytest.raises(TraceError, match="1:2 of group 0 follows 1:1, which knew 0:1, but"):
        causal_sort(forgetful, **named, rows_each=1)


def test_nothing_stays_nothing(spark: SparkSession) -> None:
    given = spark.createDataFrame([], "origin int, number bigint, stamp array<bigint>")
    assert causal_sort(given).collect() == []
