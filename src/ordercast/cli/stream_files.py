"""What both streams let their user say about files that Spark is to read."""

from __future__ import annotations

import argparse
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ordercast.cli.spark import pairs
from ordercast.cli.steps import Steps
from ordercast.errors import UsageError

__all__ = [
    "add_file_arguments",
    "alone_with",
    "file_stream",
    "reader_options",
    "require_directory",
]


def add_file_arguments(parser: argparse.ArgumentParser, *, format: str | None, help: str) -> None:
    add: Any = parser.add_argument
    add("--format", default=format, help=help)
    add("--schema", metavar="DDL",
        help="such as 'room string, origin int' (default: as in the files there)")  # fmt: skip
    add("--option", action="append", default=[], metavar="KEY=VALUE", help="for Spark's reader")


def reader_options(options: argparse.Namespace) -> dict[str, str]:
    """What `--option` says."""
    return pairs("--option", options.option)


def require_directory(source: str) -> None:
    """Told before Spark starts, which takes seconds; what is not on this machine is Spark's."""
    if (
        "://" not in source
        and not any(sign in source for sign in "*?[{")
        and not Path(source).exists()
    ):
        raise UsageError(f"{source}: there is no such directory")


@contextmanager
def alone_with(checkpoint: Path | None) -> Iterator[None]:
    """Two that go on from one checkpoint would write the same batches, each with what it has read.
    Where there are no locks, nobody can tell; a directory made in vain is gone afterwards."""
    if checkpoint is None:
        yield
        return
    checkpoint.mkdir(parents=True, exist_ok=True)
    lock = os.open(checkpoint, os.O_RDONLY)
    try:
        with suppress(OSError):
            _take(lock, checkpoint)
        try:
            yield
        finally:
            with suppress(OSError):
                checkpoint.rmdir()
    finally:
        os.close(lock)


def _take(lock: int, checkpoint: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(
            f"{checkpoint}: another command goes on from this checkpoint: stop it first, or give "
            "--checkpoint another directory"
        ) from None


def file_stream(spark: Any, source: str, options: argparse.Namespace, doing: Steps) -> Any:
    """A streaming DataFrame. Says which columns it has found, where it had to look for them."""
    from ordercast.pipeline import streaming

    found = streaming.read_files(
        spark, source, format=options.format, schema=options.schema, options=reader_options(options)
    )
    if options.schema is None:
        columns = found.schema.simpleString()[7:-1]
        doing.note(f"columns, as in the files that are there: {columns}")
    return found
