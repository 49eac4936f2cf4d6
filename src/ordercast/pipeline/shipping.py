"""What a task needs from this machine: ordercast itself, and files that only we can see.

A local master's tasks run here and have both. A cluster's executors get them through Spark, which
puts what it ships into the directory that each executor works in and that its Python looks into
first, so the shipped ordercast wins over an installed one, and two jobs never mix. It is unpacked
there, because compiled kernels are kept beside their sources: those of this machine come along, and
an executor whose processor is of the same kind has nothing to compile.

Other people's packages do not ship: `plainly` says in one sentence what a worker is without.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import ordercast

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

__all__ = ["SHARED", "in_tasks", "is_local", "local_path", "pack", "plainly", "ship_package"]

SHARED = "spark.ordercast.shared"
"""The setting that says `true` where every worker sees our files under the same path."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
_READABLE = 0o644 << 16


def is_local(master: str) -> bool:
    """Do tasks run on this machine? Not those of `local-cluster[…]`, Spark's own rehearsal."""
    return master == "local" or master.startswith("local[")


def pack(directory: Path) -> Path:
    """The ordercast that runs here, as one archive: the same sources and compiled kernels give the
    same bytes and the same name, wherever they are installed."""
    root = Path(ordercast.__file__).parent
    files = [file for file in root.rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    files += _compiled(root / "pipeline" / "kernels")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, file in sorted((file.relative_to(root).as_posix(), file) for file in files):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.external_attr = _READABLE
            archive.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)
    content = packed.getvalue()
    path = directory / f"ordercast-{hashlib.sha256(content).hexdigest()[:16]}.zip"
    path.write_bytes(content)
    return path


def _compiled(directory: Path) -> list[Path]:
    """What was compiled from the kernels as they are now."""
    changed = max(file.stat().st_mtime for file in directory.glob("*.py"))
    kept = (directory / "__pycache__").glob("*.nb[ic]")
    return [file for file in kept if file.stat().st_mtime >= changed]


def ship_package(context: SparkContext, directory: Path) -> None:
    """Lets tasks import this very ordercast."""
    context.addArchive(f"{pack(directory).as_uri()}#ordercast")


def in_tasks(spark: SparkSession, files: Iterable[Path]) -> dict[Path, str]:
    """For each file a token that may travel to a task, where `local_path` makes a path of it.

    On a cluster every executor gets a copy of every file, once, before its next task; and Spark
    keeps one for the driver.
    """
    context = spark.sparkContext
    shared = context.getConf().get(SHARED, "false") == "true"
    if shared or is_local(str(context.master)):
        return {file: str(file.absolute()) for file in files}
    return {file: _hand_out(context, file) for file in files}


def local_path(token: str) -> Path:
    """In a task: where the file is that `in_tasks` gave this token for."""
    if os.path.isabs(token):
        return Path(token)
    from pyspark import SparkFiles

    return Path(SparkFiles.get(token))


def _hand_out(context: SparkContext, file: Path) -> str:
    from pyspark import SparkFiles

    # Spark tells files apart by their names alone, and never looks at one again.
    real, found = file.resolve(), file.stat()
    identity = f"{real}\n{found.st_mtime_ns}\n{found.st_size}"
    token = f"trace-{hashlib.sha256(identity.encode()).hexdigest()[:16]}{file.suffix}"
    link = Path(SparkFiles.getRootDirectory(), "originals", token)
    if not link.is_symlink():
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(real)
        context.addFile(link.as_uri())
    return token


def plainly(words: str, worker: str) -> str | None:
    """What Spark's words for a job that failed on `worker` mean, in one sentence; None if they mean
    nothing that a person could mend."""
    for pattern, sentence in _MEANINGS.items():
        if match := re.search(pattern, words, re.MULTILINE):
            if worker == _HERE and pattern == _NO_SPACE:
                sentence = _NO_SPACE_HERE
            found = match.groups()
            return sentence.format(*found, worker=worker, temporary=tempfile.gettempdir())
    return None


_HERE = "this machine"
"""What `cluster.told` calls the only worker of a local master."""
_NO_SPACE = r"No space left on device"
_NO_SPACE_HERE = (
    "{worker} has no space left in its temporary directory, {temporary}, where Spark keeps what it "
    "works on: make room there, or set TMPDIR to a directory with more of it"
)
_MEANINGS = {
    r"ModuleNotFoundError: No module named '(?!ordercast)(\w+)": (
        "{worker} has no Python package {0}: install what ordercast needs there, "
        "pip install 'ordercast[spark]'"
    ),
    r"\[PACKAGE_NOT_INSTALLED\] (\w+) (>= \S+)": (
        "{worker} has no Python package {0} {1}: install what ordercast needs there, "
        "pip install 'ordercast[spark]'"
    ),
    r"PYTHON_VERSION_MISMATCH\D+([\d.]+)\D+([\d.]+),": (
        "{worker} runs Python {0} and this is Python {1}, which Spark does not mix: "
        "set PYSPARK_PYTHON to where workers keep a Python {1}"
    ),
    r'Cannot run program "([^"]+)"': (
        "{worker} cannot run {0}: set PYSPARK_PYTHON to where workers keep their Python"
    ),
    r"FileNotFoundError: .*'(/[^']+)'": (
        "{worker} sees no file {0}: " + SHARED + "=true is for paths that all workers see"
    ),
    r"writing rows to file:(/.*)/[^/\n]* SQLSTATE[\s\S]*FSError: .*No space left on device": (
        "{worker} has no space left in {0}: make room there, or write to another disk"
    ),
    _NO_SPACE: (
        "{worker} has no space left on its disk: a worker gets a copy of the trace, unless the "
        "trace is where all workers see it and " + SHARED + "=true says so"
    ),
    r"Python worker exited unexpectedly": (
        "{worker} lost its Python in the middle of a task, most likely for want of memory"
    ),
    r"Master removed our application: (\w+)": (
        "the master has ended this job ({0}): what its executors said is in the files named stderr "
        "in the workers' work directories"
    ),
    r"All masters are unresponsive": (
        "what takes connections there does not answer as the master of this version of Spark: "
        "give the master's own port (by default 7077), and take the cluster's version"
    ),
}
