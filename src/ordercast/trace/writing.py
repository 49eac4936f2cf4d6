"""Files that appear when they are whole, and what is said where there is no room for them."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from ordercast.errors import TraceError

__all__ = ["FULL", "appearing", "is_replaceable", "move_to", "named", "naming", "require_free"]

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_HANDLES = ("/dev/fd/", "/dev/std", "/proc/")
"""Where other people's open files have names: writing there is not replacing."""


def named(error: OSError, file: Path) -> OSError:
    """The same error, which says where there is no room, if that is what it is about."""
    if error.errno not in FULL:
        return error
    return OSError(error.errno, os.strerror(error.errno), str(file))


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Within it, a full disk is told with the name of what was to be written there. Whoever closes
    a file after that may fail once more, and with other words: Arrow does."""
    try:
        yield
    except Exception as error:
        first: BaseException | None = error
        while first is not None and not (isinstance(first, OSError) and first.errno in FULL):
            first = first.__context__
        if first is None:
            raise
        raise named(first, file) from None


def is_replaceable(file: Path) -> bool:
    """May another file take its place? Not that of a pipe, a device, or what is open already; and
    not where nothing but this file may be written."""
    if str(file.absolute()).startswith(_HANDLES) or (file.exists() and not file.is_file()):
        return False
    return not file.exists() or os.access(file.resolve().parent, os.W_OK)


@contextmanager
def appearing(file: Path) -> Iterator[Path]:
    """Where to write what becomes the file's content, if nothing goes wrong. A link stays one, and
    what is not replaceable is written to when all is there."""
    if not is_replaceable(file):
        with TemporaryDirectory() as scratch:
            part = Path(scratch) / "part"
            with naming(part):
                yield part
            with naming(file), part.open("rb") as whole, file.open("wb") as out:
                shutil.copyfileobj(whole, out)
        return
    real = file.resolve()
    part = real.with_name(f"{real.name}.part")
    try:
        with naming(file):
            yield part
        if real.exists():
            shutil.copymode(real, part)
        part.replace(real)
    finally:
        part.unlink(missing_ok=True)


def require_free(directory: Path) -> None:
    """Raises a `TraceError` if there is anything that a new directory would replace."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise TraceError(f"{directory}: there is something here already: choose another place")


def move_to(directory: Path, scratch: Path) -> None:
    """Scratch becomes the directory, unless somebody else has made it meanwhile."""
    try:
        scratch.rename(directory)
    except OSError as error:
        require_free(directory)
        raise TraceError(f"{directory}: cannot be written: {error.strerror}") from None
