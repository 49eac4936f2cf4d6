"""Write the page: verdicts, witnesses, diagrams and costs, in one file that opens offline.

The trace is judged first, on Spark or --here, unless --results names the tables of `verify
--output`, or --verdicts what `verify --json` printed. The directory of a sweep gives the page of
its curves. With --compare, two runs stand side by side, with what differs on top.

example:
  ordercast report out -o report.html
  ordercast report out --here
  ordercast report out --results results -o report.html
  ordercast report out --compare other -o compared.html
  ordercast report sweep-out -o sweep.html
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import msgspec

from ordercast.cli.logs import gather_logs
from ordercast.cli.output import refuse_output, refuse_overwriting
from ordercast.cli.spark import add_judging_arguments, refuse_with_here
from ordercast.cli.verify import judge
from ordercast.errors import TraceError, UsageError
from ordercast.report import Limits
from ordercast.report.comparison import compare
from ordercast.report.digest import digest_of
from ordercast.report.page import compose
from ordercast.report.reading import read_samples
from ordercast.report.results import read_results
from ordercast.report.sample import judged_in
from ordercast.report.sheet import save
from ordercast.report.sweeps import TABLE, is_sweep, read_sweep, render_sweep
from ordercast.trace import Manifest, read_manifests
from ordercast.trace.jsonl import UNREADABLE
from ordercast.trace.verdicts import Judgement, Verdict, promised

__all__ = ["act", "add_arguments", "page_of"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", type=Path, metavar="TRACE", help="a trace, or a sweep's directory")
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("report.html"), metavar="FILE",
        help="write the page here (default: report.html)",
    )  # fmt: skip
    known = parser.add_mutually_exclusive_group()
    known.add_argument(
        "--results", type=Path, metavar="DIR", help="the tables of 'ordercast verify --output'"
    )
    known.add_argument(
        "--verdicts", type=Path, metavar="FILE", help="what 'ordercast verify --json' printed"
    )
    parser.add_argument(
        "--quiesced", action="store_true", help="take runs without a manifest to have come to rest"
    )
    parser.add_argument(
        "--compare", type=Path, metavar="TRACE", help="another trace: both side by side"
    )
    add_judging_arguments(parser)


def act(options: argparse.Namespace) -> int:
    refuse_with_here(options)
    refuse_output(options.output)
    sources = (options.trace, options.compare, options.verdicts, options.trace / TABLE)
    refuse_overwriting("-o", options.output, *sources)
    if options.compare is not None:
        page = _comparison(options)
    elif is_sweep(options.trace):
        page = render_sweep(read_sweep(options.trace))
    else:
        page = _page(options)
    save(page, options.output)
    print(f"report: {options.output}")
    return 0


def _page(options: argparse.Namespace) -> str:
    trace = gather_logs(options.trace)
    if options.results is not None:
        limits = Limits()
        results = read_results(options.results, lines=limits.run_lines)
        judged = results.judged(limits.runs)
        drawn = [
            replace(sample, costs=results.costs(sample.trace.manifest.run))
            for sample in read_samples(trace, judged, limits=limits, quiesced=options.quiesced)
        ]
        return compose(results.digest, drawn, limits=limits)
    if options.verdicts is not None:
        judgement = _stored(options.verdicts, trace)
    else:
        judgement = judge(options, trace, quiesced=options.quiesced)
    return page_of(judgement, trace, quiesced=options.quiesced)


def page_of(judgement: Judgement, trace: Path, *, quiesced: bool = False) -> str:
    """Of a trace of any size: of a huge run, only what is drawn is read."""
    limits = Limits()
    digest = digest_of(judgement, lines=limits.run_lines)
    judged = judged_in(judgement, [line.name for line in digest.lines[: limits.runs]])
    samples = read_samples(trace, judged, limits=limits, quiesced=quiesced)
    return compose(digest, samples, limits=limits)


def _comparison(options: argparse.Namespace) -> str:
    """The worst run of each trace."""
    if options.results is not None or options.verdicts is not None:
        raise UsageError("--compare judges both traces: leave --results and --verdicts out")
    limits = Limits()
    samples = []
    for given in (options.trace, options.compare):
        trace = gather_logs(given)
        judgement = judge(options, trace, quiesced=options.quiesced)
        worst = [line.name for line in digest_of(judgement, lines=1).lines]
        judged = judged_in(judgement, worst)
        samples += read_samples(trace, judged, limits=limits, quiesced=options.quiesced)
    if len(samples) < 2:
        raise UsageError("there is no run to compare in one of the traces")
    return compare(*samples, limits=limits)


class _Stored(msgspec.Struct):
    runs: int
    events: int
    verdicts: tuple[Verdict, ...]


def _stored(path: Path, trace: Path) -> Judgement:
    try:
        stored = msgspec.json.decode(path.read_bytes(), type=_Stored)
    except UNREADABLE as error:
        raise TraceError(f"{path}: not the output of 'ordercast verify --json': {error}") from None
    manifests = {manifest.run: manifest for manifest in read_manifests(trace)}
    runs = dict.fromkeys(verdict.run for verdict in stored.verdicts)
    judged = {verdict.property for verdict in stored.verdicts}
    promises = {run: promised(manifests.get(run, Manifest(run, ())), judged) for run in runs}
    return Judgement(stored.runs, stored.events, stored.verdicts, promises)
