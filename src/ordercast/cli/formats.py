"""What there is to say about other systems' logs; the same wherever they are taken."""

from __future__ import annotations

import argparse
from collections.abc import Container
from pathlib import Path

from ordercast.errors import UsageError
from ordercast.trace.importers import FORMATS, Options, detect, source_files
from ordercast.trace.importers.table import FIELDS, PRESETS
from ordercast.trace.verdicts import properties_of_order

__all__ = ["add_format_arguments", "refuse_format_options", "settled"]

FORMAT_OPTIONS = (
    *("run", "to", "crashed", "parser", "delimiter", "send", "receive", "level", "map", "kinds"),
    *("preset", "time_unit", "process_pattern", "dependencies"),
)


def add_format_arguments(parser: argparse.ArgumentParser, *, default: str | None) -> None:
    group = parser.add_argument_group("logs of other systems")
    names = "; ".join(f"{name}: {one.summary}" for name, one in FORMATS.items())
    group.add_argument(
        "--format", choices=("auto", *FORMATS), default=default, metavar="FORMAT",
        help=f"{'auto (default)' if default else 'auto'}, or {names}",
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
        help="dslab, maelstrom: judge messages between processes (network, the default), or those "
        "of users",
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


def settled(options: argparse.Namespace, sources: list[Path]) -> tuple[tuple[Path, ...], Options]:
    """The files that are meant, and what is said about them, once it is known to make sense."""
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
        options.format = detect(files[0], chosen)
    refuse_format_options(options, {"run", *FORMATS[options.format].options})
    return files, chosen


def refuse_format_options(options: argparse.Namespace, heeded: Container[str] = ()) -> None:
    """An option that nobody heeds is a mistake."""
    about = "logs of other systems: give it with --format"
    for name in FORMAT_OPTIONS:
        given = getattr(options, name)
        if name not in heeded and given and not (name == "level" and given == "network"):
            about = f"other formats than {options.format}" if options.format else about
            raise UsageError(f"--{name.replace('_', '-')} is about {about}")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name)


def _pairs(text: str) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in text.split(",") if pair]
    if not all(key and equals for key, equals, _ in pairs):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE,…")
    return {key: value for key, _, value in pairs}
