"""Where results go: a stdout that may be closed early, a page that must be possible to write, and
not into what they are made of."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ordercast.errors import UsageError
from ordercast.trace.directory import MANIFEST
from ordercast.trace.spans import log_files

__all__ = ["ReaderGoneError", "answering", "refuse_output", "refuse_overwriting"]


class ReaderGoneError(BrokenPipeError):
    """Nobody reads our output any more, and the exit code was known already."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code


@contextmanager
def answering(code: int) -> Iterator[None]:
    """While the answer is printed: a reader that has seen enough of it (`| head`) does not change
    the exit code."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise ReaderGoneError(code) from None


def refuse_output(page: Path) -> None:
    """What cannot be written is told before anything is judged, which takes long."""
    if page.is_dir():
        raise UsageError(f"-o {page} is a directory: name a file, such as {page / 'report.html'}")
    if not page.parent.is_dir():
        raise UsageError(f"-o {page}: there is no directory {page.parent}: make it first")


def refuse_overwriting(flag: str, output: Path, *sources: Path | None) -> None:
    """What is read stays as it is: a file is not replaced, and a trace gets no events from us."""
    target = _real(output)
    for source in filter(None, sources):
        if target in _files_of(source) or target.is_relative_to(_real(source / "events")):
            raise UsageError(
                f"{flag} {output} would be written into what is read, {source}: choose another "
                "place"
            )


def _files_of(source: Path) -> set[Path]:
    """Those of a trace, whether it has them or not; or the file that it is."""
    if not source.is_dir():
        return {_real(source)}
    parts = (source / MANIFEST, source / "events.jsonl", *source.glob("events/*"))
    return set(map(_real, (*parts, *log_files(source))))


def _real(path: Path) -> Path:
    """`Path.resolve` would not take a link that leads to itself."""
    return Path(os.path.realpath(path))
