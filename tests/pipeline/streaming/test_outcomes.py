"""What becomes of every kind of row, in every form; and mistakes in the call, each a sentence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType, _parse_datatype_string

from ordercast.errors import UsageError
from ordercast.pipeline.streaming.bucket import Step, lacking, new_bucket, take_in, time_out
from ordercast.pipeline.streaming.form import Form, form_of
from ordercast.pipeline.streaming.operator import milliseconds

MAP = pa.map_(pa.string(), pa.int64())
STRUCTS = pa.list_(pa.struct([("who", pa.string()), ("nth", pa.int32())]))


def form(needs: Any, **more: Any) -> Form:
    known: dict[str, Any] = {"group": ("room",), "number": "number", "origin": "origin"}
    if needs != "nothing":
        known |= {"stamp": "needs", "needs": needs}
    return Form(**known | {"named": needs != "array"} | more)


def schema_of(kind: Form) -> pa.Schema:
    types = {
        "array": pa.list_(pa.int32()),
        "map": MAP,
        "structs": STRUCTS,
        "words": pa.list_(pa.string()),
    }
    origin = pa.string() if kind.named else pa.int64()
    fields = [("room", pa.string()), ("origin", origin), ("number", pa.int32())]
    if kind.needs != "nothing":
        fields.append(("needs", types[kind.needs]))
    return pa.schema(fields)


def taken(kind: Form, *rows: tuple[Any, ...]) -> Step:
    schema = schema_of(kind)
    table = pa.Table.from_pylist(
        [dict(zip(schema.names, row, strict=True)) for row in rows], schema
    )
    return take_in(new_bucket(kind, schema), table, 0)


def out(step: Step) -> list[tuple[Any, ...]]:
    rows = [row for table in step.out for row in table.to_pylist()]
    return [(row["origin"], row["number"], row["outcome"], row["why"]) for row in rows]


FORMS = {
    "array": (0, 1, [1, 0], [1, 1]),
    "map": ("a", "b", [("a", 1)], [("a", 1), ("b", 1)]),
    "structs": ("a", "b", [], [{"who": "a", "nth": 1}]),
    "words": ("a", "b", [], ["a:1"]),
}


@pytest.mark.parametrize("needs", FORMS)
def test_an_answer_waits_for_its_question_in_every_form(needs: str) -> None:
    a, b, question, answer = FORMS[needs]
    held = taken(form(needs), ("r", b, 1, answer))
    assert out(held) == []
    assert lacking(held.after) == [f"{a}:1"]
    assert held.tally.oldest == f"{b}:1 of r waits for {a}:1"
    both = taken(form(needs), ("r", b, 1, answer), ("r", a, 1, question))
    assert out(both) == [(a, 1, "released", None), (b, 1, "released", None)]


def test_fifo_looks_at_numbers_alone() -> None:
    step = taken(form("nothing"), ("r", "b", 1), ("r", "a", 2), ("s", "a", 1), ("r", "a", 1))
    assert [row[:2] for row in out(step)] == [("b", 1), ("a", 1), ("a", 1), ("a", 2)]


def test_a_sequence_has_no_origins() -> None:
    kind = Form(group=("room",), number="number", start=0)
    schema = pa.schema([("room", pa.string()), ("number", pa.int64())])
    table = pa.table({"room": ["r"] * 3, "number": [2, 0, 1]}, schema)
    step = take_in(new_bucket(kind, schema), table, 0)
    assert [row["number"] for row in step.out[0].to_pylist()] == [0, 1, 2]


def test_several_columns_make_a_group() -> None:
    kind = replace(form("nothing"), group=("room", "origin"))
    step = taken(kind, ("r", "a", 1), ("r", "b", 1))
    positions = [row["position"] for row in step.out[0].to_pylist()]
    assert positions == [0, 0]


MALFORMED = [
    ("nothing", (None, "a", 1), "room is null"),
    ("nothing", ("r", None, 1), "origin is null"),
    ("nothing", ("r", "a", None), "number is null"),
    ("nothing", ("r", "a", 0), "number 0 is below the first, 1"),
    ("nothing", ("r", "a", -7), "number -7 is below the first, 1"),
    ("map", ("r", "a", 1, [("b", 2**63 - 1)]), "needs has 9223372036854775807, which is greater"),
    ("array", ("r", 0, 1, None), "needs is null"),
    ("array", ("r", 0, 1, [1, None]), "an entry of needs is null or cannot be read"),
    ("array", ("r", 0, 1, [1, -3]), "needs has -3 for 1"),
    ("array", ("r", 2, 1, [0, 0]), "origin 2 has no place in a stamp of 2"),
    ("array", ("r", -1, 1, [0, 0]), "origin -1 has no place in a stamp of 2"),
    ("map", ("r", "a", 1, [("b", None)]), "an entry of needs is null or cannot be read"),
    ("map", ("r", "a", 1, [("b", -1)]), "needs has -1 for b"),
    ("structs", ("r", "a", 1, [None]), "an entry of needs is null or cannot be read"),
    ("structs", ("r", "a", 1, [{"who": None, "nth": 1}]), "an entry of needs is null or cannot be"),
    ("structs", ("r", "a", 1, [{"who": "b", "nth": 0}]), "it depends on b:0"),
    ("words", ("r", "a", 1, ["b"]), "an entry of needs is null or cannot be read"),
    ("words", ("r", "a", 1, ["b:x"]), "an entry of needs is null or cannot be read"),
    ("words", ("r", "a", 2, ["a:2"]), "it depends on a:2, itself or its own future"),
    ("words", ("r", "a", 2, ["a:5"]), "it depends on a:5, itself or its own future"),
]


@pytest.mark.parametrize(("needs", "row", "why"), MALFORMED)
def test_what_is_no_message_goes_on_and_says_why(
    needs: str, row: tuple[Any, ...], why: str
) -> None:
    step = taken(form(needs), row)
    [(*_, outcome, told)] = out(step)
    assert outcome == "malformed"
    assert told.startswith(why)
    assert (step.tally.malformed, step.tally.held) == (1, 0)


@pytest.mark.parametrize(
    ("needs", "row", "why"),
    [
        ("nothing", ("r", "x", 1), "origin x is none of those given"),
        ("words", ("r", "a", 1, ["x:1"]), "needs names x, which is none of those given"),
        ("map", ("r", "a", 1, [("x", 1)]), "needs names x, which is none of those given"),
    ],
)
def test_only_those_who_may_send_do(needs: str, row: tuple[Any, ...], why: str) -> None:
    [(*_, outcome, told)] = out(taken(form(needs, origins=("a", "b")), row))
    assert (outcome, told) == ("malformed", why)


def test_a_stamp_has_a_place_for_each_origin_and_no_more() -> None:
    [(*_, told)] = out(taken(form("array", origins=(0, 1)), ("r", 0, 1, [1, 0, 0])))
    assert told == "the stamp has 3 places for 2 origins"


def test_a_bad_row_does_not_hold_up_the_good_ones() -> None:
    step = taken(form("words"), ("r", "a", 2, []), ("r", "a", 1, ["?"]), ("r", "a", 1, []))
    assert [row[:3] for row in out(step)] == [
        ("a", 1, "released"), ("a", 2, "released"), ("a", 1, "malformed"),
    ]  # fmt: skip


def test_duplicates_of_released_held_and_settled_are_dropped_and_counted() -> None:
    kind = form("nothing", wait_ms=0, policy="aside")
    step = taken(kind, ("r", "a", 1), ("r", "a", 1), ("r", "a", 3), ("r", "a", 3))
    assert (step.tally.duplicates, step.tally.held) == (2, 1)
    step = time_out(step.after, 0)
    assert out(step) == [("a", 3, "expired", "waited for a:2")]
    schema = schema_of(kind)
    again = pa.Table.from_pylist([{"room": "r", "origin": "a", "number": 3}] * 2, schema)
    step = take_in(step.after, again, 0)
    assert (step.tally.duplicates, out(step)) == (2, [])
    two = pa.Table.from_pylist([{"room": "r", "origin": "a", "number": n} for n in (4, 2)], schema)
    step = take_in(step.after, two, 0)
    # What comes after the one that was set aside still waits for what that one waited for.
    assert [row[:3] for row in out(step)] == [("a", 2, "released"), ("a", 4, "released")]


def test_what_comes_after_it_was_given_up_is_late_once_and_never_lost() -> None:
    kind = form("nothing", wait_ms=0, policy="release")
    step = time_out(taken(kind, ("r", "a", 4)).after, 0)
    assert out(step) == [("a", 4, "gap", "released without a:1..3")]
    schema = schema_of(kind)
    late = pa.Table.from_pylist([{"room": "r", "origin": "a", "number": 2}] * 3, schema)
    step = take_in(step.after, late, 0)
    assert out(step) == [("a", 2, "late", "a:2 was given up before it came")]
    assert step.tally.duplicates == 2
    step = take_in(step.after, late, 0)
    assert (out(step), step.tally.duplicates) == ([], 3)


def test_who_was_set_aside_is_not_waited_for() -> None:
    kind = form("words", wait_ms=0, policy="aside")
    step = time_out(taken(kind, ("r", "a", 1, ["b:1"]), ("r", "a", 2, [])).after, 0)
    assert out(step) == [("a", 1, "expired", "waited for b:1"), ("a", 2, "released", None)]


def test_keep_waits_for_ever() -> None:
    step = taken(form("nothing"), ("r", "a", 2))
    for now in (10**9, 10**12):
        step = take_in(step.after, schema_of(step.after.form).empty_table(), now)
        assert (out(step), step.tally.held) == ([], 1)


def test_counts_from_before_the_start_are_met() -> None:
    """A stream that is joined in the middle: what came before it is not waited for."""
    step = taken(form("map", start=5), ("r", "a", 5, [("b", 3)]), ("r", "a", 4, []))
    assert out(step) == [
        ("a", 5, "released", None), ("a", 4, "malformed", "number 4 is below the first, 5"),
    ]  # fmt: skip


STREAM = (
    "room string, origin int, number long, stamp array<long>, name string, f float, "
    "after array<string>"
)
GOOD: dict[str, Any] = {
    "group": "room", "origin": "origin", "number": "number", "stamp": "stamp", "dependencies": None,
    "wait_ms": None, "policy": "keep", "buckets": 16, "start": 1, "origins": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"group": "rooms"}, "the stream has no column 'rooms' for a group: its columns are room,"),
        ({"group": "f"}, "the column 'f', a group, is of type float, not text, an integer, a date"),
        ({"group": []}, "there must be a column at least that tells groups apart"),
        ({"number": "name"}, "the column 'name', the number, is of type string, not an integer"),
        ({"origin": "f"}, "the column 'f', the origin, is of type float, not an integer or text"),
        ({"origin": "name"}, "'stamp' is an array, whose places are origins, but the origins are"),
        ({"stamp": "name"}, "the stamp 'name' is of type string, not an array of counts or a map"),
        ({"dependencies": "after"}, "a message has a stamp or dependencies, not both"),
        (
            {"stamp": None, "dependencies": "stamp"},
            "the dependencies 'stamp' are of type array<b",
        ),
        ({"policy": "drop"}, "there is no policy 'drop': choose from keep, release, aside"),
        ({"policy": "aside"}, "the policy 'aside' needs a time to wait, such as 30s"),
        ({"wait_ms": 5}, "a time to wait needs a policy for what has waited that long"),
        ({"buckets": 0}, "there must be a bucket at least, not 0"),
        ({"origins": ["a"]}, "origins are integers in this stream, and 'a' is not"),
        ({"origins": [1, 1]}, "an origin is given twice"),
    ],
)
def test_a_mistake_in_the_call_is_one_sentence(
    change: dict[str, Any], words: str, spark: object
) -> None:
    schema = _parse_datatype_string(STREAM)
    assert isinstance(schema, StructType)
    form_of(schema, **GOOD)
    with pytest.raises(UsageError) as caught:
        form_of(schema, **GOOD | change)
    assert words in str(caught.value)


def test_a_column_that_is_taken_is_told(spark: object) -> None:
    schema = _parse_datatype_string(STREAM + ", position long")
    assert isinstance(schema, StructType)
    with pytest.raises(UsageError, match="has a column 'position' already"):
        form_of(schema, **GOOD)


def test_durations() -> None:
    assert [milliseconds(word) for word in ("500ms", "30s", "1.5m", "2h", "1d")] == [
        500, 30_000, 90_000, 7_200_000, 86_400_000,
    ]  # fmt: skip
    with pytest.raises(UsageError, match="'soon' is not a duration such as 500ms"):
        milliseconds("soon")
