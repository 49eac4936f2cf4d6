"""Judge a trace on Spark: which orders held, which did not, and the smallest witness.

The exit code speaks of what was promised: by --order, else by the run's manifest, else
everything up to causal order. 0: it holds; 1: it is violated; 2: unknown, or unusable input.

example:
  ordercast verify out
  ordercast verify events.parquet --quiesced --order causal --json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from ordercast.cli.console import print_judgement, steps
from ordercast.errors import UsageError
from ordercast.trace.directory import event_files
from ordercast.trace.verdicts import Judgement, properties_of_order

__all__ = ["act", "add_arguments", "add_spark_arguments", "judge"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "trace", type=Path, metavar="TRACE", help="a trace directory, or an events file"
    )
    parser.add_argument("--order", help="the order that must have held, such as fifo or causal")
    parser.add_argument(
        "--quiesced", action="store_true", help="runs without a manifest had come to rest"
    )
    parser.add_argument("--json", action="store_true", help="print the verdicts as JSON")
    add_spark_arguments(parser)


def add_spark_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--master", help="the Spark master (default: this machine, all cores)")
    parser.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a Spark setting"
    )
    parser.add_argument("--verbose", action="store_true", help="let Spark's own log through")


def act(options: argparse.Namespace) -> int:
    judgement = judge(options, options.trace, quiesced=options.quiesced, order=options.order)
    if options.json:
        print(json.dumps(judgement.to_json()))
    else:
        print_judgement(judgement)
    return judgement.exit_code


def judge(
    options: argparse.Namespace, trace: Path, *, quiesced: bool = False, order: str | None = None
) -> Judgement:
    """Judge with the Spark settings of the command line. What can be refused at once is refused
    before Spark starts, which takes seconds."""
    config = {}
    for setting in options.conf:
        key, equals, value = setting.partition("=")
        if not key or not equals:
            raise UsageError(f"--conf {setting!r} is not of the form KEY=VALUE")
        config[key] = value
    if order is not None:
        properties_of_order(order)
    event_files(trace)
    from ordercast import pipeline

    with steps() as progress:
        progress.begin(f"judging {trace} on Spark")
        return pipeline.judge(
            trace,
            master=options.master,
            config=config,
            verbose=options.verbose,
            quiesced=quiesced,
            order=order,
        )
