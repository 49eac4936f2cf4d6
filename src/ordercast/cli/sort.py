"""Put stamped messages into causal order, and check that they are.

SOURCE is Parquet, JSON lines or CSV, one file or a directory of them, one row per message: who sent
it (origin), its number there from 1, and its stamp, how many messages of each origin the sender
knew. The files of the output, read one after the other by name, have every message after all that
it knows. Exit codes: 0 they have, 1 the stamps contradict each other, 2 unusable input.

example:
  ordercast sort messages/ --output sorted
  ordercast sort edits.jsonl --output sorted --origin author --number seq --stamp clock --group page
  ordercast sort messages/ --output sorted --jsonl --drop-duplicates
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from ordercast.cli.say import say
from ordercast.cli.spark import add_spark_arguments, require_spark, spark_settings
from ordercast.cli.steps import steps
from ordercast.cli.words import counted
from ordercast.trace.verdicts import exit_code

if TYPE_CHECKING:
    from ordercast.pipeline.sorting.files import Sorted

__all__ = ["act", "add_arguments"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source", type=Path, metavar="SOURCE", help="a file, or a directory of files"
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", required=True, help="write the messages here"
    )
    parser.add_argument("--jsonl", action="store_true", help="write JSON lines, not Parquet")
    for name, default, what in (
        ("origin", "origin", "who sent the message"),
        ("number", "number", "its number there, from 1"),
        ("stamp", "stamp", "how many messages of each origin the sender knew"),
        ("position", "position", "the new one: the message's place, from 0"),
    ):
        shown = f"the column: {what} (default: {default})"
        parser.add_argument(f"--{name}", metavar="COLUMN", default=default, help=shown)
    parser.add_argument(
        "--group", metavar="COLUMN", help="the column: messages of which group; sorted one by one"
    )
    parser.add_argument(
        "--rows-per-file", type=int, metavar="ROWS", help="about how many (default: 262144)"
    )
    parser.add_argument(
        "--drop-duplicates", action="store_true",
        help="keep one of the rows that have the same id and the same stamp",
    )  # fmt: skip
    parser.add_argument(
        "--no-check",
        action="store_true",
        help="believe the stamps, and that no message comes twice",
    )
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    add_spark_arguments(parser)


def act(options: argparse.Namespace) -> int:
    config = spark_settings(options)
    require_spark("sorting")
    from ordercast.pipeline.sorting import ROWS_EACH
    from ordercast.pipeline.sorting.columns import Columns
    from ordercast.pipeline.sorting.files import sort_files

    with steps() as progress:
        done = sort_files(
            options.source,
            options.output,
            columns=Columns(options.origin, options.number, options.stamp, options.group),
            position=options.position,
            write="jsonl" if options.jsonl else "parquet",
            rows_each=ROWS_EACH if options.rows_per_file is None else options.rows_per_file,
            drop_duplicates=options.drop_duplicates,
            check=not options.no_check,
            master=options.master,
            config=config,
            verbose=options.verbose,
            begin=progress.begin,
        )
    if options.json:
        _print_json(done, options.output)
    else:
        _print(done, options.output)
    return exit_code("holds" if done.checked is None or done.checked.holds else "violated")


def _print_json(done: Sorted, output: Path) -> None:
    checked = done.checked
    summary: dict[str, object] = {
        "messages": done.messages,
        "files": done.files,
        "dropped": done.dropped,
        "output": str(output),
    }
    if checked is not None:
        summary |= {
            "verdict": "holds" if checked.holds else "violated",
            "compared": checked.compared,
            "late": checked.late,
            "sentence": checked.sentence,
        }
    print(json.dumps(summary))


def _print(done: Sorted, output: Path) -> None:
    messages, files = counted(done.messages, "message"), counted(done.files, "file")
    print(f"{messages} in {files}: {output}")
    if done.dropped:
        print(f"Dropped as duplicates: {done.dropped}")
    checked = done.checked
    if checked is None:
        print("Not checked.")
    elif checked.holds:
        print(
            "Causal order: holds. Every message comes after all that it knows; "
            f"{checked.compared} stamps were compared."
        )
    else:
        say(f"Causal order: violated. {checked.sentence}. Messages out of order: {checked.late}.")
