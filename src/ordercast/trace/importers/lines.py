"""The lines of a text file, all of them or a portion, each with its place."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

from ordercast.errors import TraceError
from ordercast.trace.importers.base import Job, Where
from ordercast.trace.jsonl import MARK

__all__ = ["lines_between", "numbered_lines", "refuse_packed"]

CHUNK = 1 << 20
PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0", b"BZh91AY&SY")
"""What files begin with that gzip, zstd, xz and bzip2 have made."""


def numbered_lines(
    job: Job, file: Path, *, blank: bool = False
) -> Generator[tuple[Where, str], None, None]:
    """Line by line, with its place; blank lines count, and are left out unless asked for."""
    name, waiting = str(file), 0
    start, stop, before = job.portion or (0, None, 0)
    for number, line in enumerate(lines_between(file, start, stop), start=before + 1):
        if number == 1:
            refuse_packed(file, line)
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


def refuse_packed(file: Path, head: bytes) -> None:
    if head.startswith(PACKED):
        raise TraceError(f"{file}: it is compressed: unpack it first")


def lines_between(file: Path, start: int, stop: int | None) -> Iterator[bytes]:
    """The lines that begin in this range of bytes: every line is in exactly one of the ranges that
    a file is cut into. The mark that some programs begin a file with is left out."""
    with file.open("rb") as source:
        at = start
        if start:
            source.seek(start - 1)
            at += len(source.readline()) - 1
        for line in source:
            if stop is not None and at >= stop:
                return
            yield line if at else line.removeprefix(MARK)
            at += len(line)
