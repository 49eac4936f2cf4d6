"""How other systems' files are divided among tasks.

format                     a task takes
table                      a file, or a portion of a large one
otlp, shiviz               a file
broadcast                  a file: one process's log
dslab, maelstrom, jepsen   the files of one run
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from ordercast.errors import UsageError
from ordercast.pipeline.shipping import local_path
from ordercast.pipeline.workers import keep_what_is_loaded
from ordercast.trace.importers import FORMATS, Options
from ordercast.trace.importers.base import Job, Portion, Report
from ordercast.trace.importers.broadcast import files_by_process
from ordercast.trace.importers.columns import first_columns, survey
from ordercast.trace.importers.shiviz import parser_of
from ordercast.trace.importers.table import Mapping

__all__ = ["Share", "cut", "settled", "shares_of", "undivided"]

_LEAST_BYTES = 4 << 20
"""Less is not worth a task."""


@dataclass(frozen=True, slots=True)
class Share:
    """Files for one task."""

    files: tuple[Path, ...]
    run: str
    process: str = ""
    """Whose log it is, if it is one's."""
    index: int = 0
    portion: Portion | None = None
    """Of the only file, if not all of it."""


def undivided(format: str, files: Sequence[Path], options: Options) -> str | None:
    """Why one machine must read it all, if it must."""
    if options.dependencies is not None:
        return "localized causal order is judged on one machine"
    if FORMATS[format].run_each and len(files) > 1 and options.crashed:
        return "--crashed names processes of one run, and here each file is one"
    return None


def settled(format: str, files: Sequence[Path], options: Options) -> Options:
    """What all tasks must agree on, read off the first file; what is wrong there already is told
    before any task starts."""
    job = Job(tuple(files), options, Report(), Path())
    if format == "shiviz":
        return replace(options, parser=parser_of(job))
    if format == "table" and (columns := first_columns(job, files[0])):
        Mapping(options, columns, files[0])
    return options


def shares_of(format: str, files: Sequence[Path], options: Options) -> list[Share]:
    """Files that belong together; raises a `UsageError` if all of them do."""
    importer, job = FORMATS[format], Job(tuple(files), options, Report(), Path())
    if (reason := undivided(format, files, options)) is not None:
        raise UsageError(f"{reason}: leave out --master")
    if format == "broadcast":
        logs = files_by_process(job)
        return [
            Share((file,), job.run, name, index) for index, (name, file) in enumerate(logs.items())
        ]
    if not importer.run_each:
        return [Share((file,), job.run) for file in files]
    if len(files) == 1:
        return [Share(tuple(files), job.run)]
    stems = dict.fromkeys(file.stem for file in files)
    return [Share(tuple(file for file in files if file.stem == stem), stem) for stem in stems]


def cut(spark: SparkSession, shares: Sequence[Share], tokens: dict[Path, str]) -> list[Share]:
    """The same, with large tables in portions: as large as Spark cuts its own files.

    Text is looked through once before, to know the number of each portion's first line, and whether
    rows go over line ends; such a file is one share.
    """
    size = _portion_bytes(spark, [share.files[0] for share in shares])
    large = [share for share in shares if share.files[0].stat().st_size > size]
    texts = [share for share in large if share.files[0].suffix != ".parquet"]
    portions = _of_texts(spark, texts, tokens, size)
    for share in large:
        if share not in portions:
            portions[share] = list(_of_row_groups(share.files[0], size))
    found: list[Share] = []
    for share in shares:
        pieces = [replace(share, portion=portion) for portion in portions.get(share, ())]
        found += pieces or [share]
    return found


def _of_texts(
    spark: SparkSession, shares: Sequence[Share], tokens: dict[Path, str], size: int
) -> dict[Share, list[Portion]]:
    """None where rows go over line ends."""
    ranges = {share: _ranges(share.files[0].stat().st_size, size) for share in shares}
    places = [(tokens[share.files[0]], *each) for share in shares for each in ranges[share]]
    surveys = iter(_surveys(spark, places))
    portions: dict[Share, list[Portion]] = {}
    for share, pieces in ranges.items():
        met = [next(surveys) for _ in pieces]
        before = accumulate((lines for lines, _ in met), initial=0)
        cut_up = [Portion(*piece, lines) for piece, lines in zip(pieces, before, strict=False)]
        portions[share] = cut_up if all(alone for _, alone in met) else []
    return portions


def _portion_bytes(spark: SparkSession, files: Sequence[Path]) -> int:
    total = sum(file.stat().st_size for file in files)
    most: int = spark._jsparkSession.sessionState().conf().filesMaxPartitionBytes()
    each = total // spark.sparkContext.defaultParallelism + 1
    return min(most, max(each, _LEAST_BYTES))


def _ranges(size: int, each: int) -> list[tuple[int, int]]:
    return [(start, min(start + each, size)) for start in range(0, size, each)]


def _surveys(spark: SparkSession, places: Sequence[tuple[str, int, int]]) -> list[tuple[int, bool]]:
    """`columns.survey` of each range of bytes."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keep_what_is_loaded()
        for batch in batches:
            for number in batch.column("id").to_pylist():
                token, start, stop = places[number]
                lines, alone = survey(local_path(token), start, stop)
                yield pa.RecordBatch.from_pydict(
                    {"place": [number], "lines": [lines], "alone": [alone]}
                )

    if not places:
        return []
    tasks = spark.range(len(places), numPartitions=len(places))
    rows = tasks.mapInArrow(run, "place long, lines long, alone boolean").collect()
    return [(row["lines"], row["alone"]) for row in sorted(rows, key=lambda row: row["place"])]


def _of_row_groups(file: Path, size: int) -> Iterator[Portion]:
    """Runs of row groups, each about as large as is asked for."""
    try:
        found = pq.read_metadata(file)
    except (pa.ArrowInvalid, OSError):
        return  # whoever reads it says what is wrong
    start = before = rows = filled = 0
    for group in range(found.num_row_groups):
        about = found.row_group(group)
        stored = sum(about.column(at).total_compressed_size for at in range(about.num_columns))
        if filled and filled + stored > size:
            yield Portion(start, group, before)
            start, before, rows, filled = group, before + rows, 0, 0
        rows, filled = rows + about.num_rows, filled + stored
    yield Portion(start, found.num_row_groups, before)
