"""The lines of a text file, all of them or a portion, each with its place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ordercast.trace.importers.base import Job, Where

__all__ = ["lines_between", "numbered_lines"]

CHUNK = 1 << 20


def numbered_lines(job: Job, file: Path, *, blank: bool = False) -> Iterator[tuple[Where, str]]:
    """Line by line, with its place; blank lines count, and are left out unless asked for."""
    name, waiting = str(file), 0
    start, stop, before = job.portion or (0, None, 0)
    for number, line in enumerate(lines_between(file, start, stop), start=before + 1):
        waiting += len(line)
        if waiting > CHUNK:
            job.advance(waiting)
            waiting = 0
        try:
            text = line.decode()
        except UnicodeDecodeError:
            job.report.unusable(Where(name, number), "not text in UTF-8")
            continue
        if blank or text.strip():
            yield Where(name, number), text.rstrip("\r\n")
    job.advance(waiting)


def lines_between(file: Path, start: int, stop: int | None) -> Iterator[bytes]:
    """The lines that begin in this range of bytes: every line is in exactly one of the ranges that
    a file is cut into."""
    with file.open("rb") as source:
        at = start
        if start:
            source.seek(start - 1)
            at += len(source.readline()) - 1
        for line in source:
            if stop is not None and at >= stop:
                return
            at += len(line)
            yield line
