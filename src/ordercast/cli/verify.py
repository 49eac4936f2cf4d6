"""Judge a trace on Spark: which orders held, which did not, and the smallest witness.

The exit code is about what was promised: by --order, else by the run's manifest, else everything
up to causal order. 0: it holds; 1: it is violated; 2: unknown, or unusable input.
With --order, a run that is not known to have come to rest may still owe deliveries: that is 0.

With --output the result tables, costs included, go to a directory. Runs that are there already are
not judged again: add files to the trace, run the same command again, and the tables grow.

example:
  ordercast verify out
  ordercast verify events.parquet --quiesced --order causal --json
  ordercast verify logs --output results --skip-bad-rows
  ordercast verify output/ --format broadcast --quiesced
  ordercast verify out --here --order causal
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import msgspec

from ordercast.cli import import_
from ordercast.cli.algorithm import promised_order
from ordercast.cli.console import print_asked_too, print_judgement, print_skipped, print_summary
from ordercast.cli.formats import add_format_arguments, refuse_format_options
from ordercast.cli.in_the_log import broken_in_the_log
from ordercast.cli.logs import gather_logs
from ordercast.cli.output import answering, refuse_overwriting
from ordercast.cli.say import say
from ordercast.cli.spark import (
    add_judging_arguments,
    or_here,
    refuse_with_here,
    spark_settings,
)
from ordercast.cli.steps import steps
from ordercast.errors import TraceError, UnusableError, UsageError
from ordercast.trace.directory import event_files
from ordercast.trace.jsonl import MARK, UNREADABLE
from ordercast.trace.verdicts import (
    PROPERTIES,
    Judgement,
    Outcome,
    Verdict,
    demanded_by,
    exit_code,
    properties_named,
    worst,
)

if TYPE_CHECKING:
    from ordercast.pipeline.findings import Findings
    from ordercast.trace.importers import Imported

__all__ = ["act", "add_arguments", "judge"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "trace", type=Path, metavar="TRACE", help="a trace directory, or an events file"
    )
    parser.add_argument(
        "--order",
        type=promised_order,
        help="the order that must have held, such as fifo or causal, and nothing lost",
    )
    parser.add_argument(
        "--only", metavar="PROPERTIES", help="judge only these, such as fifo,causal: they must hold"
    )
    parser.add_argument(
        "--quiesced",
        action="store_true",
        help="take runs to have come to rest if their manifest does not say",
    )
    parser.add_argument(
        "--skip-bad-rows", action="store_true",
        help="leave out rows and files that cannot be used, and say how many",
    )  # fmt: skip
    parser.add_argument(
        "--output", type=Path, metavar="DIR",
        help="write the result tables here, and judge only runs that are not here yet",
    )  # fmt: skip
    parser.add_argument("--again", action="store_true", help="with --output: judge everything anew")
    parser.add_argument("--json", action="store_true", help="print the verdicts as JSON")
    add_format_arguments(parser, default=None)
    add_judging_arguments(parser)


def act(options: argparse.Namespace) -> int:
    if options.again and options.output is None:
        raise UsageError("--again is about the results in a directory: give it with --output")
    refuse_with_here(options, "output")
    if options.output is not None:
        refuse_overwriting("--output", options.output, options.trace)
    # Another system's logs may take long to import: what is mistyped is told before.
    demanded_by(options.order, _wanted(options))
    spark_settings(options)
    if options.format is None and (options.map or options.preset):
        options.format = "table"  # whoever names columns has one
    if options.format is None:
        refuse_format_options(options)
        if not options.skip_bad_rows:
            _refuse_stranger(options.trace)
        return _verify(options, options.trace)
    with import_.converted(options, options.trace) as (trace, imported):
        return _verify(options, trace, imported)


def _refuse_stranger(trace: Path) -> None:
    """Rows of another system are told how to be judged, and not that they lack our columns."""
    if trace.suffix != ".jsonl" or not trace.is_file():
        return
    try:
        with trace.open("rb") as lines:
            first = next((line for line in lines if line.strip()), b"")
        names = msgspec.json.decode(first.removeprefix(MARK), type=dict[str, msgspec.Raw]).keys()
    except (OSError, *UNREADABLE):  # the reader has the words for it
        return
    if names and names.isdisjoint(("process", "position", "kind")):
        raise UsageError(
            f"{trace}: its rows have {', '.join(names):.200}, and not a trace's run, process, "
            "position and kind: name the columns with --map process=…,kind=…,message=…, or the "
            "format with --format"
        )


def _wanted(options: argparse.Namespace) -> tuple[str, ...]:
    return properties_named(PROPERTIES if options.only is None else options.only.split(","))


def _verify(options: argparse.Namespace, trace: Path, imported: Imported | None = None) -> int:
    """With what only the format of the log asks for, such as localized causal order."""
    asked_too = [] if imported is None else imported.report.verdicts
    bad = 0 if imported is None else imported.report.bad
    try:
        findings = _examine(
            options,
            trace,
            gather=True,
            quiesced=options.quiesced,
            order=options.order,
            properties=_wanted(options),
            skip=options.skip_bad_rows,
            output=options.output,
            again=options.again,
            made_of=None if imported is None else options.trace,
        )
    except UnusableError as error:
        raise TraceError(f"{error}; --skip-bad-rows leaves out what cannot be used") from None
    summary = findings.summary()
    outcome = worst([summary.outcome, *(one.verdict for one in asked_too)])
    code = exit_code(outcome)
    asked = options.order is not None or options.only is not None
    with answering(code):
        if options.json:
            skipped = len(findings.flaws) + bad if options.skip_bad_rows else None
            _print_json(findings, asked_too, outcome, sys.stdout, skipped=skipped)
        elif summary.runs == 1:
            judgement = findings.judgement()
            print_judgement(judgement, asked=asked)
            for line in broken_in_the_log(trace, judgement):
                say(line)
        else:
            print_summary(summary, asked=asked)
        if not options.json:
            print_asked_too(asked_too)
        print_skipped(summary, to_stderr=options.json)
        if options.output is not None and not options.json:
            print(f"tables: {options.output}")
    return code


def judge(
    options: argparse.Namespace,
    trace: Path,
    *,
    quiesced: bool = False,
    order: str | None = None,
    spark: Any = None,
) -> Judgement:
    """The verdicts on few runs, of a trace as it is; in `spark`, or as the command line says."""
    return _examine(options, trace, quiesced=quiesced, order=order, spark=spark).judgement()


def _examine(
    options: argparse.Namespace,
    trace: Path,
    *,
    gather: bool = False,
    order: str | None,
    **choices: Any,
) -> Findings:
    """Judge as the command line says. What can be refused at once is refused before Spark starts,
    which takes seconds."""
    config = spark_settings(options)
    demanded_by(order, PROPERTIES)
    place = gather_logs(trace) if gather else trace
    event_files(place)
    from ordercast import pipeline

    with steps() as progress, or_here(options, spark_only=choices.get("output") is not None):
        progress.begin(f"judging {trace}{'' if options.here else ' on Spark'}")
        return pipeline.examine(
            place,
            gather=False,  # what else is read of it must be of the same moment
            master=options.master,
            config=config,
            verbose=options.verbose,
            order=order,
            here=options.here,
            tell=progress.measure,
            note=progress.note,
            **choices,
        )


def _print_json(
    findings: Findings,
    asked_too: Iterable[Verdict],
    outcome: Outcome,
    out: TextIO,
    *,
    skipped: int | None,
) -> None:
    """As `json.dumps` would, without ever holding all of the verdicts."""
    head = {
        "runs": len(findings.runs),
        "events": findings.events,
        "order_held": findings.order_held,
        "outcome": outcome,
        **({} if skipped is None else {"skipped": skipped}),
    }
    out.write(f'{json.dumps(head)[:-1]}, "verdicts": [')
    also = (msgspec.to_builtins(verdict) | {"promised": True} for verdict in asked_too)
    out.writelines(_separated(chain(findings.rows(), also)))
    out.write("]}\n")


def _separated(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    comma = ""
    for row in rows:
        yield comma + json.dumps(row)
        comma = ", "
