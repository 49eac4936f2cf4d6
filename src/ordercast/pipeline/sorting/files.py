"""Messages from files into files in causal order: what `ordercast sort` does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from ordercast.errors import UsageError
from ordercast.pipeline.parts import Format, require_shared, require_shared_by, write_parts
from ordercast.pipeline.paths import plain_paths
from ordercast.pipeline.session import session
from ordercast.pipeline.settings import settings_for
from ordercast.pipeline.sorting import ROWS_EACH, causal_sort
from ordercast.pipeline.sorting.broken import plainly_read
from ordercast.pipeline.sorting.check import check_order
from ordercast.pipeline.sorting.columns import Columns, require_columns
from ordercast.pipeline.sorting.names import cols, exact_names
from ordercast.pipeline.sorting.ordered import WrittenFiles
from ordercast.pipeline.sorting.source import (
    read_messages,
    source_files,
    without_repeats,
)
from ordercast.pipeline.sorting.witness import Checked
from ordercast.trace.becoming import Becoming
from ordercast.trace.writing import require_free

__all__ = ["Sorted", "sort_files"]

_DATES = (T.DateType, T.TimestampType, T.TimestampNTZType)


@dataclass(frozen=True, slots=True)
class Sorted:
    """What was written."""

    messages: int
    files: int
    dropped: int
    """Messages that were there already."""
    checked: Checked | None
    """Null if nobody asked."""


def sort_files(
    source: Path,
    output: Path,
    *,
    columns: Columns | None = None,
    position: str = "position",
    write: Format = "parquet",
    rows_each: int = ROWS_EACH,
    drop_duplicates: bool = False,
    check: bool = True,
    master: str | None = None,
    config: Mapping[str, str] | None = None,
    verbose: bool = False,
    begin: Callable[[str], None] = lambda _: None,
    spark: SparkSession | None = None,
) -> Sorted:
    """Write the messages of a file or directory to a new directory, whose files, read by name, have
    them in causal order; then `check` what was written. `begin` hears of each step."""
    columns = columns or Columns()
    _, files = source_files(source)
    require_free(output)
    if rows_each < 1:
        raise UsageError(f"{rows_each} rows for each file is less than one")
    if spark is None and master is not None:
        require_shared(master, config or {})
    settings = settings_for(sum(file.stat().st_size for file in files)) | dict(config or {})
    opened: AbstractContextManager[SparkSession] = (
        session(master=master, config=settings, verbose=verbose)
        if spark is None
        else nullcontext(spark)
    )
    becoming = Becoming(output)
    try:
        with opened as running, exact_names(running), plainly_read(source, columns):
            require_shared_by(running)
            begin(f"sorting {source} on Spark")
            frame = read_messages(running, source, columns)
            require_columns(frame, columns)
            kept = without_repeats(frame, columns) if drop_duplicates else frame
            ordered = causal_sort(
                kept, group=columns.group, origin=columns.origin, number=columns.number,
                stamp=columns.stamp, position=position, rows_each=rows_each, check=False,
            )  # fmt: skip
            written = _write(ordered, becoming.scratch / "sorted", write, columns)
            rows = written.frame.count()
            checked = None
            if check:
                begin("checking what was written")
                checked = check_order(written, columns)
            becoming.appear(becoming.scratch / "sorted")
            dropped = frame.count() - rows if drop_duplicates else 0
            return Sorted(rows, len(written.files), dropped, checked)
    finally:
        becoming.abandon()


def _write(ordered: DataFrame, directory: Path, format: Format, columns: Columns) -> WrittenFiles:
    files = write_parts(ordered, directory, format)
    schema = ordered.select(*cols(columns.names)).schema
    paths = plain_paths(files)
    read = ordered.sparkSession.read
    if format == "parquet":
        return WrittenFiles(read.schema(schema).parquet(*paths), tuple(files))
    return WrittenFiles(read.schema(_in_json(schema)).json(paths), tuple(files))


def _in_json(schema: T.StructType) -> T.StructType:
    """As it comes out again: the keys of maps are text, and so are dates."""

    def kind(written: T.DataType) -> T.DataType:
        if isinstance(written, T.MapType):
            return T.MapType(T.StringType(), written.valueType)
        return T.StringType() if isinstance(written, _DATES) else written

    return T.StructType([T.StructField(one.name, kind(one.dataType)) for one in schema])
