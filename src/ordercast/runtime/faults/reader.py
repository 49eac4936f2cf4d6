"""Reads a fault plan word by word, and says where a mistake is and what to write instead."""

from __future__ import annotations

import re

from ordercast.errors import UsageError
from ordercast.runtime.faults.kinds import Span

__all__ = ["DIGITS", "EXAMPLES", "NUMBER", "WORD", "Reader"]

EXAMPLES = {
    "kill": "kill:1@2s or kill:1@2s+500ms",
    "pause": "pause:2@1s+500ms",
    "slow": "slow:2@1s+500ms",
    "partition": "partition:0|1,2@3s+1s",
    "delay": "delay:20ms±10ms or delay:0>1=20ms@1s+2s",
    "loss": "loss:1% or loss:0>1=1%@1s+2s",
}
"""How each kind of fault is written."""

NUMBER = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
DIGITS = re.compile(r"\d{1,99}", re.ASCII)
WORD = re.compile(r"[A-Za-z_]+")
_UNIT_US = {"us": 1, "ms": 1_000, "s": 1_000_000}
_TIME_MAX_US = 86_400_000_000


class Reader:
    """A place in the text, and what the fault there should look like."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0
        self.kind: str | None = None

    @property
    def at_end(self) -> bool:
        return self.place == len(self.text)

    def take(self, pattern: re.Pattern[str]) -> str | None:
        found = pattern.match(self.text, self.place)
        if found is None:
            return None
        self.place = found.end()
        return found[0]

    def skip(self, sign: str) -> bool:
        there = self.text.startswith(sign, self.place)
        self.place += len(sign) if there else 0
        return there

    def mistake(self, what: str, *, at: int | None = None) -> UsageError:
        at = self.place if at is None else at
        rest = self.text[at : at + 20]
        where = f"at its end, after {self.text[-20:]!r}" if not rest else f"at {rest!r}"
        if self.kind is None:
            instead = f"one of {', '.join(EXAMPLES)}"
        else:
            instead = f"it like {EXAMPLES[self.kind]}"
        return UsageError(f"the fault plan, character {at + 1}, {where}: {what}; write {instead}")

    def process(self) -> int:
        digits = self.take(DIGITS)
        if digits is None:
            raise self.mistake("the number of a process belongs here")
        return int(digits)

    def time_us(self) -> int:
        start = self.place
        number = self.take(NUMBER)
        if number is None:
            raise self.mistake("a time belongs here, a number with a unit (us, ms, s)")
        unit = self.take(WORD)
        if unit is None:
            raise self.mistake(f"{number} of what? a time has a unit (us, ms, s)", at=start)
        if unit not in _UNIT_US:
            raise self.mistake(f"{unit!r} is no unit of time (us, ms, s)", at=start)
        whole, _, fraction = number.partition(".")
        size = _UNIT_US[unit]
        digits = len(str(size)) - 1
        if len(fraction.rstrip("0")) > digits:
            raise self.mistake("there is nothing shorter than a microsecond", at=start)
        us = int(whole) * size + int(fraction.rstrip("0").ljust(digits, "0") or 0)
        if us > _TIME_MAX_US:
            raise self.mistake("that is longer than a day", at=start)
        return us

    def span(self, *, ends: bool) -> Span:
        """`@TIME+LENGTH`, or just `@TIME` if it need not end."""
        if not self.skip("@"):
            raise self.mistake("a time with '@' in front belongs here: when does it happen?")
        start_us = self.time_us()
        if not self.skip("+"):
            if ends:
                raise self.mistake(
                    "a length with '+' in front belongs here: how long is it to last?"
                )
            return Span(start_us)
        start = self.place
        length_us = self.time_us()
        if length_us == 0:
            raise self.mistake("it has to last longer than no time", at=start)
        return Span(start_us, length_us)
