"""What every verb that works on Spark lets its user say about it."""

from __future__ import annotations

import argparse

from ordercast.errors import UsageError

__all__ = ["add_spark_arguments", "spark_settings"]


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
    config = {}
    for setting in options.conf:
        key, equals, value = setting.partition("=")
        if not key or not equals:
            raise UsageError(f"--conf {setting!r} is not of the form KEY=VALUE")
        config[key] = value
    return config
