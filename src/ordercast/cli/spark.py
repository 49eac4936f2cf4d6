"""What every verb that works on Spark lets its user say about it."""

from __future__ import annotations

import argparse

from ordercast.errors import UsageError

__all__ = ["add_spark_arguments", "pairs", "spark_settings"]


def add_spark_arguments(
    parser: argparse._ActionsContainer, *, without: str = "this machine, all cores"
) -> None:
    parser.add_argument("--master", help=f"the Spark master (default: {without})")
    parser.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a Spark setting"
    )
    parser.add_argument("--verbose", action="store_true", help="let Spark's own log through")


def spark_settings(options: argparse.Namespace) -> dict[str, str]:
    """What `--conf` says."""
    return pairs("--conf", options.conf)


def pairs(flag: str, settings: list[str]) -> dict[str, str]:
    """What a flag says that is given as KEY=VALUE, any number of times."""
    found = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not key or not equals:
            raise UsageError(f"{flag} {setting!r} is not of the form KEY=VALUE")
        found[key] = value
    return found
