"""The Python that Spark starts for its work on this machine, and how the two talk.

Spark has each of its Python processes look for PySpark in archives first. Nothing in there is
compiled, so each does that for itself, and reads the lists of what is in them again for its first
task: together nearly a second. The same PySpark is installed here, compiled: so the archives are
left out, by a script of a few lines that Spark starts in place of Python.

And they talk through sockets that are files. Over TCP an empty task took some 30 ms longer: small
messages wait there until the system acknowledges those before them.
"""

from __future__ import annotations

import os
import shlex
import socket
import sys
import sysconfig
from pathlib import Path
from uuid import uuid4

__all__ = ["interpreter", "sockets"]

_NAME_MOST = 103
"""Bytes in the name of a socket that is a file, on any system."""

_SCRIPT = """#!/bin/sh
set -f
IFS=:
for entry in $PYTHONPATH; do
    case $entry in
        */pyspark.zip | */py4j-*-src.zip | */spark-core_*.jar) ;;
        *) kept=$kept:$entry ;;
    esac
done
PYTHONPATH=${{kept#:}} exec {python} "$@"
"""


def interpreter(scratch: Path) -> str:
    """What Spark should take for Python; it is in `scratch`, if it can be."""
    if not _installed() or os.name != "posix":
        return sys.executable
    script = scratch / "python"
    script.write_text(_SCRIPT.format(python=shlex.quote(sys.executable)))
    script.chmod(0o700)
    return str(script) if os.access(script, os.X_OK) else sys.executable


def sockets(scratch: Path) -> dict[str, str]:
    """What to tell Spark, whose sockets are in `scratch`: files, if the names can be."""
    longest = os.fsencode(scratch / f".{uuid4()}.sock")
    usable = hasattr(socket, "AF_UNIX") and len(longest) <= _NAME_MOST
    return {"spark.python.unix.domain.socket.enabled": str(usable).lower()}


def _installed() -> bool:
    """Would Python find PySpark without being told where?"""
    import pyspark

    places = {Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")}
    return Path(pyspark.__file__).parents[1] in places
