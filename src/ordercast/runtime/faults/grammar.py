"""Fault plans as people write them:

kill:1@2s, pause:2@1s+500ms, partition:0|1,2@3s+1s, delay:20ms±10ms, loss:0>1=1%@1s+2s

What simulations call `crash:1@2s` and `delay:10ms..30ms` is understood here too.
"""

from __future__ import annotations

import re
from collections.abc import Callable

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
from ordercast.runtime.faults.reader import DIGITS, EXAMPLES, NUMBER, WORD, Reader

__all__ = ["GRAMMAR", "parse_faults"]

GRAMMAR = {
    "kill:P@TIME": "process P is killed (SIGKILL) at TIME; also crash:P@TIME",
    "kill:P@TIME+LENGTH": "and LENGTH later it is started again, with its journal",
    "pause:P@TIME+LENGTH": "process P stands still (SIGSTOP) for LENGTH",
    "slow:P@TIME+LENGTH": "the application of process P reads nothing for LENGTH",
    "partition:0|1,2@TIME+LENGTH": "nothing passes between the sides for LENGTH",
    "delay:20ms±10ms": "whatever passes takes so long, give or take; also 20ms+-10ms or 10ms..30ms",
    "loss:1%": "that share of what passes is lost, and the connection breaks there",
    "delay:0>1=20ms@TIME+LENGTH": "a delay or a loss only from 0 to 1, only for LENGTH, or both",
}

_COMMA = re.compile(r"\s*,\s*")
_SPACE = re.compile(r"\s*")
_LOSS_MAX_PPM = 500_000
_ONLY_SIMULATED = {
    "duplicate": "connections bring nothing twice",
    "fifo": "connections keep their order anyway",
}


def parse_faults(text: str) -> Faults:
    """The plan, or a `UsageError` that says what is wrong, where, and what to write instead."""
    reader = Reader(text)
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


def _fault(reader: Reader) -> Fault:
    reader.kind = None
    start = reader.place
    kind = reader.take(WORD)
    if kind is None:
        raise reader.mistake("the name of a fault belongs here")
    if kind in _ONLY_SIMULATED:
        why = _ONLY_SIMULATED[kind]
        raise reader.mistake(f"there is no {kind!r} between real processes: {why}", at=start)
    if kind == "crash":
        kind = "kill"
    if kind not in EXAMPLES:
        raise reader.mistake(f"there is no fault {kind!r}", at=start)
    reader.kind = kind
    if not reader.skip(":"):
        raise reader.mistake(f"a ':' belongs after {kind!r}")
    return _READERS[kind](reader)


def _kill(reader: Reader) -> Fault:
    process = reader.process()
    if reader.text.startswith("#", reader.place):
        raise reader.mistake("only a simulation can count what a process sends: say when")
    return Kill(process, reader.span(ends=False))


def _pause(reader: Reader) -> Fault:
    return Pause(reader.process(), reader.span(ends=True))


def _slow(reader: Reader) -> Fault:
    return Slow(reader.process(), reader.span(ends=True))


def _partition(reader: Reader) -> Fault:
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


def _delay(reader: Reader) -> Fault:
    link = _link(reader)
    mean_us, jitter_us = reader.time_us(), 0
    start = reader.place
    if reader.skip("±") or reader.skip("+-"):
        jitter_us = reader.time_us()
    elif reader.skip(".."):
        jitter_us = (reader.time_us() - mean_us) // 2
        mean_us += jitter_us
    if jitter_us < 0:
        raise reader.mistake("the shorter time comes first", at=start)
    if jitter_us > mean_us:
        raise reader.mistake(
            f"give or take {written(jitter_us)} is more than the delay of {written(mean_us)} "
            "itself",
            at=start,
        )
    return Delay(mean_us, jitter_us, link, _when(reader))


def _loss(reader: Reader) -> Fault:
    link = _link(reader)
    start = reader.place
    number = reader.take(NUMBER)
    if number is None or not reader.skip("%"):
        raise reader.mistake("a share in percent belongs here", at=start)
    ppm = round(float(number) * 10_000)
    if ppm > _LOSS_MAX_PPM:
        raise reader.mistake("when more than 50% are lost, hardly a connection is made", at=start)
    if abs(ppm - float(number) * 10_000) > 1e-6:
        raise reader.mistake("a share has up to four digits after the point", at=start)
    return Loss(ppm, link, _when(reader))


def _link(reader: Reader) -> tuple[int, int] | None:
    """`0>1=`, if that is what comes."""
    start = reader.place
    source = reader.take(DIGITS)
    if source is None or not reader.skip(">"):
        reader.place = start
        return None
    to = reader.process()
    if to == int(source):
        raise reader.mistake(f"process {to} has no link to itself", at=start)
    if not reader.skip("="):
        raise reader.mistake("a '=' belongs between the link and what happens on it")
    return int(source), to


def _when(reader: Reader) -> Span:
    return reader.span(ends=False) if reader.text.startswith("@", reader.place) else Span()


_READERS: dict[str, Callable[[Reader], Fault]] = {
    "kill": _kill,
    "pause": _pause,
    "slow": _slow,
    "partition": _partition,
    "delay": _delay,
    "loss": _loss,
}
