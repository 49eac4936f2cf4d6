"""Fault plans as people write them:

kill:1@2s, pause:2@1s+500ms, partition:0|1,2@3s+1s, delay:20ms±10ms, loss:0>1=1%@1s+2s
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ordercast.errors import UsageError
from ordercast.runtime.faults.kinds import (
    Delay,
    Fault,
    Faults,
    Kill,
    Loss,
    Partition,
    Pause,
    Slow,
    Span,
    written,
)

__all__ = ["GRAMMAR", "parse_faults"]

GRAMMAR = {
    "kill:P@TIME": "process P is killed (SIGKILL) at TIME",
    "kill:P@TIME+LENGTH": "and LENGTH later it is started again, with its journal",
    "pause:P@TIME+LENGTH": "process P stands still (SIGSTOP) for LENGTH",
    "slow:P@TIME+LENGTH": "the application of process P reads nothing for LENGTH",
    "partition:0|1,2@TIME+LENGTH": "nothing passes between the sides for LENGTH",
    "delay:20ms±10ms": "whatever passes takes so long, give or take; also 20ms+-10ms",
    "loss:1%": "that share of what passes is lost, and the connection breaks there",
    "delay:0>1=20ms@TIME+LENGTH": "a delay or a loss only from 0 to 1, only for LENGTH, or both",
}

_EXAMPLES = {
    "kill": "kill:1@2s or kill:1@2s+500ms",
    "pause": "pause:2@1s+500ms",
    "slow": "slow:2@1s+500ms",
    "partition": "partition:0|1,2@3s+1s",
    "delay": "delay:20ms±10ms or delay:0>1=20ms@1s+2s",
    "loss": "loss:1% or loss:0>1=1%@1s+2s",
}
_UNIT_US = {"us": 1, "ms": 1_000, "s": 1_000_000}
_NUMBER = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
_DIGITS = re.compile(r"\d{1,9}", re.ASCII)
_WORD = re.compile(r"[A-Za-z_]+")
_COMMA = re.compile(r"\s*,\s*")
_SPACE = re.compile(r"\s*")
_TIME_MAX_US = 86_400_000_000
_LOSS_MAX_PPM = 500_000


def parse_faults(text: str) -> Faults:
    """The plan, or a `UsageError` that says what is wrong, where, and what to write instead."""
    reader = _Reader(text)
    faults: list[Fault] = []
    reader.take(_SPACE)
    while not (reader.at_end and not faults):
        faults.append(_fault(reader))
        reader.take(_SPACE)
        if reader.at_end:
            break
        if reader.take(_COMMA) is None:
            raise reader.mistake(
                "nothing more belongs to this fault: a comma comes before the next"
            )
    return Faults(tuple(faults))


class _Reader:
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
            instead = f"one of {', '.join(_EXAMPLES)}"
        else:
            instead = f"it like {_EXAMPLES[self.kind]}"
        return UsageError(f"the fault plan, character {at + 1}, {where}: {what}; write {instead}")

    def process(self) -> int:
        digits = self.take(_DIGITS)
        if digits is None:
            raise self.mistake("the number of a process belongs here")
        return int(digits)

    def time_us(self) -> int:
        start = self.place
        number = self.take(_NUMBER)
        if number is None:
            raise self.mistake("a time belongs here, a number with a unit (us, ms, s)")
        unit = self.take(_WORD)
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


def _fault(reader: _Reader) -> Fault:
    reader.kind = None
    start = reader.place
    kind = reader.take(_WORD)
    if kind is None:
        raise reader.mistake("the name of a fault belongs here")
    if kind not in _EXAMPLES:
        raise reader.mistake(f"there is no fault {kind!r}", at=start)
    reader.kind = kind
    if not reader.skip(":"):
        raise reader.mistake(f"a ':' belongs after {kind!r}")
    return _READERS[kind](reader)


def _kill(reader: _Reader) -> Fault:
    return Kill(reader.process(), reader.span(ends=False))


def _pause(reader: _Reader) -> Fault:
    return Pause(reader.process(), reader.span(ends=True))


def _slow(reader: _Reader) -> Fault:
    return Slow(reader.process(), reader.span(ends=True))


def _partition(reader: _Reader) -> Fault:
    sides: list[list[int]] = [[]]
    while True:
        start = reader.place
        process = reader.process()
        if any(process in side for side in sides):
            raise reader.mistake(f"process {process} is on a side already", at=start)
        sides[-1].append(process)
        if reader.skip("|"):
            sides.append([])
        elif reader.take(_COMMA) is None:
            break
    if len(sides) == 1:
        raise reader.mistake("a second side with '|' in front belongs here: parted from whom?")
    return Partition(tuple(map(tuple, sides)), reader.span(ends=True))


def _delay(reader: _Reader) -> Fault:
    link = _link(reader)
    mean_us, jitter_us = reader.time_us(), 0
    start = reader.place
    if reader.skip("±") or reader.skip("+-"):
        jitter_us = reader.time_us()
    if jitter_us > mean_us:
        raise reader.mistake(
            f"give or take {written(jitter_us)} is more than the delay of {written(mean_us)} "
            "itself",
            at=start,
        )
    return Delay(mean_us, jitter_us, link, _when(reader))


def _loss(reader: _Reader) -> Fault:
    link = _link(reader)
    start = reader.place
    number = reader.take(_NUMBER)
    if number is None or not reader.skip("%"):
        raise reader.mistake("a share in percent belongs here", at=start)
    ppm = round(float(number) * 10_000)
    if ppm > _LOSS_MAX_PPM:
        raise reader.mistake("when more than 50% are lost, hardly a connection is made", at=start)
    if abs(ppm - float(number) * 10_000) > 1e-6:
        raise reader.mistake("a share has up to four digits after the point", at=start)
    return Loss(ppm, link, _when(reader))


def _link(reader: _Reader) -> tuple[int, int] | None:
    """`0>1=`, if that is what comes."""
    start = reader.place
    source = reader.take(_DIGITS)
    if source is None or not reader.skip(">"):
        reader.place = start
        return None
    to = reader.process()
    if to == int(source):
        raise reader.mistake(f"process {to} has no link to itself", at=start)
    if not reader.skip("="):
        raise reader.mistake("a '=' belongs between the link and what happens on it")
    return int(source), to


def _when(reader: _Reader) -> Span:
    return reader.span(ends=False) if reader.text.startswith("@", reader.place) else Span()


_READERS: dict[str, Callable[[_Reader], Fault]] = {
    "kill": _kill,
    "pause": _pause,
    "slow": _slow,
    "partition": _partition,
    "delay": _delay,
    "loss": _loss,
}
