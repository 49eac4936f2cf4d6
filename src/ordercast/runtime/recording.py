"""The log that a member writes for the trace."""

from __future__ import annotations

from pathlib import Path

from ordercast.errors import UsageError
from ordercast.protocols import catalog
from ordercast.trace import Manifest
from ordercast.trace.span_log import SpanLog

__all__ = ["open_log"]


def open_log(
    directory: Path, me: str, names: tuple[str, ...], algorithm: tuple[str, str], *, run: str
) -> SpanLog:
    """In a directory that all members may share."""
    ordering, dissemination = algorithm
    promises = catalog.promises(ordering, dissemination, crashes=True)
    manifest = Manifest(
        run,
        names,
        order=ordering,
        dissemination=dissemination,
        extra={"promises": list(promises)},
    )
    try:
        return SpanLog(directory, me, run=run, process=names.index(me), manifest=manifest)
    except (FileExistsError, NotADirectoryError):
        file = next((path for path in (directory, *directory.parents) if path.is_file()), directory)
        raise UsageError(
            f"no trace can be written to {directory}: {file} is a file: name a directory"
        ) from None
    except OSError as error:
        where = "" if error.filename in (None, str(directory)) else f" ({error.filename})"
        raise UsageError(
            f"no trace can be written to {directory}: {error.strerror}{where}; choose a directory "
            "that can be written to, on a disk that has room"
        ) from None
