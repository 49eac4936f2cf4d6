"""ShiViz and GoVector logs: text with a vector clock for each event.

The user's regular expression finds host, clock and event in one line or in several. Who sent what
is read off the events' words where they tell (`--send`, `--receive`), and otherwise off the clocks;
`clocks.py` says what these can show.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Generator, Iterator
from itertools import islice
from pathlib import Path

import msgspec

from ordercast.errors import TraceError
from ordercast.trace.importers.base import (
    Importer,
    Job,
    Log,
    Where,
    compiled,
)
from ordercast.trace.importers.inference import SHARE, infer
from ordercast.trace.importers.lines import numbered_lines
from ordercast.trace.importers.stamped import Stamped
from ordercast.trace.importers.store import Store, gathered

__all__ = ["LAYOUTS", "SHIVIZ", "parser_of", "stamped_events"]

LAYOUTS = {
    "clock first": r"^(?:(?<timestamp>\d+) )?(?<host>\S+) (?<clock>\{.*\})\n(?<event>.*)$",
    "event first": r"^(?<event>.*)\n(?<host>\S+) (?<clock>\{.*\})$",
}
HEAD_LINES = 20
TAIL_BYTES = 1 << 16
_CLOCK_LINE = re.compile(r"(\d+ )?\S+ \{.*\}$")
_decode = msgspec.json.Decoder(dict[str, int]).decode


def read(job: Job) -> Generator[Log, None, None]:
    parser = parser_of(job)  # may refuse, and a store that is open by then would stay so
    store = Store(job, before=SHARE)
    events = (event for file in job.files for event in stamped_events(job, file, parser))
    yield from gathered(job, infer(job, store, events), store=store)


def parser_of(job: Job) -> str:
    """The user's, or that of the layout which the first file has, for all of them."""
    parser = job.options.parser or _layout(job)
    compiled(parser, "--parser", needs=["host", "clock", "event"])
    return parser


def stamped_events(job: Job, file: Path, parser: str) -> Iterator[Stamped]:
    """What one file says."""
    pattern, delimiter, found = compiled(parser, "--parser"), job.options.delimiter, False
    ends = compiled(delimiter, "--delimiter") if delimiter is not None else None
    for where, run, match in _matches(job, file, pattern, ends):
        found = True
        event = _stamped(job, where, run, match)
        if event is not None:
            yield event
    if not found:
        raise TraceError(f"{file}: the parser {pattern.pattern!r} finds no event in it")


def _matches(
    job: Job, file: Path, parser: re.Pattern[str], ends: re.Pattern[str] | None
) -> Iterator[tuple[Where, str, re.Match[str]]]:
    """A window of as many lines as the parser speaks of moves over the file."""
    size = parser.pattern.count("\\n") + 1
    window: deque[tuple[Where, str]] = deque()
    run, executions, passed_over = job.run, 0, 0
    for where, line in numbered_lines(job, file, blank=True):
        end = ends.search(line) if ends is not None else None
        if end is not None:
            passed_over += len(window)
            window.clear()
            executions += 1
            run = end.groupdict().get("trace") or f"{job.run} {executions}"
            continue
        window.append((where, line))
        if len(window) < size:
            continue
        match = parser.search("\n".join(text for _, text in window))
        if match is None:
            window.popleft()
            passed_over += 1
        else:
            yield window[0][0], run, match
            window.clear()
    passed_over += len(window)
    if passed_over:
        job.report.note(f"{file.name}: the parser passes over {passed_over} lines")


def _stamped(job: Job, where: Where, run: str, match: re.Match[str]) -> Stamped | None:
    host = match["host"]
    try:
        clock = _decode(match["clock"])
    except msgspec.DecodeError as error:
        job.report.unusable(where, f"not a vector clock: {error}")
        return None
    if not 0 <= min(clock.values(), default=0) <= max(clock.values(), default=0) < 2**61:
        job.report.unusable(where, "an entry of the clock is negative or too large")
        return None
    if clock.get(host, 0) < 1:
        job.report.unusable(where, f"the clock of {host} needs an entry of its own, from 1 up")
        return None
    stamp = match.groupdict().get("timestamp")
    time_us = int(stamp) // 1000 if stamp and re.fullmatch(r"\d{1,18}", stamp, re.ASCII) else None
    known = {name: time for name, time in clock.items() if time}
    return Stamped(run, host, known, match["event"], time_us, where)


def _layout(job: Job) -> str:
    """Which of the usual ones it is: a log that begins with a clock, or does not end with one, has
    each clock before its event."""
    file = job.files[0]
    head = [line for _, line in islice(numbered_lines(job, file), HEAD_LINES)]
    if not any(map(_CLOCK_LINE.match, head)):
        raise TraceError(
            f"{file}: none of its first lines is a host and a clock, such as "
            "'a {\"a\":1}': say with --parser where host, clock and event are"
        )
    with file.open("rb") as source:
        source.seek(max(0, file.stat().st_size - TAIL_BYTES))
        last = source.read().decode(errors="replace").rstrip().rpartition("\n")[2]
    clock_first = _CLOCK_LINE.match(head[0]) or not _CLOCK_LINE.match(last)
    return LAYOUTS["clock first" if clock_first else "event first"]


def looks(file: Path, head: list[str]) -> bool:
    return any(_CLOCK_LINE.match(line) for line in head[:4])


SHIVIZ = Importer(
    "shiviz",
    "ShiViz and GoVector logs: text with vector clocks",
    ("parser", "delimiter", "send", "receive", "to", "crashed"),
    looks,
    read,
)
