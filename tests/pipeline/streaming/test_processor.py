"""The operator as Spark drives it, through Spark's own tester of stateful processors."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.streaming.tws_tester import TwsTester

from ordercast.errors import CheckpointError
from ordercast.pipeline.streaming import processor, state
from ordercast.pipeline.streaming.chunks import cut
from ordercast.pipeline.streaming.form import ADDED, Form
from ordercast.pipeline.streaming.processor import COUNTS, HELD, CausalProcessor
from ordercast.pipeline.streaming.state import read_table, table_bytes

from .builders import ARRAY, FORM, sent, shuffled, split, table
from .oracle import Message, Oracle


class Driven(TwsTester):
    def feed(self, bucket: int, chunks: list[dict[str, Any]]) -> pd.DataFrame:
        return self.testInPandas(bucket, pd.DataFrame(chunks))


def driven(form: Form) -> Driven:
    return Driven(CausalProcessor(form), timeMode="ProcessingTime" if form.expires else "None")


def chunk(rows: pa.Table, *, partition: int = 0, sequence: int = 0) -> dict[str, Any]:
    return {"partition": partition, "sequence": sequence, "chunk": table_bytes(rows)}


def _all(out: pd.DataFrame) -> list[dict[str, Any]]:
    columns = [pa.array(out[at]).to_pylist() for at in out.columns]
    names = (*ARRAY.names, *ADDED)
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def rows(out: pd.DataFrame) -> list[dict[str, Any]]:
    return [row for row in _all(out) if row["outcome"] is not None]


def steps(out: pd.DataFrame) -> list[dict[str, Any]]:
    return [json.loads(row["why"]) for row in _all(out) if row["outcome"] is None]


def labels(out: pd.DataFrame) -> list[int]:
    return [row["label"] for row in rows(out)]


@given(st.integers(0, 2**32))
@settings(max_examples=40)
def test_the_output_is_the_oracle_s_whatever_the_batches(seed: int) -> None:
    random = Random(seed)
    messages = sent(random, groups=3, origins=3, messages=30)
    messages = shuffled(random, messages + random.sample(messages, k=5), reach=20)
    oracle = Oracle()
    for message in messages:
        oracle.arrive(message, 0)
    subject, found = driven(FORM), []
    for batch in split(random, messages):
        half = len(batch) // 2
        chunks = [
            chunk(table(batch[:half], width=3)),
            chunk(table(batch[half:], width=3), sequence=1),
        ]
        found += labels(subject.feed(3, list(reversed(chunks))))
    assert found == [message.label for message, _ in oracle.out]


def test_arrival_is_by_partition_then_chunk() -> None:
    a, b, c = (Message(name, 0, 1, (), label) for label, name in enumerate("abc"))
    given_rows = [
        chunk(table([c], width=1), partition=1),
        chunk(table([b], width=1), partition=0, sequence=1),
        chunk(table([a], width=1), partition=0, sequence=0),
    ]
    assert labels(driven(FORM).feed(0, given_rows)) == [0, 1, 2]


def test_a_partition_of_smaller_numbers_is_taken_first() -> None:
    """Or b:2 would be held until b:1 has come, and go before a:1."""
    one, two, three = (
        table([Message(group, 0, number, (), label)], width=1)
        for label, (group, number) in enumerate((("b", 1), ("a", 1), ("b", 2)))
    )
    given_rows = [
        chunk(three, partition=0),
        chunk(one, partition=1),
        chunk(two, partition=1, sequence=1),
    ]
    assert labels(driven(FORM).feed(0, given_rows)) == [0, 1, 2]


def test_rows_without_a_number_do_not_count_in_that_and_are_not_lost() -> None:
    one, two, three = (
        table([Message(group, 0, number, (), label)], width=1)
        for label, (group, number) in enumerate((("b", 1), ("a", 1), ("b", 2)))
    )
    nameless = one.set_column(
        one.schema.get_field_index("number"), "number", pa.nulls(1, pa.int64())
    )
    given_rows = [
        chunk(pa.concat_tables([nameless, three]), partition=0),
        chunk(pa.concat_tables([one, two]), partition=1),
        chunk(nameless, partition=2),
    ]
    out = rows(driven(FORM).feed(0, given_rows))
    assert [row["label"] for row in out if row["outcome"] == "released"] == [0, 1, 2]
    assert [row["outcome"] for row in out].count("malformed") == 2


def test_buckets_know_nothing_of_each_other() -> None:
    subject = driven(FORM)
    first, second = Message("g", 0, 1, (), 1), Message("g", 0, 2, (), 2)
    subject.feed(0, [chunk(table([first], width=1))])
    assert labels(subject.feed(1, [chunk(table([second], width=1))])) == []
    assert labels(subject.feed(0, [chunk(table([second], width=1))])) == [2]


def test_a_great_batch_is_taken_in_by_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is held is told as of the last: the greatest step counts."""
    monkeypatch.setattr(processor, "_PORTION_BYTES", 1)
    subject = driven(FORM)
    chunks = [
        chunk(table([Message("g", 0, number, (), number)], width=1), sequence=sequence)
        for sequence, number in enumerate((2, 3, 1))
    ]
    out = subject.feed(0, chunks)
    assert labels(out) == [1, 2, 3]
    assert [(one["step"], one["rows"], one["held"]) for one in steps(out)] == [
        (0, 1, 1),
        (1, 1, 2),
        (2, 1, 0),
    ]
    assert labels(subject.feed(0, chunks)) == []


def test_what_is_in_a_chunk_counts_not_how_small_it_travels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    messages = [Message("g", 0, number, (), number) for number in range(1, 2001)]
    halves = (table(some, width=1) for some in (messages[:1000], messages[1000:]))
    packed = [one for half in halves for one in cut(half)]
    sizes = [read_table(one).nbytes for one in packed]
    assert all(len(one) < size for one, size in zip(packed, sizes, strict=True))
    monkeypatch.setattr(processor, "_PORTION_BYTES", min(sizes))
    chunks = [{"partition": 0, "sequence": at, "chunk": one} for at, one in enumerate(packed)]
    out = driven(FORM).feed(0, chunks)
    assert [one["step"] for one in steps(out)] == [0, 1]
    assert labels(out) == list(range(1, 2001))


WAITING = replace(FORM, wait_ms=100, policy="release")


def test_a_timer_releases_what_nothing_more_comes_for() -> None:
    subject = driven(WAITING)
    subject.setProcessingTime(1000)
    subject.feed(0, [chunk(table([Message("g", 0, 2, (), 2)], width=1))])
    assert subject.setProcessingTime(1099).empty
    [released] = rows(subject.setProcessingTime(1101))
    assert (released["outcome"], released["why"]) == ("gap", "released without 0:1")


def test_a_timer_is_set_for_each_that_waits_in_turn() -> None:
    subject = driven(WAITING)
    for now, name in ((1000, "g"), (1050, "h"), (1070, "i")):
        subject.setProcessingTime(now)
        subject.feed(0, [chunk(table([Message(name, 0, 2, (), now)], width=1))])
    assert labels(subject.setProcessingTime(1110)) == [1000]
    assert labels(subject.setProcessingTime(1160)) == [1050]
    assert labels(subject.setProcessingTime(1200)) == [1070]


def test_what_is_held_is_written_only_if_it_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = driven(FORM)
    held = Message("g", 0, 9, (), 9)
    subject.feed(0, [chunk(table([held], width=1))])
    written = []
    variable = subject.handle.value_states[HELD]
    monkeypatch.setattr(variable, "update", written.append)
    subject.feed(0, [chunk(table([held], width=1))])
    assert not written
    subject.feed(0, [chunk(table([Message("g", 0, 8, (), 8)], width=1))])
    assert len(written) == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"buckets": 8}, "was made with buckets = 16, and now buckets is 8"),
        ({"start": 0}, "was made with start = 1, and now start is 0"),
        ({"needs": "nothing", "stamp": None}, 'was made with needs = "array", and now needs is'),
        ({"schema": "struct<a:int>"}, 'made with schema = "", and now schema is "struct<a:int>"'),
        ({"origins": (0, 1)}, "was made with origins = null, and now origins is [0, 1]"),
    ],
)
def test_a_checkpoint_goes_on_only_with_its_own_form(change: dict[str, Any], words: str) -> None:
    old = driven(FORM)
    old.feed(0, [chunk(table([Message("g", 0, 1)], width=1))])
    new = driven(replace(FORM, **change))
    for name in (COUNTS, HELD):
        value = old.peekValueState(name, 0)
        assert value is not None
        new.updateValueState(name, 0, value)
    with pytest.raises(CheckpointError) as caught:
        new.feed(0, [chunk(table([Message("g", 0, 2)], width=1))])
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bucket_0_refuses_another_form_before_it_has_a_message() -> None:
    """Every batch has a row without a chunk for it."""
    nothing = {"partition": 0, "sequence": -1, "chunk": None}
    old, new = driven(FORM), driven(replace(FORM, buckets=8))
    assert old.feed(0, [nothing]).empty
    assert old.feed(0, [nothing]).empty
    value = old.peekValueState(COUNTS, 0)
    assert value is not None
    new.updateValueState(COUNTS, 0, value)
    with pytest.raises(CheckpointError, match="buckets = 16, and now buckets is 8"):
        new.feed(0, [nothing])
    assert labels(old.feed(0, [nothing, chunk(table([Message("g", 0, 1, (), 1)], width=1))])) == [1]


def test_how_long_to_wait_may_change() -> None:
    old = driven(WAITING)
    old.feed(0, [chunk(table([Message("g", 0, 2, (), 2)], width=1))])
    new = driven(replace(WAITING, wait_ms=7, policy="aside"))
    for name in (COUNTS, HELD):
        value = old.peekValueState(name, 0)
        assert value is not None
        new.updateValueState(name, 0, value)
    new.setProcessingTime(5)
    new.feed(0, [chunk(table([Message("g", 0, 3, (), 3)], width=1))])
    assert labels(new.setProcessingTime(8)) == [2]


@pytest.mark.parametrize("name", [COUNTS, HELD])
def test_another_version_of_the_state_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = driven(FORM)
    with monkeypatch.context() as patch:
        patch.setattr(state, "VERSION", 1)
        subject.feed(0, [chunk(table([Message("g", 0, 1)], width=1))])
    other = driven(FORM)
    other.feed(0, [chunk(table([Message("g", 0, 1)], width=1))])
    value = subject.peekValueState(name, 0)
    assert value is not None
    other.updateValueState(name, 0, value)
    with pytest.raises(CheckpointError, match="state of version 1, and this ordercast has 2: go "):
        other.feed(0, [chunk(table([Message("g", 0, 2)], width=1))])


def test_foreign_state_is_refused() -> None:
    subject = driven(FORM)
    subject.feed(0, [chunk(table([Message("g", 0, 1)], width=1))])
    subject.updateValueState(COUNTS, 0, (b"something else altogether, but long enough",))
    with pytest.raises(CheckpointError, match="is not of ordercast"):
        subject.feed(0, [chunk(table([Message("g", 0, 2)], width=1))])
