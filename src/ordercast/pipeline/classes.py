"""Makes Spark start in half the time: `python -m ordercast.pipeline.classes`, once.

It judges a little trace, and has the JVM write down the classes that this took. That is half a
minute's work, and a file of 160 MB in the Python environment: see `java.class_archive`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from ordercast.errors import OrdercastError, SetupError
from ordercast.pipeline import judge
from ordercast.pipeline.installed import require_pyspark
from ordercast.pipeline.java import class_archive
from ordercast.pipeline.session import close_jvm, open_session
from ordercast.trace import Event, Manifest, TraceWriter
from ordercast.trace.directory import Format

__all__ = ["keep_classes"]

PATIENCE_S = 300.0
FORMATS: tuple[Format, ...] = ("jsonl", "parquet")


def keep_classes() -> Path:
    """Returns where they are. Whoever starts meanwhile finds none, and takes longer. For a process
    of its own: it must be the JVM's first session, and its last."""
    require_pyspark("keeping Spark's classes")
    kept = class_archive()
    fresh = kept.with_name(f"{kept.stem}-{os.getpid()}.jsa")
    try:
        fresh.parent.mkdir(parents=True, exist_ok=True)
        fresh.touch()
        fresh.unlink()  # the JVM does not write over a file,
        kept.unlink(missing_ok=True)  # and one that has such a file makes no other
    except OSError as error:
        raise SetupError(
            f"{kept.parent}: Spark's classes cannot be kept here ({error.strerror}): "
            "install ordercast in a virtual environment of your own"
        ) from None
    try:
        _judge_a_little(fresh)
        fresh.replace(kept)
    except FileNotFoundError:
        raise SetupError("this Java keeps no classes: Spark starts in its usual time") from None
    finally:
        fresh.unlink(missing_ok=True)
    return kept


def _judge_a_little(fresh: Path) -> None:
    options = {"spark.driver.extraJavaOptions": f'"-XX:ArchiveClassesAtExit={fresh}"'}
    with tempfile.TemporaryDirectory(prefix="ordercast-classes-") as scratch:
        spark = open_session(master="local[2]", config=options)
        try:
            for format in FORMATS:
                judge(_little_trace(Path(scratch, format), format), spark=spark)
        finally:
            spark.stop()
            close_jvm(PATIENCE_S)


def _little_trace(directory: Path, format: Format) -> Path:
    with TraceWriter(directory, format=format) as trace:
        trace.write(Event("little", 0, 0, "send", 0, 1))
        for process in (0, 1):
            trace.write(Event("little", process, 1 - process, "deliver", 0, 1))
        trace.add_manifest(Manifest("little", ("a", "b"), quiesced=True))
    return directory


if __name__ == "__main__":
    print("keeping Spark's classes for quicker starts (once; half a minute) …", file=sys.stderr)
    try:
        kept = keep_classes()
    except OrdercastError as error:
        sys.exit(f"{Path(__file__).stem}: {error}")
    print(f"{kept}: {kept.stat().st_size >> 20} MiB", file=sys.stderr)
