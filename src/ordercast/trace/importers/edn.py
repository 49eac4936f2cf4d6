"""A small reader of EDN, the notation of Clojure's data, one form at a time.

nil, booleans, numbers, strings, characters, keywords, symbols, lists, vectors, maps, sets, tagged
forms (the tag is dropped), comments and discards. Lists and vectors become tuples, maps dicts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from ordercast.errors import TraceError
from ordercast.trace.importers.edn_words import FlawError, Keyword, Symbol, atom, tokens

__all__ = ["EdnSet", "Keyword", "Symbol", "read_edn"]

_CLOSES = {"(": ")", "[": "]", "{": "}", "#{": "}"}
BEGINS = ("{", "#", ";", "]", ")")
"""How a line may begin at which reading goes on after a form that is torn."""
Refuse = Callable[[int, str], None]


class EdnSet(tuple[Any, ...]):
    """The elements of a set, in the order in which they are written."""

    __slots__ = ()


class _Open(NamedTuple):
    bracket: str
    line: int
    forms: list[Any]
    pending: list[bool]
    """What stands before the next form: a discard (True) or a tag (False)."""


def read_edn(
    lines: Iterable[str], *, name: str, refuse: Refuse | None = None
) -> Iterator[tuple[int, Any]]:
    """Each form with the line on which it begins. The elements of a vector or list around
    everything are forms of their own, so that a history written as one can be read in pieces.

    `refuse` hears what cannot be read, and where; if it does not raise, the form is left out."""

    def raise_it(line: int, reason: str) -> None:
        raise TraceError(f"{name}, line {line}: {reason}")

    yield from _Reader(lines, refuse or raise_it).forms()


class _Reader:
    def __init__(self, lines: Iterable[str], refuse: Refuse) -> None:
        self._lines = _Lines(lines)
        self._refuse = refuse
        self._stack = [_Open("", 0, [], [])]
        self._begun = 0
        """The line on which the form begins that is being read."""
        self._flaw: FlawError | None = None
        """Why that form cannot be used, although it is known where it ends."""
        self._torn = False
        """Was there a form of which it is not known where it ends?"""

    def forms(self) -> Iterator[tuple[int, Any]]:
        while True:
            try:
                for number, kind, text in tokens(self._lines):
                    yield from self._take(number, kind, text)
                self._end()
            except FlawError as flaw:
                self._refuse(flaw.line, flaw.reason)
                self._go_on_behind(flaw.line if self._is_between() else self._begun)
            else:
                return

    def _take(self, number: int, kind: str, text: str) -> Iterator[tuple[int, Any]]:
        stack = self._stack
        if kind in ("discard", "tag"):
            stack[-1].pending.append(kind == "discard")
            return
        if self._is_between() and kind != "close":
            self._begun = number
            self._lines.forget_before(number)
        if kind == "open":
            stack.append(_Open(text, number, [], []))
            return
        if kind == "close" and _CLOSES.get(stack[-1].bracket) != text:
            expected = (
                f"expected {_CLOSES[stack[-1].bracket]!r}" if stack[1:] else "nothing is open"
            )
            flaw = FlawError(number, f"{text!r} where {expected}")
            if not self._is_between():
                raise flaw
            self._refuse(flaw.line, flaw.reason)
            return
        form = None
        try:
            form = _closed(stack, number) if kind == "close" else atom(kind, text, number)
        except FlawError as flaw:
            self._flaw = self._flaw or flaw
        if form is _OUTER:
            return
        if _is_kept(stack[-1]):
            stack[-1].forms.append(form)
        yield from self._finished()

    def _is_between(self) -> bool:
        """Is no form being read?"""
        return len(self._stack) == 1 or (
            len(self._stack) == 2 and self._stack[1].bracket in ("[", "(")
        )

    def _finished(self) -> Iterator[tuple[int, Any]]:
        if not self._is_between():
            return
        forms = self._stack[-1].forms
        if self._flaw is not None:
            self._refuse(self._flaw.line, self._flaw.reason)
        elif not any(self._stack[0].pending):
            yield from ((self._begun, form) for form in forms)
        self._flaw = None
        forms.clear()

    def _end(self) -> None:
        """Nothing may be open; but what is torn may have taken along the end of what is around."""
        if not self._stack[1:]:
            return
        top = self._stack[-1]
        flaw = FlawError(top.line, f"{top.bracket!r} is never closed")
        if not self._is_between():
            raise flaw
        if not self._torn:
            self._refuse(flaw.line, flaw.reason)

    def _go_on_behind(self, line: int) -> None:
        """What is around the torn form stays."""
        self._torn, self._flaw = True, None
        around = 2 if self._stack[1:] and self._stack[1].bracket in ("[", "(") else 1
        del self._stack[around:]
        self._stack[-1].forms.clear()
        self._stack[-1].pending.clear()
        self._lines.go_back_behind(line)


class _Lines:
    """Numbered, and kept for as long as reading may have to go back to them."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._rest = enumerate(lines, start=1)
        self._kept: deque[tuple[int, str]] = deque()
        self._again: deque[tuple[int, str]] = deque()
        self._torn = False

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return self

    def __next__(self) -> tuple[int, str]:
        while True:
            line = self._again.popleft() if self._again else next(self._rest)
            # The rest of a torn form is no form.
            if not self._torn or line[1].lstrip().startswith(BEGINS):
                break
        self._torn = False
        self._kept.append(line)
        return line

    def forget_before(self, number: int) -> None:
        while self._kept and self._kept[0][0] < number:
            self._kept.popleft()

    def go_back_behind(self, number: int) -> None:
        self._torn = True
        self.forget_before(number + 1)
        self._again.extendleft(reversed(self._kept))
        self._kept.clear()


_OUTER = object()


def _closed(stack: list[_Open], number: int) -> Any:
    top = stack.pop()
    if top.pending:
        raise FlawError(number, "a tag or discard with no form after it")
    if top.bracket == "{":
        if len(top.forms) % 2:
            raise FlawError(number, "a map with a key that has no value")
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
