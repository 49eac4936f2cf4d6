"""The words of EDN: tokens of lines, and what each atom stands for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

__all__ = ["FlawError", "Keyword", "Symbol", "atom", "tokens"]

_TOKEN = re.compile(
    r'(?P<space>[\s,]+|;[^\n]*)|(?P<string>"(?:[^"\\]|\\.)*")|(?P<open>#\{|[\[({])'
    r"|(?P<close>[\])}])|(?P<discard>\#_)|(?P<char>\\(?:\w+|.))|(?P<tag>\#[A-Za-z][\w./*+!?$%&=<>-]*)"
    r'|(?P<atom>(?:\#\#)?[^\s,;"\[\](){}\\]+)',
    re.DOTALL,
)
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


class FlawError(Exception):
    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line, self.reason = line, reason


def tokens(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str, str]]:
    rest, begins = "", 0
    for number, line in lines:
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
            raise FlawError(number, f"not EDN: {rest[:30]!r}")
    if rest:
        raise FlawError(begins, "a string that is never closed")


def atom(kind: str, text: str, number: int) -> Any:
    if kind == "string":
        return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", _escaped, text[1:-1], flags=re.DOTALL)
    if kind == "char":
        return _NAMED.get(text[1:], _character(text[2:]) if _is_code(text) else text[1:])
    if text in _WORDS:
        return _WORDS[text]
    if text.startswith(":") and len(text) > 1:
        return Keyword(text[1:])
    if re.match(r"[+-]?\d", text):
        return _number(text, number)
    if text.startswith("#"):
        raise FlawError(number, f"not EDN: {text[:30]!r}")
    return Symbol(text)


def _is_code(text: str) -> bool:
    return bool(re.fullmatch(r"\\u[0-9a-fA-F]{4}", text))


def _escaped(found: re.Match[str]) -> str:
    word = found[1]
    return _character(word[1:]) if len(word) == 5 else _ESCAPES.get(word, word)


def _character(code: str) -> str:
    """Halves of a pair are no characters of their own."""
    return chr(int(code, 16)).encode("utf-8", "replace").decode()


def _number(text: str, line: int) -> int | float | Fraction:
    try:
        if "/" in text:
            return Fraction(text)
        if re.fullmatch(r"[+-]?\d+N?", text):
            return int(text.rstrip("N"))
        return float(text.rstrip("M"))
    except (ValueError, ZeroDivisionError):
        raise FlawError(line, f"not a number: {text[:30]!r}") from None
