"""Put an out-of-order stream in order: each message once, causally ordered within its group.

SOURCE is a directory that files are added to. What is in order goes to OUTPUT/ordered, what is no
part of it (late, expired, malformed) to OUTPUT/aside, both as directories batch=N that appear
whole; OUTPUT/progress.jsonl has a line for each batch. Stop it with Ctrl-C: the same command goes
on from the checkpoint. Duplicates are dropped for ever; messages are never lost.

example:
  ordercast stream order messages/ --group room --output out --checkpoint state --once
  ordercast stream order messages/ --group room --dependencies after --wait 30s --policy release \\
    --output out --checkpoint state --trigger 1s
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socketserver import BaseServer
from typing import TYPE_CHECKING, Any

from ordercast.cli.say import say
from ordercast.cli.spark import add_spark_arguments, require_spark, spark_settings
from ordercast.cli.steps import Steps, steps
from ordercast.cli.stopping import stoppable
from ordercast.cli.stream_files import (
    add_file_arguments,
    alone_with,
    file_stream,
    reader_options,
    require_directory,
)
from ordercast.errors import UsageError

if TYPE_CHECKING:
    from ordercast.pipeline.streaming import Progress, Watcher
    from ordercast.pipeline.streaming.form import Form

__all__ = ["act", "add_arguments"]

_POLL_S = 0.3
_TOLD_EVERY_S = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add: Any = parser.add_argument
    add("source", metavar="SOURCE", help="a directory that files are added to")
    add_file_arguments(
        parser, format="json", help="of the files: json (default), parquet, csv, orc, …"
    )
    add("--output", type=Path, required=True, metavar="DIR", help="where it goes, in order")
    add("--side", type=Path, metavar="DIR", help="for what is not in order (default: OUTPUT/aside)")
    add("--write", choices=("parquet", "json"), default="parquet", help="default: parquet")
    add("--checkpoint", type=Path, required=True, metavar="DIR", help="where the state is kept")
    add("--group", action="append", required=True, metavar="COLUMN",
        help="what tells groups apart; may be given several times")  # fmt: skip
    add("--origin", default="origin", metavar="COLUMN", help="who sent it (default: origin)")
    add("--number", default="number", metavar="COLUMN", help="its number there (default: number)")
    order = parser.add_mutually_exclusive_group()
    how: Any = order.add_argument
    how(
        "--stamp",
        metavar="COLUMN",
        help="counts of what came before, array or map (default: stamp)",
    )
    how("--dependencies", metavar="COLUMN", help="ids of what came before, such as ['a:3']")
    how("--fifo", action="store_true", help="only the order of each origin")
    how("--sequence", metavar="COLUMN", help="one sequence for the whole group")
    add("--start", type=int, default=1, metavar="N", help="the first number (default: 1)")
    add("--wait", metavar="DURATION", help="how long a message may be held (default: for ever)")
    add("--policy", choices=("keep", "release", "aside"), default="keep",
        help="what becomes of it then: kept (default), released without what it lacks, or set "
        "aside")  # fmt: skip
    add("--buckets", type=int, metavar="N",
        help="of groups, for state (default: one for each core, 16 at most)")  # fmt: skip
    add("--once", action="store_true", help="take what is there now, and end")
    add("--trigger", metavar="DURATION", help="a batch at most so often (default: 1s)")
    add("--json", action="store_true", help="print the summary as JSON")
    add_spark_arguments(parser)


def act(options: argparse.Namespace) -> int:
    config = spark_settings(options)
    reader_options(options)  # refused now, if they must be
    if options.once and options.trigger is not None:
        raise UsageError("--once takes what is there now: --trigger is for what comes later")
    require_spark("ordering a stream")
    from ordercast.pipeline import streaming
    from ordercast.pipeline.session import session
    from ordercast.pipeline.streaming.settings import SESSION_SETTINGS

    defaults = dict(SESSION_SETTINGS)
    if options.once:
        # Or Spark would go on with empty batches for the sake of timers.
        defaults["spark.sql.streaming.noDataMicroBatches.enabled"] = "false"
    settings: Any = {"config": defaults | config, "verbose": options.verbose}
    streaming.patience(options.wait, options.policy)
    if not options.once:
        streaming.milliseconds(options.trigger or "1s")
    require_directory(options.source)
    _keep_apart(options)
    progress = None
    stopped = threading.Event()
    with (
        alone_with(options.checkpoint),
        steps() as doing,
        _quiet(stopped, verbose=options.verbose),
    ):
        _keep_to_one_checkpoint(options)
        doing.begin("starting Spark")
        try:
            with (
                session(master=options.master, **settings) as spark,
                stoppable(stopped),
                streaming.in_sentences(),
            ):
                _spread(options, spark, config)
                progress = _follow(options, doing, spark, stopped)
        except Exception:
            # A supervisor's SIGTERM goes to Spark as well, which may be gone before us.
            if not stopped.is_set():
                raise
    if progress is not None:
        _summarize(options, progress)
    if stopped.is_set():
        print("stopped: the same command goes on from here", file=sys.stderr)
    return 130 if stopped.is_set() and options.once else 0


def _keep_apart(options: argparse.Namespace) -> None:
    """What is written into the source would be read as messages, or make Spark stumble."""
    source = Path(options.source).resolve()
    for flag in ("output", "side", "checkpoint"):
        place: Path | None = getattr(options, flag)
        if place is not None and place.resolve().is_relative_to(source):
            raise UsageError(f"--{flag} {place} is in the source: choose a place outside of it")


def _keep_to_one_checkpoint(options: argparse.Namespace) -> None:
    """Batches are numbered by the checkpoint: with another one, some would be replaced, and the
    messages of others would be there twice."""
    from ordercast.pipeline.streaming.checkpoint import last_batch

    last = last_batch(options.checkpoint)
    flags = ("output", "side" if options.side else "output")
    for flag, place in zip(flags, (options.output / "ordered", _side(options)), strict=True):
        numbers = [path.name.removeprefix("batch=") for path in place.glob("batch=*")]
        known = [int(number) for number in numbers if number.isdecimal()]
        if max(known, default=-1) > (-1 if last is None else last):
            raise UsageError(
                f"{place} has a batch {max(known)}, which the checkpoint {options.checkpoint} has "
                "not come to, so it is of another one, and messages would be there twice: give "
                f"--checkpoint the one that it was written with, or --{flag} a new directory"
            )


def _side(options: argparse.Namespace) -> Path:
    side: Path = options.side or options.output / "aside"
    return side


@contextmanager
def _quiet(stopped: threading.Event, *, verbose: bool) -> Iterator[None]:
    """Without what the bridge to Spark logs and prints when Spark ends before it. Where that is
    because we were stopped, a batch may complain even after our last word, so it stays quiet."""
    if verbose:
        yield
        return
    before, complain = logging.root.manager.disable, BaseServer.handle_error
    logging.disable(logging.CRITICAL)
    BaseServer.handle_error = lambda *_: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        if not stopped.is_set():
            logging.disable(before)
            BaseServer.handle_error = complain  # type: ignore[method-assign]


def _spread(options: argparse.Namespace, spark: Any, config: dict[str, str]) -> None:
    """Over how many tasks: what a checkpoint was made with stays so, on whatever machine."""
    from ordercast.pipeline import streaming

    key, cores = "spark.sql.shuffle.partitions", spark.sparkContext.defaultParallelism
    if (before := streaming.partitions_of(options.checkpoint)) is not None:
        spark.conf.set(key, before)
    elif key not in config:
        spark.conf.set(key, min(options.buckets or cores, cores))


def _follow(
    options: argparse.Namespace, doing: Steps, spark: Any, stopped: threading.Event
) -> Progress:
    """Runs the query until it has ended, or is to be stopped."""
    from ordercast.pipeline import streaming
    from ordercast.pipeline.streaming.operator import in_order

    messages = file_stream(spark, options.source, options, doing)
    sink = streaming.DirectorySink(options.output / "ordered", _side(options), options.write)
    trigger_ms = None if options.once else streaming.milliseconds(options.trigger or "1s")
    form = _form(options, messages)
    watcher = streaming.start(
        in_order(messages, form), sink, options.checkpoint, trigger_ms=trigger_ms, form=form
    )
    options.output.mkdir(parents=True, exist_ok=True)
    doing.begin(f"ordering {options.source}")
    try:
        _watch(options, doing, watcher, stopped)
    finally:
        watcher.query.stop()
        _note(options, watcher)
    return watcher.progress


def _form(options: argparse.Namespace, messages: Any) -> Form:
    """Of a DataFrame of messages."""
    from ordercast.pipeline.streaming.operator import form_for

    total, named = options.sequence is not None, options.dependencies is not None
    stamp = None if total or named or options.fifo else options.stamp or "stamp"
    return form_for(
        messages,
        group=options.group,
        origin=None if total else options.origin,
        number=options.sequence if total else options.number,
        stamp=stamp,
        dependencies=options.dependencies,
        wait=options.wait,
        policy=options.policy,
        buckets=options.buckets,
        start=options.start,
        origins=None,
    )


def _watch(
    options: argparse.Namespace, doing: Steps, watcher: Watcher, stopped: threading.Event
) -> None:
    """Until the query has ended, or is to be stopped."""
    from ordercast.pipeline import streaming

    told = time.monotonic()
    while not stopped.is_set() and not streaming.await_query(watcher.query, _POLL_S):
        _note(options, watcher)
        if sys.stderr.isatty() or time.monotonic() - told > _TOLD_EVERY_S:
            told = time.monotonic()
            doing.begin(_line(watcher.progress))


def _note(options: argparse.Namespace, watcher: Watcher) -> None:
    """A line in the table of progress for each batch that has ended."""
    with (options.output / "progress.jsonl").open("a") as table:
        for row in watcher.news():
            table.write(json.dumps(row) + "\n")


def _line(progress: Progress) -> str:
    counts = progress.counts
    words = [f"{counts['rows']} in", f"{counts['released'] + counts['gaps']} released"]
    words.append(f"{progress.held} held")
    words += [
        f"{counts[name]} {word if counts[name] == 1 else name}"
        for name, word in _BESIDE.items()
        if counts[name]
    ]
    if (oldest := progress.oldest) is not None and oldest.oldest_ms is not None:
        age_s = max(0.0, time.time() - oldest.oldest_ms / 1000)
        words.append(f"oldest for {age_s:.0f} s: {oldest.oldest}")
    return ", ".join(words)


_BESIDE = {
    "gaps": "gap",
    "late": "late",
    "expired": "expired",
    "malformed": "malformed",
    "duplicates": "duplicate",
}
"""What is told beside, and the word for one of it."""


def _summarize(options: argparse.Namespace, progress: Progress) -> None:
    if options.json:
        oldest = progress.oldest
        words = None if oldest is None else oldest.oldest
        print(json.dumps({**progress.counts, "held": progress.held, "oldest": words}))
    else:
        say(_line(progress))
        print(f"in order: {options.output / 'ordered'}")
