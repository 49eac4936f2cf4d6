"""The EDN reader: what is written is read back, however it is cut and whatever lies between."""

from __future__ import annotations

from typing import Any
from unittest.mock import ANY

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.errors import TraceError
from ordercast.trace.importers.edn import EdnSet, Keyword, Symbol, read_edn

NAMES = st.from_regex(r"[a-z][a-z0-9.*!?-]{0,5}(/[a-z]{1,3})?", fullmatch=True).filter(
    lambda name: name not in ("nil", "true", "false")
)
ATOMS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
    NAMES.map(Keyword),
    NAMES.map(Symbol),
)
FORMS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(tuple),
        st.lists(inner, max_size=4).map(EdnSet),
        st.dictionaries(NAMES.map(Keyword) | st.integers(), inner, max_size=4),
    ),
    max_leaves=12,
)
BETWEEN = st.sampled_from(
    [" ", "\n", ",", " , ", " ; a comment\n", "\n\n", " #_ [nil {}] ", " #_a "]
)


def written(form: Any, draw: Any) -> str:
    def joined(forms: Any) -> str:
        return draw(BETWEEN).join(written(one, draw) for one in forms)

    if isinstance(form, EdnSet):
        return "#{" + joined(form) + "}"
    if isinstance(form, tuple):
        opened, closed = draw(st.sampled_from(["[]", "()"]))
        return opened + joined(form) + closed
    if isinstance(form, dict):
        tag = draw(st.sampled_from(["", "#jepsen.history.Op", "#a/b "]))
        return tag + "{" + joined(one for pair in form.items() for one in pair) + "}"
    if isinstance(form, Keyword):
        return f":{form}"
    if isinstance(form, Symbol):
        return str(form)
    if isinstance(form, str):
        return '"' + form.replace("\\", "\\\\").replace('"', '\\"') + '"'
    words: dict[Any, str] = {None: "nil", True: "true", False: "false"}
    return words[form] if form is None or isinstance(form, bool) else repr(form)


def read(text: str) -> list[Any]:
    return [form for _, form in read_edn(text.splitlines(keepends=True), name="x.edn")]


@given(st.lists(FORMS.filter(lambda form: type(form) is not tuple), max_size=4), st.data())
def test_what_is_written_is_read_back(forms: list[Any], data: st.DataObject) -> None:
    text = "".join(written(form, data.draw) + data.draw(BETWEEN) + " " for form in forms)
    lines = [line + "\n" for line in text.split("\n")]
    assert [form for _, form in read_edn(lines, name="x.edn")] == forms
    wrapped = ["[\n", *lines, "]\n"]
    assert [form for _, form in read_edn(wrapped, name="x.edn")] == forms


@given(st.text(alphabet='{}[]()#_":\\; a1\n', max_size=30))
def test_anything_is_read_or_refused_with_its_line(text: str) -> None:
    try:
        read(text)
    except TraceError as error:
        assert str(error).startswith("x.edn, line ")  # noqa: PT017


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("1N -2 +3 1.5M 2e3 3/4", [1, -2, 3, 1.5, 2000.0, 0.75]),
        (r'\a \newline \u0041 "\u0041\n"', ["a", "\n", "A", "A\n"]),
        ('#inst "2026-01-01"', ["2026-01-01"]),
        ("#_ #_ 1 2 3", [3]),
        ("#a #_ 1 2", [2]),
        ("#_ [1 2] 3", [3]),
        ("[[1] [2]]", [(1,), (2,)]),
        ('{"a\nb" 1}', [{"a\nb": 1}]),
        ("{{:a 1} 2}", [{(("a", 1),): 2}]),
        ("##Inf", [float("inf")]),
    ],
)
def test_forms(text: str, forms: list[Any]) -> None:
    assert read(text) == forms


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[1 2", "x.edn, line 1: '[' is never closed"),
        ("{:a [1\n2}", "x.edn, line 2: '}' where expected ']'"),
        ("1\n)", "x.edn, line 2: ')' where nothing is open"),
        ('{:a "b\n', "x.edn, line 1: a string that is never closed"),
        ("{:a}", "x.edn, line 1: a map with a key that has no value"),
        ("{:a #_}", "x.edn, line 1: a tag or discard with no form after it"),
        ("12x", "x.edn, line 1: not a number: '12x'"),
    ],
)
def test_what_is_broken_is_told_with_its_line(text: str, sentence: str) -> None:
    with pytest.raises(TraceError) as refused:
        read(text)
    assert str(refused.value) == sentence


def test_forms_know_where_they_begin() -> None:
    lines = ["[{:a\n", "1}\n", "\n", "{:a 2} 3]\n"]
    assert [line for line, _ in read_edn(lines, name="x")] == [1, 4, 4]


def survivors(text: str) -> tuple[list[Any], list[str]]:
    """What is left of a broken text, and what is said about the rest."""
    said: list[str] = []

    def refuse(line: int, reason: str) -> None:
        said.append(f"{line}: {reason}")

    lines = text.splitlines(keepends=True)
    return [form for _, form in read_edn(lines, name="x.edn", refuse=refuse)], said


@pytest.mark.parametrize(
    ("text", "forms", "said"),
    [
        ("{:a}\n{:b 1}\n", [{"b": 1}], ["1: a map with a key that has no value"]),
        ("{:a} {:b 1}", [{"b": 1}], ["1: a map with a key that has no value"]),
        ("{:b 1}\n{:a [1 2\n{:c 3}\n", [{"b": 1}, {"c": 3}], ["2: '[' is never closed"]),
        ("[{:b 1}\n {:a (1 2\n {:c 3}]", [{"b": 1}, {"c": 3}], ["3: ']' where expected ')'"]),
        ("[{:b 1}\n {:c 3}\n {:a", [{"b": 1}, {"c": 3}], ["3: '{' is never closed"]),
        ("[{:b 1}\n {:c 3}\n", [{"b": 1}, {"c": 3}], ["1: '[' is never closed"]),
        ("{:a [1}\n :b 2}\n{:c 3}\n", [{"c": 3}], ["1: '}' where expected ']'"]),
        ("{:b 1}}\n{:c 3}", [{"b": 1}, {"c": 3}], ["1: '}' where nothing is open"]),
        ('{:b 1}\n"open\n{:c 3}\n', [{"b": 1}, {"c": 3}], ["2: a string that is never closed"]),
        ("[1 12x #_ ##what {:a #_} 2]", [1, 2], ANY),
    ],
)
def test_what_is_broken_is_left_out_if_that_is_wanted(
    text: str, forms: list[Any], said: Any
) -> None:
    assert survivors(text) == (forms, said)


@given(st.text(alphabet='{}[]()#_":\\; a1\n', max_size=60))
def test_what_is_left_out_never_stops_the_reader(text: str) -> None:
    forms, said = survivors(text)
    try:
        whole = read(text)
    except TraceError:
        assert said
    else:
        assert (forms, said) == (whole, [])
