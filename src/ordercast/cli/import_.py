"""Make a trace of another system's logs.

The format is guessed from the first lines, or named with --format; docs/import.md shows each one
with a sample. What could not be told from the log is said on stderr and kept in the manifest.

example:
  ordercast import node-*.log -o trace --format shiviz
  ordercast import output/ -o trace --format broadcast --quiesced --crashed 3
  ordercast import events.csv -o trace --map process=host,kind=type,message=id,time=ts
  ordercast import records.jsonl -o trace --preset kafka
  ordercast import logs/ -o trace --format table --master 'local[*]'
"""

from __future__ import annotations

import argparse
import json
import shlex
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ordercast.cli.algorithm import promised_order
from ordercast.cli.formats import add_format_arguments, settled
from ordercast.cli.say import say, say_aside
from ordercast.cli.spark import add_spark_arguments, require_spark, spark_settings
from ordercast.cli.steps import Steps, steps
from ordercast.cli.words import counted
from ordercast.errors import UsageError
from ordercast.pipeline.progress import Tell
from ordercast.pipeline.session import session
from ordercast.pipeline.settings import settings_for
from ordercast.trace.directory import Format
from ordercast.trace.importers import (
    Imported,
    Options,
    import_trace,
)
from ordercast.trace.verdicts import exit_code, worst

__all__ = [
    "act",
    "add_arguments",
    "converted",
]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sources", type=Path, nargs="+", metavar="SOURCE", help="files, or directories of files"
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="TRACE", required=True, help="write the trace here"
    )
    parser.add_argument("--jsonl", action="store_true", help="write JSON lines, not Parquet")
    parser.add_argument("--quiesced", action="store_true", help="the system had come to rest")
    parser.add_argument(
        "--order", type=promised_order, help="the order that was promised, such as fifo or causal"
    )
    parser.add_argument(
        "--skip-bad-rows", action="store_true",
        help="leave out rows that cannot be used, and say how many",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    add_format_arguments(parser, default="auto")
    group = parser.add_argument_group("Spark, for many files at once")
    add_spark_arguments(group, without="none: one file after the other, on this machine")


def act(options: argparse.Namespace) -> int:
    if options.master is None and (options.conf or options.verbose):
        raise UsageError("--conf and --verbose are about Spark: give them with --master")
    imported = _imported(options, options.sources, options.output, master=options.master)
    report = imported.report
    runs = {run: list(names) for run, names in report.processes.items()}
    if options.json:
        summary = {
            "format": imported.format,
            "events": imported.events,
            "runs": runs,
            "complete": not report.incomplete and not report.bad,
            "skipped": report.bad,
            "notes": report.notes,
            "trace": str(options.output),
        }
        print(json.dumps(summary))
    else:
        shown = ", ".join(
            f"{run} ({counted(len(names), 'process')})" for run, names in list(runs.items())[:3]
        )
        more = f" and {len(runs) - 3} more runs" if len(runs) > 3 else ""
        say(f"{imported.format}: {counted(imported.events, 'event')}: {shown}{more}")
        trace = shlex.quote(str(options.output))
        say(f"trace: {options.output} (judge it: ordercast verify {trace})")
    return exit_code(worst(verdict.verdict for verdict in report.verdicts))


@contextmanager
def converted(options: argparse.Namespace, source: Path) -> Iterator[tuple[Path, Imported]]:
    """The source as a trace, for as long as it takes to judge it: imported where it is judged, if a
    master is named and its tasks can."""
    with (
        tempfile.TemporaryDirectory(prefix="ordercast-") as directory,
        _judging(options, source) as master,
    ):
        trace = Path(directory) / "trace"
        yield trace, _imported(options, [source], trace, master=master)


@contextmanager
def _judging(options: argparse.Namespace, source: Path) -> Iterator[str | None]:
    """The master that is named, in one session for import and judgement; None if none is, or this
    machine must read the log."""
    if options.master is None:
        yield None
        return
    require_spark("an import with --master")
    from ordercast.pipeline.reading.writing import why_here

    files, chosen = settled(options, [source])
    master, config = options.master, spark_settings(options)
    reason = why_here(options.format, files, chosen, master=master, config=config)
    if reason is not None:
        say_aside(f"note: the log is imported on this machine: {reason}")
        yield None
        return
    config = settings_for(sum(file.stat().st_size for file in files)) | config
    with session(master=master, config=config, verbose=options.verbose):
        yield master


def _imported(
    options: argparse.Namespace, sources: list[Path], trace: Path, *, master: str | None = None
) -> Imported:
    files, chosen = settled(options, sources)
    size = sum(file.stat().st_size for file in files)
    write: Format | None = "jsonl" if getattr(options, "jsonl", False) else None
    what = f"importing {len(files)} file{'s' * (len(files) > 1)}"
    with steps() as progress:
        if master is None:
            progress.begin(what, total=size)
            imported = import_trace(
                files,
                trace,
                format=options.format,
                options=chosen,
                write=write,
                advance=_Advance(progress),
            )
        else:
            progress.begin(f"{what} on Spark")
            imported = _on_spark(
                options, files, trace, chosen, write or "parquet", tell=progress.measure
            )
    _tell(imported)
    return imported


def _on_spark(
    options: argparse.Namespace,
    files: Sequence[Path],
    trace: Path,
    chosen: Options,
    write: Format,
    *,
    tell: Tell,
) -> Imported:
    config = spark_settings(options)
    require_spark("an import with --master")
    from ordercast.pipeline.reading.writing import import_log

    return import_log(
        files,
        trace,
        format=options.format,
        options=chosen,
        write=write,
        master=options.master,
        config=config,
        verbose=options.verbose,
        tell=tell,
    )


class _Advance:
    def __init__(self, progress: Steps) -> None:
        self._progress, self._done = progress, 0

    def __call__(self, read: int) -> None:
        self._done += read
        self._progress.advance_to(self._done)


def _tell(imported: Imported) -> None:
    report = imported.report
    for note in report.notes:
        say_aside(f"note: {note}")
    if report.bad:
        rows = counted(report.bad, "row")
        say_aside(f"Left out as unusable: {rows}, so the log has holes.")
        for place in report.places:
            say_aside(f"  {place}")
        if report.bad > len(report.places):
            say_aside(f"  … and {report.bad - len(report.places)} more")
    for verdict in report.verdicts:
        why = "" if verdict.witness is None else f": {verdict.witness.sentence}"
        told = f"{verdict.property} {verdict.verdict} ({verdict.checked} checked){why}"
        say_aside(f"{verdict.run}: {told}")
