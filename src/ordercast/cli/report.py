"""Write the page: verdicts, witnesses and space-time diagrams, in one file that opens offline.

The trace is judged on Spark first, unless --verdicts names what `verify --json` printed.

example:
  ordercast report out -o report.html
"""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec

from ordercast.cli.logs import gather_logs
from ordercast.cli.verify import add_spark_arguments, judge
from ordercast.errors import TraceError
from ordercast.report import write
from ordercast.trace.directory import Trace
from ordercast.trace.verdicts import Judgement, Verdict, promised

__all__ = ["act", "add_arguments"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", type=Path, metavar="TRACE")
    parser.add_argument("-o", "--output", type=Path, default=Path("report.html"), metavar="FILE")
    parser.add_argument(
        "--verdicts", type=Path, metavar="FILE", help="what 'ordercast verify --json' printed"
    )
    parser.add_argument(
        "--quiesced", action="store_true", help="runs without a manifest had come to rest"
    )
    add_spark_arguments(parser)


def act(options: argparse.Namespace) -> int:
    gather_logs(options.trace)
    if options.verdicts is None:
        judgement = judge(options, options.trace, quiesced=options.quiesced)
        traces = Trace.load(options.trace, quiesced=options.quiesced)
    else:
        traces = Trace.load(options.trace, quiesced=options.quiesced)
        judgement = _stored(options.verdicts, traces)
    write(judgement, traces, options.output)
    print(f"report: {options.output}")
    return 0


class _Stored(msgspec.Struct):
    runs: int
    events: int
    verdicts: tuple[Verdict, ...]


def _stored(path: Path, traces: list[Trace]) -> Judgement:
    try:
        stored = msgspec.json.decode(path.read_bytes(), type=_Stored)
    except msgspec.DecodeError as error:
        raise TraceError(f"{path}: not the output of 'ordercast verify --json': {error}") from None
    known = {trace.manifest.run for trace in traces}
    if strange := {verdict.run for verdict in stored.verdicts} - known:
        raise TraceError(f"{path}: speaks of run {min(strange)!r}, which is not in the trace")
    judged = {verdict.property for verdict in stored.verdicts}
    promises = {trace.manifest.run: promised(trace.manifest, judged) for trace in traces}
    return Judgement(stored.runs, stored.events, stored.verdicts, promises)
