"""Watch a trace while it is written: violations as they happen, and how the group is doing.

Follows what members write (`trace=DIR`, or that of `ordercast node`) and any trace that grows. Ends
with Ctrl-C, and with the verdicts so far. The exit code speaks of what was promised, as that of
verify does: 0: it holds; 1: it is violated; 2: unknown.

example:
  ordercast stream watch logs
  ordercast stream watch logs --checkpoint state --until-rest --order causal
  ordercast stream watch logs --once --json
  ordercast stream watch events --format parquet
"""

from __future__ import annotations

import argparse
from contextlib import suppress
from pathlib import Path
from typing import Any

from ordercast.cli.algorithm import promised_order
from ordercast.cli.output import answering
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
from ordercast.cli.watch_board import Board
from ordercast.errors import TraceError, UsageError
from ordercast.trace.verdicts import LIVENESS, PROPERTIES, demanded_by, properties_named

__all__ = ["act", "add_arguments"]

_POLL_S = 0.25


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "trace", type=Path, metavar="DIR", help="where members write their logs, or a trace"
    )
    add_file_arguments(
        parser, format=None,
        help="DIR has files of events, and no manifests: json, parquet, csv, orc, …",
    )  # fmt: skip
    parser.add_argument(
        "--order", type=promised_order, help="the order that must hold, such as fifo or causal"
    )
    parser.add_argument("--only", metavar="PROPERTIES", help="judge only these: fifo,causal")
    parser.add_argument(
        "--checkpoint", type=Path, metavar="DIR",
        help="remember here how far it is, and go on from there the next time",
    )  # fmt: skip
    parser.add_argument(
        "--once", action="store_true", help="read what there is, say the verdicts, and end"
    )
    parser.add_argument(
        "--quiesced", action="store_true",
        help="with --once: runs without a manifest had come to rest",
    )  # fmt: skip
    parser.add_argument(
        "--until-rest", action="store_true", help="end when every run has come to rest"
    )
    parser.add_argument(
        "--trigger", default="1s", metavar="TIME", help="look every so often (default: 1s)"
    )
    parser.add_argument(
        "--keep", type=int, default=2_000_000, metavar="N",
        help="events of a run in memory at most; beyond, it is judged in windows "
        "(default: 2000000)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON lines")
    add_spark_arguments(parser)


def act(options: argparse.Namespace) -> int:
    only = properties_named(options.only.split(",")) if options.only else PROPERTIES
    demanded = demanded_by(options.order, only)
    if options.once and options.until_rest:
        raise UsageError("--once ends by itself: leave out --until-rest")
    if options.quiesced and not options.once:
        raise UsageError("--quiesced is about runs that are over: give it with --once")
    _check_files(options)
    if options.keep < 1:
        raise UsageError(f"--keep {options.keep}: choose 1 or more")
    config = spark_settings(options)
    require_spark("watching a trace")
    from ordercast.pipeline import streaming
    from ordercast.pipeline.session import session
    from ordercast.pipeline.streaming.settings import require_protobuf
    from ordercast.pipeline.streaming.source_files import followed
    from ordercast.pipeline.streaming.watch_query import WATCH_SETTINGS, Watching

    trigger_s = streaming.milliseconds(options.trigger) / 1000
    if options.format is None:
        followed(options.trace)
    require_protobuf()
    settings = WATCH_SETTINGS | config
    with alone_with(options.checkpoint), steps() as progress:
        board = Board(progress, json=options.json, demanded=demanded)
        progress.begin("starting Spark")
        with (
            session(master=options.master, config=settings, verbose=options.verbose) as spark,
            stoppable() as stopped,  # after Spark, which has its own idea of Ctrl-C
            streaming.in_sentences(),
            Watching(
                spark,
                _source(options, spark, progress),
                board.hear,
                properties=only,
                keep=options.keep,
                checkpoint=options.checkpoint,
                quiesced=options.quiesced,
                once=options.once,
                trigger_s=trigger_s,
            ) as watching,
        ):
            progress.begin(f"watching {options.trace}")
            while not watching.wait(_POLL_S):
                if stopped.is_set() or (options.until_rest and board.at_rest):
                    break
    judgement = watching.judgement(demanded, excused=LIVENESS if options.order is not None else ())
    if not judgement.runs:
        board.conclude(judgement)
        if stopped.is_set() and _has_something(options):
            raise TraceError(f"{options.trace}: stopped before any of its events were judged")
        raise TraceError(f"{options.trace}: there is no event in it yet")
    with answering(judgement.exit_code):
        board.conclude(judgement)
    return judgement.exit_code


def _check_files(options: argparse.Namespace) -> None:
    """What is about files that Spark is to read, and not our own reader."""
    reading = reader_options(options)
    if options.format is not None:
        require_directory(str(options.trace))
    if options.format is None:
        if options.schema is not None or reading:
            raise UsageError("--schema and --option are for Spark's reader: give its --format")
        return
    if options.until_rest:
        raise UsageError(
            "--until-rest looks for the end of a run in its manifest, and files that are read with "
            "--format have none: leave out one of the two"
        )
    if options.once and (limit := {"maxFilesPerTrigger", "maxBytesPerTrigger"} & reading.keys()):
        raise UsageError(f"--once judges all that is there at once: leave out {min(limit)}")


def _has_something(options: argparse.Namespace) -> bool:
    """Is there anything in the files that would have been read?"""
    from ordercast.pipeline.streaming.source_files import followed

    own = options.format is None
    files = followed(options.trace) if own else filter(Path.is_file, options.trace.rglob("*"))
    with suppress(OSError):  # one that was removed meanwhile
        return any(file.stat().st_size for file in files)
    return True


def _source(options: argparse.Namespace, spark: Any, doing: Steps) -> Any:
    """Where our own reader is to look, or a streaming DataFrame."""
    if options.format is None:
        return options.trace
    return file_stream(spark, str(options.trace), options, doing)
