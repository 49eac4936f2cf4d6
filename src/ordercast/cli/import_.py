"""Make a trace of another system's logs.

The format is guessed from the first lines, or named with --format; docs/import.md shows each one
with a sample. What could not be told from the log is said on stderr and kept in the manifest.

example:
  ordercast import node-*.log -o trace --format shiviz
  ordercast import output/ -o trace --format broadcast --quiesced --crashed 3
  ordercast import events.csv -o trace --map process=host,kind=type,message=id,time=ts
  ordercast import records.jsonl -o trace --format table --preset kafka
  ordercast import logs/ -o trace --format table --master 'local[*]'
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import tempfile
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ordercast.cli.console import Steps, steps
from ordercast.cli.spark import add_spark_arguments, spark_settings
from ordercast.errors import UsageError
from ordercast.pipeline.session import require_pyspark
from ordercast.trace.directory import Format
from ordercast.trace.importers import (
    FORMATS,
    Imported,
    Options,
    detect,
    import_trace,
    source_files,
)
from ordercast.trace.importers.table import FIELDS, PRESETS
from ordercast.trace.verdicts import Outcome, exit_code, properties_of_order

__all__ = [
    "act",
    "add_arguments",
    "add_format_arguments",
    "converted",
    "extra_outcome",
    "refuse_format_options",
]

FORMAT_OPTIONS = (
    *("run", "to", "crashed", "parser", "delimiter", "send", "receive", "level", "map", "kinds"),
    *("preset", "time_unit", "process_pattern", "dependencies"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sources", type=Path, nargs="+", metavar="SOURCE", help="files, or directories of files"
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="TRACE", required=True, help="write the trace here"
    )
    parser.add_argument("--jsonl", action="store_true", help="write JSON lines, not Parquet")
    parser.add_argument("--quiesced", action="store_true", help="the system had come to rest")
    parser.add_argument("--order", help="the order that was promised, such as fifo or causal")
    parser.add_argument(
        "--skip-bad-rows", action="store_true",
        help="leave out rows that cannot be used, and say how many",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    add_format_arguments(parser, default="auto")
    group = parser.add_argument_group("Spark, for many files at once")
    add_spark_arguments(group, without="none: one file after the other, on this machine")


def add_format_arguments(parser: argparse.ArgumentParser, *, default: str | None) -> None:
    """What there is to say about other systems' logs; the same wherever they are taken."""
    group = parser.add_argument_group("logs of other systems")
    names = "; ".join(f"{name}: {one.summary}" for name, one in FORMATS.items())
    group.add_argument(
        "--format", choices=("auto", *FORMATS), default=default, metavar="FORMAT",
        help=f"auto, or {names}",
    )  # fmt: skip
    group.add_argument("--run", metavar="NAME", help="what to call the run")
    group.add_argument(
        "--to", choices=("receivers", "others", "everyone"),
        help="whom messages are for, if the log does not say",
    )  # fmt: skip
    group.add_argument(
        "--crashed", type=_names, default=(), metavar="NAMES", help="processes that crashed"
    )
    group.add_argument(
        "--parser", metavar="REGEX", help="shiviz: where (?<host>), (?<clock>), (?<event>) are"
    )
    group.add_argument("--delimiter", metavar="REGEX", help="shiviz: a line between executions")
    group.add_argument(
        "--send", metavar="REGEX", help="shiviz: events that send, perhaps (?<message>)"
    )
    group.add_argument(
        "--receive", metavar="REGEX", help="shiviz: events that receive, perhaps (?<message>)"
    )
    group.add_argument(
        "--level", choices=("network", "application"), default="network",
        help="dslab, maelstrom: judge messages between processes, or those of users",
    )  # fmt: skip
    group.add_argument(
        "--map", type=_pairs, default={}, metavar="FIELD=COLUMN,…",
        help=f"table: which columns are {', '.join(FIELDS)}",
    )  # fmt: skip
    group.add_argument(
        "--kinds", type=_pairs, default={}, metavar="WORD=KIND,…",
        help="table, otlp: the log's words for send, deliver, crash, …",
    )  # fmt: skip
    group.add_argument("--preset", choices=tuple(PRESETS), help="table: columns of a known export")
    group.add_argument(
        "--time-unit", choices=("s", "ms", "us", "ns"), help="table: of times that are numbers"
    )
    group.add_argument(
        "--process-pattern", metavar="REGEX", help="broadcast: (?<process>) in the file's name"
    )
    group.add_argument(
        "--dependencies", type=Path, metavar="FILE",
        help="broadcast: who is affected by whom; judges localized causal order",
    )  # fmt: skip


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
            f"{run} ({len(names)} processes)" for run, names in list(runs.items())[:3]
        )
        more = f" and {len(runs) - 3} more runs" if len(runs) > 3 else ""
        print(f"{imported.format}: {imported.events} events: {shown}{more}")
        trace = shlex.quote(str(options.output))
        print(f"trace: {options.output} (judge it: ordercast verify {trace})")
    return exit_code(extra_outcome(imported))


@contextmanager
def converted(options: argparse.Namespace, source: Path) -> Iterator[tuple[Path, Imported]]:
    """The source as a trace, for as long as it takes to judge it."""
    with tempfile.TemporaryDirectory(prefix="ordercast-") as directory:
        trace = Path(directory) / "trace"
        yield trace, _imported(options, [source], trace)


def extra_outcome(imported: Imported) -> Outcome:
    """Of what only the format itself promises, such as localized causal order."""
    outcomes = {verdict.verdict for verdict in imported.report.verdicts}
    return "violated" if "violated" in outcomes else "unknown" if "unknown" in outcomes else "holds"


def _imported(
    options: argparse.Namespace, sources: list[Path], trace: Path, *, master: str | None = None
) -> Imported:
    if options.order is not None:
        properties_of_order(options.order)
    chosen = Options(
        quiesced=options.quiesced,
        skip_bad_rows=options.skip_bad_rows,
        order=options.order,
        **{name: getattr(options, name) for name in FORMAT_OPTIONS},
    )
    files = source_files(sources)
    if options.format == "auto":
        options.format = detect(files[0])
    refuse_format_options(options, {"run", *FORMATS[options.format].options})
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
            imported = _on_spark(options, files, trace, chosen, write or "parquet")
    _tell(imported)
    return imported


def _on_spark(
    options: argparse.Namespace, files: Sequence[Path], trace: Path, chosen: Options, write: Format
) -> Imported:
    config = spark_settings(options)
    require_pyspark()
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
    )


def refuse_format_options(options: argparse.Namespace, heeded: Container[str] = ()) -> None:
    """An option that nobody heeds is a mistake."""
    about = "logs of other systems: give it with --format"
    for name in FORMAT_OPTIONS:
        given = getattr(options, name)
        if name not in heeded and given and not (name == "level" and given == "network"):
            about = f"other formats than {options.format}" if options.format else about
            raise UsageError(f"--{name.replace('_', '-')} is about {about}")


class _Advance:
    def __init__(self, progress: Steps) -> None:
        self._progress, self._done = progress, 0

    def __call__(self, read: int) -> None:
        self._done += read
        self._progress.advance_to(self._done)


def _tell(imported: Imported) -> None:
    report = imported.report
    for note in report.notes:
        print(f"note: {note}", file=sys.stderr)
    if report.bad:
        rows = "1 row" if report.bad == 1 else f"{report.bad} rows"
        print(f"Left out as unusable: {rows}, so the log has holes.", file=sys.stderr)
        for place in report.places:
            print(f"  {place}", file=sys.stderr)
        if report.bad > len(report.places):
            print(f"  … and {report.bad - len(report.places)} more", file=sys.stderr)
    for verdict in report.verdicts:
        why = "" if verdict.witness is None else f": {verdict.witness.sentence}"
        told = f"{verdict.property} {verdict.verdict} ({verdict.checked} checked){why}"
        print(f"{verdict.run}: {told}", file=sys.stderr)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name)


def _pairs(text: str) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in text.split(",") if pair]
    if not all(key and equals for key, equals, _ in pairs):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE,…")
    return {key: value for key, _, value in pairs}
