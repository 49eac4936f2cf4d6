"""Logs of course projects: a text file per process, `b SEQ` and `d SENDER SEQ` lines.

    b 1          broadcasts its message 1
    d 2 1        delivers message 1 of process 2

A file is one process's log in its own order, so nothing is sorted and nothing is kept. Everything
is for everyone. With a dependency configuration, localized causal order is judged as well.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import NamedTuple

from ordercast.errors import UsageError
from ordercast.trace.event import Event, Kind
from ordercast.trace.importers.base import (
    Importer,
    Job,
    Log,
    Report,
    Where,
    compiled,
    natural,
)
from ordercast.trace.importers.lines import numbered_lines
from ordercast.trace.importers.localized import judge_localized, read_dependencies

__all__ = ["BROADCAST", "Step", "events_of", "files_by_process", "process_name", "steps"]

LINE = re.compile(r"(?:(b)|d +(\d{1,18})) +(\d{1,19}) *$", re.ASCII)
EXPECTED = "expected 'b SEQ' or 'd SENDER SEQ'"


class Step(NamedTuple):
    where: Where
    sender: str
    """Of the message; the process itself if it broadcasts."""
    number: int
    broadcast: bool


def read(job: Job) -> Generator[Log, None, None]:
    files = files_by_process(job)
    names = list(files)
    job.report.processes[job.run] = names
    for process, name in enumerate(list(names)):
        found = steps(job, files[name], name)
        crashed = name in job.options.crashed
        yield Log(job.run, process, events_of(found, job.run, process, names, crashed=crashed))
    missing = names[len(files) :]
    if missing:
        job.report.incomplete.add(job.run)
        job.report.note(f"there is no log of {', '.join(missing)}")
    if job.options.dependencies is not None:
        affects = read_dependencies(job.options.dependencies)
        quiet = Job(job.files, job.options, Report(skip_bad_rows=True), job.scratch)
        logs = {name: lambda name=name: steps(quiet, files[name], name) for name in files}
        job.report.verdicts.append(judge_localized(job.run, names, affects, logs))
        job.report.promises[job.run] = [
            *("no_duplication", "no_creation", "validity", "agreement", "uniform_agreement"),
            "fifo",
        ]


def steps(job: Job, file: Path, name: str) -> Iterator[Step]:
    """What one file says. Numbers of broadcasts must rise, so that none comes twice."""
    last = 0
    for where, line in numbered_lines(job, file):
        found = LINE.match(line)
        number = int(found[3]) if found else 0
        if found is None or not 1 <= number < 2**63:
            job.report.unusable(where, f"{EXPECTED}, with numbers from 1, and found {line[:60]!r}")
        elif found[1] is None:
            yield Step(where, str(int(found[2])), number, False)
        elif number <= last:
            job.report.unusable(where, f"message {number} is broadcast after message {last}")
        else:
            last = number
            yield Step(where, name, number, True)


def events_of(
    found: Iterator[Step], run: str, process: int, names: list[str], *, crashed: bool = False
) -> Iterator[Event]:
    """The rows of one log. A sender that is not known yet gets the next index."""
    index = {name: place for place, name in enumerate(names)}
    position = -1
    for position, step in enumerate(found):
        origin = index.get(step.sender)
        if origin is None:
            if step.sender not in names:
                names.append(step.sender)
            origin = index[step.sender] = names.index(step.sender)
        kind: Kind = "send" if step.broadcast else "deliver"
        yield Event(run, process, position, kind, origin, step.number)
    if crashed:
        yield Event(run, process, position + 1, "crash")


def process_name(file: Path, pattern: re.Pattern[str] | None) -> str:
    """Whose log it is: the last number in the file's name, or what the user's pattern finds."""
    if pattern is not None:
        found = pattern.search(file.name)
        if found is None:
            raise UsageError(f"--process-pattern finds no process in the name of {file}")
        name = found["process"]
    else:
        name = (re.findall(r"\d+", file.stem) or [file.stem])[-1]
    return str(int(name)) if name.isdecimal() else name


def files_by_process(job: Job) -> dict[str, Path]:
    """Each process and its log, in the natural order of the names."""
    wanted = job.options.process_pattern
    pattern = compiled(wanted, "--process-pattern", needs=["process"]) if wanted else None
    files: dict[str, Path] = {}
    for file in job.files:
        name = process_name(file, pattern)
        if name in files:
            raise UsageError(
                f"{files[name]} and {file} are both the log of process {name}: "
                "say with --process-pattern where the name is"
            )
        files[name] = file
    unknown = set(job.options.crashed) - set(files)
    if unknown:
        raise UsageError(f"--crashed {min(unknown)}: there is no log of that process")
    return dict(sorted(files.items(), key=lambda item: natural(item[0])))


def looks(file: Path, head: list[str]) -> bool:
    return bool(head) and all(LINE.match(line) for line in head)


BROADCAST = Importer(
    "broadcast",
    "a text file per process, lines 'b SEQ' and 'd SENDER SEQ'",
    ("process_pattern", "dependencies", "crashed"),
    looks,
    read,
    as_it_comes=True,
)
