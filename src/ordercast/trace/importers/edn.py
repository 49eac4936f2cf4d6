"""A small reader of EDN, the notation of Clojure's data, one form at a time.

nil, booleans, numbers, strings, characters, keywords, symbols, lists, vectors, maps, sets, tagged
forms (the tag is dropped), comments and discards. Lists and vectors become tuples, maps dicts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

from ordercast.errors import TraceError

__all__ = ["EdnSet", "Keyword", "Symbol", "read_edn"]

_TOKEN = re.compile(
    r'(?P<space>[\s,]+|;[^\n]*)|(?P<string>"(?:[^"\\]|\\.)*")|(?P<open>#\{|[\[({])'
    r"|(?P<close>[\])}])|(?P<discard>\#_)|(?P<char>\\(?:\w+|.))|(?P<tag>\#[A-Za-z][\w./*+!?$%&=<>-]*)"
    r'|(?P<atom>(?:\#\#)?[^\s,;"\[\](){}\\]+)',
    re.DOTALL,
)
_CLOSES = {"(": ")", "[": "]", "{": "}", "#{": "}"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_NAMED = {"newline": "\n", "space": " ", "tab": "\t", "return": "\r"}
_WORDS: dict[str, Any] = {
    "nil": None,
    "true": True,
    "false": False,
    "##Inf": float("inf"),
    "##-Inf": float("-inf"),
    "##NaN": float("nan"),
}


class Keyword(str):
    """`:ok` is Keyword("ok")."""

    __slots__ = ()


class Symbol(str):
    __slots__ = ()


class EdnSet(tuple[Any, ...]):
    """The elements of a set, in the order in which they are written."""

    __slots__ = ()


class _Open(NamedTuple):
    bracket: str
    line: int
    forms: list[Any]
    pending: list[bool]
    """What stands before the next form: a discard (True) or a tag (False)."""


def read_edn(lines: Iterable[str], *, name: str) -> Iterator[tuple[int, Any]]:
    """Each form with the line on which it begins. The elements of a vector or list around
    everything are forms of their own, so that a history written as one can be read in pieces."""
    stack = [_Open("", 0, [], [])]
    begun = 0
    for number, kind, text in _tokens(lines, name):
        top = stack[-1]
        if kind == "discard":
            top.pending.append(True)
            continue
        if kind == "tag":
            top.pending.append(False)
            continue
        if len(stack) == 1 or (len(stack) == 2 and stack[1].bracket in ("[", "(")):
            begun = number if kind != "close" else begun
        if kind == "open":
            stack.append(_Open(text, number, [], []))
            continue
        if kind == "close":
            form = _closed(stack, text, name, number)
            if form is _OUTER:
                continue
        else:
            form = _atom(kind, text, name, number)
        if _is_kept(stack[-1]):
            stack[-1].forms.append(form)
        yield from _finished(stack, begun)
    if len(stack) > 1:
        raise TraceError(f"{name}, line {stack[-1].line}: {stack[-1].bracket!r} is never closed")


_OUTER = object()


def _finished(stack: list[_Open], begun: int) -> Iterator[tuple[int, Any]]:
    outer = stack[0] if len(stack) == 1 else stack[1]
    if len(stack) == 1 or (len(stack) == 2 and outer.bracket in ("[", "(")):
        if not any(stack[0].pending):
            for form in outer.forms:
                yield begun, form
        outer.forms.clear()


def _closed(stack: list[_Open], text: str, name: str, number: int) -> Any:
    top = stack[-1]
    if len(stack) == 1 or _CLOSES[top.bracket] != text:
        expected = f"expected {_CLOSES[top.bracket]!r}" if len(stack) > 1 else "nothing is open"
        raise TraceError(f"{name}, line {number}: {text!r} where {expected}")
    if top.pending:
        raise TraceError(f"{name}, line {number}: a tag or discard with no form after it")
    stack.pop()
    if top.bracket == "{":
        if len(top.forms) % 2:
            raise TraceError(f"{name}, line {number}: a map with a key that has no value")
        pairs = zip(top.forms[::2], top.forms[1::2], strict=True)
        return {_frozen(key): value for key, value in pairs}
    if top.bracket == "#{":
        return EdnSet(top.forms)
    # The elements of the outermost list or vector have been handed on one by one.
    if len(stack) > 1:
        return tuple(top.forms)
    _is_kept(stack[0])
    return _OUTER


def _is_kept(top: _Open) -> bool:
    """Whether the form that comes now is not discarded. Its tags are dropped."""
    while top.pending:
        if top.pending.pop():
            return False
    return True


def _frozen(key: Any) -> Any:
    """Anything may be the key of a map."""
    if isinstance(key, dict):
        return tuple((_frozen(one), _frozen(value)) for one, value in key.items())
    return tuple(map(_frozen, key)) if isinstance(key, tuple) else key


def _tokens(lines: Iterable[str], name: str) -> Iterator[tuple[int, str, str]]:
    rest, begins = "", 0
    for number, line in enumerate(lines, start=1):
        rest, begins = (rest + line, begins) if rest else (line, number)
        place = 0
        while place < len(rest):
            found = _TOKEN.match(rest, place)
            if found is None:
                break
            place = found.end()
            if found.lastgroup != "space":
                yield begins, str(found.lastgroup), found[0]
        rest = rest[place:]
        if rest and not rest.startswith('"'):
            raise TraceError(f"{name}, line {number}: not EDN: {rest[:30]!r}")
    if rest:
        raise TraceError(f"{name}, line {begins}: a string that is never closed")


def _atom(kind: str, text: str, name: str, number: int) -> Any:
    if kind == "string":
        return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", _escaped, text[1:-1], flags=re.DOTALL)
    if kind == "char":
        return _NAMED.get(text[1:], _character(text[2:]) if _is_code(text) else text[1:])
    if text in _WORDS:
        return _WORDS[text]
    if text.startswith(":") and len(text) > 1:
        return Keyword(text[1:])
    if re.match(r"[+-]?\d", text):
        return _number(text, f"{name}, line {number}")
    if text.startswith("#"):
        raise TraceError(f"{name}, line {number}: not EDN: {text[:30]!r}")
    return Symbol(text)


def _is_code(text: str) -> bool:
    return bool(re.fullmatch(r"\\u[0-9a-fA-F]{4}", text))


def _escaped(found: re.Match[str]) -> str:
    word = found[1]
    return _character(word[1:]) if len(word) == 5 else _ESCAPES.get(word, word)


def _character(code: str) -> str:
    """Halves of a pair are no characters of their own."""
    return chr(int(code, 16)).encode("utf-8", "replace").decode()


def _number(text: str, where: str) -> int | float | Fraction:
    try:
        if "/" in text:
            return Fraction(text)
        if re.fullmatch(r"[+-]?\d+N?", text):
            return int(text.rstrip("N"))
        return float(text.rstrip("M"))
    except (ValueError, ZeroDivisionError):
        raise TraceError(f"{where}: not a number: {text[:30]!r}") from None
