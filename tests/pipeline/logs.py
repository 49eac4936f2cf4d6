"""What one machine and Spark make of the same logs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ordercast.pipeline.reading.writing import import_log
from ordercast.trace import Trace
from ordercast.trace.importers import Options, import_trace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["same", "same_of"]


def same(
    spark: SparkSession, files: dict[str, str], format: str, directory: Path, **chosen: Any
) -> list[Trace]:
    """The traces that Spark makes, which must be those that one machine makes."""
    source = directory / "source"
    source.mkdir(parents=True)
    for name, text in files.items():
        (source / name).write_text(text)
    return same_of(spark, source, format, directory, **chosen)


def same_of(
    spark: SparkSession, source: Path, format: str, directory: Path, **chosen: Any
) -> list[Trace]:
    """The same, of files that are there already."""
    options = Options(**chosen)
    here = import_trace([source], directory / "here", format=format, options=options)
    there = import_log([source], directory / "there", format=format, options=options, spark=spark)
    found, expected = (Trace.load(directory / name) for name in ("there", "here"))
    assert [one.manifest.run for one in found] == [one.manifest.run for one in expected]
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.events == theirs.events, f"run {ours.manifest.run!r}"
    assert there.events == here.events
    assert there.report.bad == here.report.bad
    assert there.report.places == here.report.places
    assert there.report.notes == here.report.notes
    for ours, theirs in zip(found, expected, strict=True):
        assert ours == theirs, f"run {ours.manifest.run!r}"
    return found
