"""Write a trace, or a part of it, for another tool.

Viewers take one run, and not all of it: choose a part by processes, messages, time, or what is
around a message. With --witness it is what proves that a property is violated, or may be. Rows
(csv, parquet, jsonl) can be of any number, and of all runs.

example:
  ordercast export out --format shiviz -o out.log --around 0:3 --events 20
  ordercast export out --format perfetto -o out.json --from 10ms --to 25ms
  ordercast export out --format mermaid -o out.mmd --witness causal
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from ordercast.cli.logs import gather_logs
from ordercast.cli.output import refuse_overwriting
from ordercast.cli.spark import add_judging_arguments, refuse_with_here
from ordercast.cli.steps import steps
from ordercast.cli.witness import Proof, witness_cut
from ordercast.cli.words import counted
from ordercast.errors import TraceError, UsageError
from ordercast.readable import readable
from ordercast.trace.directory import read_events
from ordercast.trace.exporters import FORMATS, Cut, export_trace
from ordercast.trace.runs import Id, OneRun
from ordercast.trace.verdicts import properties_named
from ordercast.trace.writing import naming

__all__ = ["act", "add_arguments"]

AROUND_EVENTS = 10
_UNIT_US = {"": 1, "us": 1, "ms": 1_000, "s": 1_000_000}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "trace", type=Path, metavar="TRACE", help="a trace directory, or an events file"
    )
    names = "; ".join(f"{name}: {one.summary}" for name, one in FORMATS.items())
    parser.add_argument(
        "--format", choices=tuple(FORMATS), required=True, metavar="FORMAT", help=names
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="FILE",
        help="write it here; - is stdout",
    )
    parser.add_argument("--run", help="which run, if the trace has several")
    parser.add_argument("--processes", metavar="PROCESSES", help="only these, such as 0,2")
    parser.add_argument("--messages", metavar="MESSAGES", help="only these, such as 0:3,1:7")
    parser.add_argument(
        "--from", dest="start", type=_time, metavar="TIME",
        help="only from this time after the run's first event, such as 10ms",
    )  # fmt: skip
    parser.add_argument("--to", dest="end", type=_time, metavar="TIME", help="only up to this time")
    parser.add_argument("--around", metavar="MESSAGE", help="only what is near this message")
    parser.add_argument(
        "--events", type=int, metavar="N",
        help="how many events before and after, at each process "
        f"(default: {AROUND_EVENTS} with --around, none with --witness)",
    )  # fmt: skip
    parser.add_argument(
        "--witness", metavar="PROPERTY", help="only what proves that this is violated, or may be"
    )
    parser.add_argument(
        "--verdicts", type=Path, metavar="FILE",
        help="with --witness: what 'ordercast verify --json' printed, so as not to judge again",
    )  # fmt: skip
    parser.add_argument(
        "--quiesced", action="store_true",
        help="with --witness: a run without a manifest had come to rest",
    )  # fmt: skip
    add_judging_arguments(parser)


def act(options: argparse.Namespace) -> int:
    _refuse(options)
    trace = gather_logs(options.trace)
    run = OneRun(trace, options.run)
    proof = None if options.witness is None else witness_cut(options, run)
    cut = _cut(options, run, proof)
    if cut == Cut() and next(read_events(trace), None) is None:
        raise TraceError(f"{options.trace}: there is no event in it")
    with steps() as progress:
        progress.begin(f"exporting {options.trace}")
        aside = sys.stderr if _is_stdout(options.output) else sys.stdout
        with _place(options.output) as place:
            events = export_trace(run, place, format=options.format, cut=cut)
    print(f"{options.format}: {counted(events, 'event')}: {options.output}", file=aside)
    if note := FORMATS[options.format].note:
        print(note, file=aside)
    if proof is not None and proof.doubt is not None:
        print(readable(f"note: {proof.doubt}"), file=aside)
    return 0


def _is_stdout(output: Path) -> bool:
    """-, /dev/stdout, /dev/fd/1, or whatever else stdout is called."""
    if output == Path("-"):
        return True
    try:
        return os.path.samestat(output.stat(), os.fstat(1))
    except OSError:
        return False


@contextmanager
def _place(output: Path) -> Iterator[Path]:
    """Where to write it. What is for stdout is added there: a file that stdout is redirected to
    has other people's words in it, and must not be replaced."""
    if not _is_stdout(output):
        yield output
        return
    with TemporaryDirectory() as scratch:
        part = Path(scratch) / "part"
        yield part
        with naming(output), part.open("rb") as whole, os.fdopen(os.dup(1), "wb") as stdout:
            shutil.copyfileobj(whole, stdout)


def _refuse(options: argparse.Namespace) -> None:
    """An option that nobody heeds is a mistake."""
    refuse_with_here(options)
    if options.around is not None and options.witness is not None:
        raise UsageError("--around and --witness both choose the place: give one of them")
    if options.events is not None:
        if options.around is None and options.witness is None:
            raise UsageError("--events is about surroundings: give it with --around or --witness")
        if options.events < 0:
            raise UsageError("--events cannot be less than 0")
    if options.verdicts is not None and options.witness is None:
        raise UsageError("--verdicts says where a witness is: give it with --witness")
    if options.witness is not None:
        properties_named([options.witness])
    refuse_overwriting("-o", options.output, options.trace, options.verdicts)


def _cut(options: argparse.Namespace, run: OneRun, proof: Proof | None) -> Cut:
    processes = frozenset(map(run.process, _parts(options.processes)))
    around: frozenset[Id] = frozenset()
    events = options.events or 0
    if options.around is not None:
        around = frozenset({run.message(options.around)})
        events = AROUND_EVENTS if options.events is None else options.events
    elif proof is not None:
        around = proof.messages
        processes = processes or (frozenset() if events else proof.processes)
    return Cut(
        processes=processes,
        messages=frozenset(map(run.message, _parts(options.messages))),
        start_us=options.start,
        end_us=options.end,
        around=around,
        events=events,
    )


def _parts(words: str | None) -> list[str]:
    return [] if words is None else [word for word in words.split(",") if word]


def _time(word: str) -> int:
    match = re.fullmatch(r"(\d{1,18}(?:\.\d+)?)(us|ms|s|)", word, re.ASCII)
    if match is None:
        raise argparse.ArgumentTypeError(f"{word[:40]!r} is not a time, such as 10ms or 2.5s")
    return round(float(match[1]) * _UNIT_US[match[2]])
