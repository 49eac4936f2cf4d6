"""The Java that Spark runs on: whether there is one, which, and its classes, ready to be used."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from ordercast.errors import SetupError

__all__ = ["GET_JAVA", "JAVA_VERSION_MIN", "class_archive", "java_version", "require_java"]

JAVA_VERSION_MIN = 17
GET_JAVA = (
    f"install Java {JAVA_VERSION_MIN} or newer (Debian: apt-get install default-jre-headless) "
    "or set JAVA_HOME"
)


def require_java() -> None:
    """Raises a `SetupError` that says how to get it."""
    home = os.environ.get("JAVA_HOME")
    if home and not os.access(Path(home, "bin", "java"), os.X_OK):
        raise SetupError(f"Spark needs Java, and JAVA_HOME={home} has no bin/java: {GET_JAVA}")
    if not home and shutil.which("java") is None:
        raise SetupError(f"Spark needs Java, and there is none on this machine: {GET_JAVA}")


def java_version() -> int | None:
    """The major version of the Java that Spark takes; looked up only once a start has failed,
    because asking costs a JVM start of its own."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else "java"
    try:
        answer = subprocess.run(  # noqa: S603 - the very program that Spark would run
            [java, "-version"], capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    quoted = (answer.stderr + answer.stdout).partition('version "')[2].partition('"')[0]
    numbers = quoted.split(".")
    major = numbers[1] if numbers[0] == "1" and len(numbers) > 1 else numbers[0]
    return int(major) if major.isdigit() else None


def class_archive() -> Path:
    """Where Spark's classes are kept as the JVM has them in memory, so that it need not load and
    check thousands of them at every start, which is a third of a small judgement. `classes` makes
    it. The JVM itself sees whether it is of another Java or another Spark, and then does without.
    """
    import pyspark

    return Path(sys.prefix, "share", "ordercast", f"spark-{pyspark.__version__}.jsa")
