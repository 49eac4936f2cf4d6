"""One run of a trace that may have many, read as a stream."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from ordercast.errors import TraceError, UsageError
from ordercast.trace.directory import event_files, read_events, read_manifests
from ordercast.trace.event import Event
from ordercast.trace.manifest import Manifest

__all__ = ["Id", "OneRun", "parse_id", "text", "without_contradiction"]

Id = tuple[int, int]
"""A message: its origin and its number there."""
_LIKE_AN_INDEX = re.compile(r"p?\d*")
_PAGE = 10
"""Whether a place is taken is a bit, and two to the power of this are kept together."""


def text(message: Id) -> str:
    return f"{message[0]}:{message[1]}"


def parse_id(word: str) -> Id:
    match = re.fullmatch(r"(\d{1,10}):(\d{1,19})", word, re.ASCII)
    if match is None:
        raise UsageError(f"{word!r} is not a message: say its origin and its number, such as 0:3")
    return int(match[1]), int(match[2])


def without_contradiction(events: Iterable[Event], trace: Path) -> Iterator[Event]:
    """The same events. Two at one position of a process are refused, as the judge does: which of
    them happened, nobody can say, and a row that is there twice would count twice. So are two that
    sent the same message."""
    positions, numbers = _Taken(), _Taken()
    for event in events:
        if not positions.take(event.run, event.process, event.position):
            raise TraceError(
                f"{trace}: run {event.run!r} has two events of process {event.process} at position "
                f"{event.position}"
            )
        if event.kind == "send" and event.origin is not None and event.number is not None:
            message = event.origin, event.number
            if not numbers.take(event.run, *message):
                words = f"has two send rows for {text(message)}"
                raise TraceError(f"{trace}: run {event.run!r} {words}")
        yield event


class _Taken:
    """Places of processes that something is at already."""

    def __init__(self) -> None:
        self._pages: dict[tuple[str, int, int], bytearray] = {}

    def take(self, run: str, process: int, place: int) -> bool:
        """Whether it was free."""
        where = run, process, place >> _PAGE
        page = self._pages.get(where)
        if page is None:
            page = self._pages[where] = bytearray(1 << _PAGE - 3)
        byte, bit = place % (1 << _PAGE) >> 3, 1 << place % 8
        if page[byte] & bit:
            return False
        page[byte] |= bit
        return True


class OneRun:
    """The run that was named, or the only one there is."""

    def __init__(self, trace: Path, run: str | None = None) -> None:
        event_files(trace)  # or why there are none
        self.trace = trace
        self.manifests = {manifest.run: manifest for manifest in read_manifests(trace)}
        self.name = run
        self.named = run is not None
        """Did someone ask for this run?"""
        if run is None and len(self.manifests) == 1:
            [self.name] = self.manifests
        if run is not None and run not in self.manifests:
            self._require_event()  # or else its processes would be looked for in vain

    @property
    def manifest(self) -> Manifest | None:
        return None if self.name is None else self.manifests.get(self.name)

    def events(self) -> Iterator[Event]:
        """In the order of the files; another run than the one that is meant is passed over."""
        return without_contradiction(self._events(), self.trace)

    def _events(self) -> Iterator[Event]:
        if self.name is None and len(self.manifests) > 1:
            raise self._several(*list(self.manifests)[:2])
        found = False
        for event in read_events(self.trace):
            if self.name is None:
                self.name = event.run
            if event.run == self.name:
                found = True
                yield event
            elif not self.named:
                raise self._several(self.name, event.run)
        if not found:
            raise self._no_event()

    def _require_event(self) -> None:
        if all(event.run != self.name for event in read_events(self.trace)):
            raise self._no_event()

    def _no_event(self) -> TraceError:
        what = "no event" if self.name is None else f"no event of a run {self.name!r}"
        return TraceError(f"{self.trace}: there is {what} in it")

    def _several(self, one: str, two: str) -> UsageError:
        return UsageError(
            f"{self.trace}: there are several runs, {one!r} and {two!r} among them: choose one "
            "with --run"
        )

    def who(self, process: int) -> str:
        names = self.manifest.processes if self.manifest else ()
        return names[process] if process < len(names) and names[process] else f"p{process}"

    def called(self, message: str) -> str:
        """By the name of its process, such as a:3, where names are more than p0, p1 and so on, and
        nobody could take one for an index."""
        names = self.manifest.processes if self.manifest else ()
        origin, _, number = message.partition(":")
        if int(origin) >= len(names) or any(_LIKE_AN_INDEX.fullmatch(name) for name in names):
            return message
        return f"{names[int(origin)]}:{number}"

    def process(self, word: str) -> int:
        """The process that is meant: by its name, its index, or its index as in p2."""
        names = self.manifest.processes if self.manifest else ()
        if word in names:
            return names.index(word)
        match = re.fullmatch(r"p?(\d{1,10})", word, re.ASCII)
        if match is None or (names and int(match[1]) >= len(names)):
            known = (
                "" if not names else f": choose from {', '.join(map(self.who, range(len(names))))}"
            )
            raise UsageError(f"{self.trace}: there is no process {word!r} in it{known}")
        return int(match[1])

    def message(self, word: str) -> Id:
        """The message that is meant: 0:3, p0:3, or the third of a process by its name."""
        origin, _, number = word.rpartition(":")
        if origin and not origin.isdecimal() and re.fullmatch(r"\d{1,19}", number, re.ASCII):
            return self.process(origin), int(number)
        return parse_id(word)
