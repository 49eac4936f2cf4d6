"""The form of a stream that is to be put in order: which columns say what, and what to do when.

A `Form` is made once, from the schema of the stream, and travels to the tasks. What it says of the
messages is kept with the state: a checkpoint goes on only with the same form. How long to wait, and
what to do then, may change from one life of a query to the next.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal, get_args

from ordercast.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

__all__ = ["ADDED", "Form", "Needs", "Policy", "form_of", "patience"]

Needs = Literal["nothing", "array", "map", "structs", "words"]
"""How a message says what came before it: not at all, as counts by index, as counts by name, or as
ids (structs of origin and number, or words such as `a:3`)."""
Policy = Literal["keep", "release", "aside"]

ADDED = ("position", "outcome", "why")
"""The columns that the operator adds."""


@dataclass(frozen=True)
class Form:
    group: tuple[str, ...]
    number: str
    origin: str | None = None
    """None: there is only one, and numbers are a sequence."""
    stamp: str | None = None
    needs: Needs = "nothing"
    named: bool = False
    """Are origins words? If not, they are integers."""
    start: int = 1
    origins: tuple[int | str, ...] | None = None
    buckets: int = 16
    wait_ms: int | None = None
    policy: Policy = "keep"
    schema: str = ""
    """Of the stream, as Spark writes it."""

    @property
    def identity(self) -> dict[str, object]:
        """What a checkpoint is bound to, by the words for it."""
        known = asdict(self)
        for changeable in ("wait_ms", "policy"):
            del known[changeable]
        return json.loads(json.dumps(known))  # type: ignore[no-any-return]

    @property
    def expires(self) -> bool:
        return self.wait_ms is not None and self.policy != "keep"


def form_of(
    schema: StructType,
    *,
    group: str | list[str] | tuple[str, ...],
    origin: str | None,
    number: str,
    stamp: str | None,
    dependencies: str | None,
    wait_ms: int | None,
    policy: str,
    buckets: int,
    start: int,
    origins: list[int | str] | tuple[int | str, ...] | None,
) -> Form:
    """Checked against the schema of the stream: every mistake is a `UsageError` that names it."""
    keys = (group,) if isinstance(group, str) else tuple(group)
    chosen = patience(wait_ms, policy)
    if buckets < 1:
        raise UsageError(f"there must be a bucket at least, not {buckets}")
    if stamp is not None and dependencies is not None:
        raise UsageError("a message has a stamp or dependencies, not both")
    if taken := [name for name in ADDED if name in schema.names]:
        raise UsageError(
            f"the stream has a column {taken[0]!r} already, which is what the result is to be "
            "called: rename it"
        )
    if not keys:
        raise UsageError("there must be a column at least that tells groups apart")
    for key in keys:
        _require(schema, key, "a group", _GROUPS, "text, an integer, a date or a boolean")
    _require(schema, number, "the number", _INTEGERS, "an integer")
    named = False
    if origin is not None:
        kind = _require(schema, origin, "the origin", {*_INTEGERS, "string"}, "an integer or text")
        named = kind == "string"
    needs: Needs = "nothing"
    if stamp is not None:
        needs = _stamp_form(schema, stamp, named=named)
    elif dependencies is not None:
        needs = _dependencies_form(schema, dependencies, named=named)
    if origins is not None:
        _check_origins(origins, named=named)
    return Form(
        group=keys, number=number, origin=origin, stamp=stamp or dependencies, needs=needs,
        named=named, start=start, origins=None if origins is None else tuple(origins),
        buckets=buckets, wait_ms=wait_ms, policy=chosen, schema=schema.simpleString(),
    )  # fmt: skip


def patience(wait: object, policy: str) -> Policy:
    """The policy, if it goes with the time to wait, or with there being none."""
    chosen: Policy | None = next((one for one in get_args(Policy) if one == policy), None)
    if chosen is None:
        raise UsageError(f"there is no policy {policy!r}: choose from keep, release, aside")
    if (chosen == "keep") != (wait is None):
        raise UsageError(
            "a time to wait needs a policy for what has waited that long, release or aside"
            if chosen == "keep"
            else f"the policy {policy!r} needs a time to wait, such as 30s"
        )
    return chosen


_INTEGERS = {"tinyint", "smallint", "int", "bigint"}
_GROUPS = {*_INTEGERS, "string", "date", "boolean", "binary", "timestamp", "timestamp_ntz"}


def _require(schema: StructType, name: str, what: str, kinds: set[str], words: str) -> str:
    kind = _column(schema, name, what).simpleString()
    if kind not in kinds:
        raise UsageError(f"the column {name!r}, {what}, is of type {kind}, not {words}")
    return kind


def _column(schema: StructType, name: str, what: str) -> DataType:
    if name not in schema.names:
        columns = ", ".join(schema.names) or "none"
        raise UsageError(f"the stream has no column {name!r} for {what}: its columns are {columns}")
    return schema[name].dataType


def _stamp_form(schema: StructType, stamp: str, *, named: bool) -> Needs:
    from pyspark.sql.types import ArrayType, MapType

    kind = _column(schema, stamp, "the stamp")
    origin = "text" if named else "integers"
    if isinstance(kind, ArrayType) and kind.elementType.simpleString() in _INTEGERS:
        if named:
            raise UsageError(
                f"the stamp {stamp!r} is an array, whose places are origins, but the origins are "
                "text: a map of origin to count goes with those"
            )
        return "array"
    if isinstance(kind, MapType) and kind.valueType.simpleString() in _INTEGERS:
        if (kind.keyType.simpleString() == "string") == named:
            return "map"
        raise UsageError(f"the keys of the stamp {stamp!r} are not {origin}, as the origins are")
    raise UsageError(
        f"the stamp {stamp!r} is of type {kind.simpleString()}, not an array of counts or a map of "
        "origin to count"
    )


def _dependencies_form(schema: StructType, name: str, *, named: bool) -> Needs:
    from pyspark.sql.types import ArrayType, StructType

    kind = _column(schema, name, "the dependencies")
    element = kind.elementType if isinstance(kind, ArrayType) else None
    if element is not None and element.simpleString() == "string":
        return "words"
    if isinstance(element, StructType) and len(element) == 2:
        origin, number = (field.dataType.simpleString() for field in element)
        fits = origin == "string" if named else origin in _INTEGERS
        if fits and number in _INTEGERS:
            return "structs"
    raise UsageError(
        f"the dependencies {name!r} are of type {kind.simpleString()}, not an array of structs of "
        "an origin, as the column for it has it, and a number, or of texts such as a:3"
    )


def _check_origins(origins: list[int | str] | tuple[int | str, ...], *, named: bool) -> None:
    if wrong := [one for one in origins if isinstance(one, str) != named]:
        kind = "text" if named else "integers"
        raise UsageError(f"origins are {kind} in this stream, and {wrong[0]!r} is not")
    if len(set(origins)) < len(origins):
        raise UsageError("an origin is given twice")
