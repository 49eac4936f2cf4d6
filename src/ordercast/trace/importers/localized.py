"""Localized causal order: only chosen processes' messages become dependencies.

A message of x depends on the earlier ones of x, and on those that x had delivered from the
processes that affect x. If all deliver in FIFO order, it is enough to look at what x itself had
delivered: what these depend on follows by induction. FIFO order is part of the property, so a gap
is a violation too. Kept in memory: a few numbers for each broadcast, nothing for deliveries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from ordercast.errors import TraceError
from ordercast.trace.verdicts import Outcome, Verdict, Witness

__all__ = ["judge_localized", "read_dependencies"]

Affects = dict[str, tuple[str, ...]]


class Step(Protocol):
    @property
    def sender(self) -> str: ...
    @property
    def number(self) -> int: ...
    @property
    def broadcast(self) -> bool: ...


Logs = Mapping[str, Callable[[], Iterator[Step]]]


def read_dependencies(file: Path) -> Affects:
    """The course's configuration: the number of messages, then a line `i j k …` per process: i is
    affected by j, k, …"""
    affects: Affects = {}
    lines = file.read_text().splitlines()
    for row, line in enumerate(lines[1:], start=2):
        words = line.split()
        if not all(word.isascii() and word.isdecimal() and len(word) < 19 for word in words):
            raise TraceError(f"{file}, line {row}: expected numbers of processes, found {line!r}")
        if words:
            name, *others = (str(int(word)) for word in words)
            affects[name] = tuple(other for other in others if other != name)
    if not affects:
        raise TraceError(f"{file}: no process and what affects it, from the second line on")
    return affects


def judge_localized(run: str, names: list[str], affects: Affects, logs: Logs) -> Verdict:
    needs = {name: _needs(log(), affects.get(name, ())) for name, log in logs.items()}
    checked, violations, unknown = 0, 0, False
    witness: Witness | None = None
    for process, name in enumerate(names):
        had = dict.fromkeys(names, 0)
        for step in logs[name]() if name in logs else ():
            if step.broadcast:
                continue
            checked += 1
            others = needs.get(step.sender, {}).get(step.number)
            unknown |= others is None
            wanted = [(step.sender, step.number - 1)]
            wanted += zip(affects.get(step.sender, ()), others or (), strict=False)
            lacks = next(((who, upto) for who, upto in wanted if had.get(who, 0) < upto), None)
            if lacks is not None:
                violations += 1
                witness = witness or _witness(process, names, step, lacks)
            had[step.sender] = max(had.get(step.sender, 0), step.number)
    outcome: Outcome = "violated" if violations else "unknown" if unknown else "holds"
    return Verdict(run, "localized_causal", outcome, checked, violations, witness)


def _needs(log: Iterator[Step], affecting: tuple[str, ...]) -> dict[int, tuple[int, ...]]:
    """For each broadcast, how many messages of each affecting process were delivered before."""
    had = dict.fromkeys(affecting, 0)
    found: dict[int, tuple[int, ...]] = {}
    vector = tuple(had.values())
    for step in log:
        if step.broadcast:
            found[step.number] = vector
        elif step.sender in had:
            had[step.sender] = max(had[step.sender], step.number)
            vector = tuple(had.values())
    return found


def _witness(process: int, names: list[str], step: Step, lacks: tuple[str, int]) -> Witness:
    origin = names.index(step.sender)
    m, n = f"{names.index(lacks[0])}:{lacks[1]}", f"{origin}:{step.number}"
    sentence = f"{n} depends on {m}, but {names[process]} delivered {n} without it"
    return Witness(process, (m, n), sentence)
