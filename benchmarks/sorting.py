"""How fast messages are put into causal order, next to Spark's own sort of one column.

Stamped messages lie shuffled in Parquet files. They are read, sorted and written by `causal_sort`;
with the check; and, as a measure of what the machine can do, by Spark's `orderBy` of one column of
random longs. One warm session, turns alternate, the best of each counts.

example:
  python -m benchmarks.sorting
  python -m benchmarks.sorting --rows 1e6 --sizes 4 --turns 1
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.show import Row, options, progress, show
from ordercast import pipeline
from ordercast.pipeline.sorting.files import sort_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = (1e6, 1e7)
SIZES = (4, 16)
FILES = 16
LAG = 40
"""Messages that are under way at any time."""
CHUNK = 1 << 20


def write_messages(directory: Path, rows: int, size: int) -> None:
    """Each message knows what was sent `LAG` messages before it, and all of its origin."""
    rng = np.random.default_rng(rows + size)
    origins = rng.integers(0, size, rows).astype(np.int32)
    file_of = rng.integers(0, FILES, rows)
    schema = pa.schema(
        {
            "origin": pa.int32(),
            "number": pa.int64(),
            "stamp": pa.list_(pa.int64()),
            "payload": pa.int64(),
        }
    )
    directory.mkdir()
    writers = [pq.ParquetWriter(directory / f"{i}.parquet", schema) for i in range(FILES)]
    sent = np.zeros((LAG + 1, size), np.int64)
    """How many of each origin there were, up to each of the last messages."""
    for start in range(0, rows, CHUNK):
        mine = origins[start : start + CHUNK]
        counts = np.zeros((len(mine), size), np.int64)
        counts[np.arange(len(mine)), mine] = 1
        so_far = np.concatenate((sent, sent[-1] + np.cumsum(counts, axis=0)))
        stamps = so_far[1 : len(mine) + 1].copy()
        numbers = so_far[LAG + 1 :][np.arange(len(mine)), mine]
        stamps[np.arange(len(mine)), mine] = numbers
        sent = so_far[-LAG - 1 :]
        shuffled = rng.permutation(len(mine))
        for file, writer in enumerate(writers):
            chosen = shuffled[file_of[start : start + CHUNK][shuffled] == file]
            ends = np.arange(0, len(chosen) * size + 1, size, dtype=np.int32)
            columns = [
                pa.array(mine[chosen]),
                pa.array(numbers[chosen]),
                pa.ListArray.from_arrays(pa.array(ends), pa.array(stamps[chosen].ravel())),
                pa.array(rng.integers(0, 1 << 62, len(chosen))),
            ]
            writer.write_table(pa.table(columns, schema=schema))
    for writer in writers:
        writer.close()


def measure(spark: SparkSession, source: Path, rows: int, turns: int) -> Row:
    out = source.with_name("out")

    def plain() -> None:
        spark.read.parquet(str(source)).orderBy("payload").write.parquet(str(out))

    def causal(check: bool) -> None:
        done = sort_files(source, out, check=check, spark=spark)
        assert done.messages == rows
        assert not check or (done.checked is not None and done.checked.holds)

    jobs: dict[str, Callable[[], None]] = {
        "plain": plain,
        "sorted": lambda: causal(check=False),
        "checked": lambda: causal(check=True),
    }
    best = dict.fromkeys(jobs, float("inf"))
    for _ in range(turns):
        for name, job in jobs.items():
            begun = perf_counter()
            job()
            best[name] = min(best[name], perf_counter() - begun)
            shutil.rmtree(out)
    return {
        "plain_rows/s": round(rows / best["plain"]),
        "sorted_rows/s": round(rows / best["sorted"]),
        "sorted_checked_rows/s": round(rows / best["checked"]),
        "sorted_/ plain": best["sorted"] / best["plain"],
        "checked_/ plain": best["checked"] / best["plain"],
    }


def main() -> None:
    parser = options(__doc__, sizes=SIZES)
    parser.add_argument("--rows", type=float, nargs="+", default=ROWS, help="how many messages")
    parser.add_argument("--turns", type=int, default=2, help="how often each is timed")
    chosen = parser.parse_args()
    cases = {
        f"{int(rows):,} messages, n = {size}": (int(rows), size)
        for rows in chosen.rows
        for size in chosen.sizes
    }
    found: list[Row] = []
    with pipeline.session() as spark:
        for name in progress(name for name in cases if chosen.only in name):
            with tempfile.TemporaryDirectory(prefix="ordercast-") as directory:
                source = Path(directory) / "in"
                rows, size = cases[name]
                write_messages(source, rows, size)
                found.append({"case": name, **measure(spark, source, rows, chosen.turns)})
    show("causal sort, and Spark's sort of one column", found, as_json=chosen.json)


if __name__ == "__main__":
    main()
