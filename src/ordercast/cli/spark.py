"""What every verb that works on Spark lets its user say about it, and those that can do without."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from contextlib import contextmanager

from ordercast.errors import SetupError, UsageError
from ordercast.pipeline.cluster import address_towards, wait_s
from ordercast.pipeline.installed import require_pyspark
from ordercast.pipeline.java import GET_JAVA, JAVA_VERSION_MIN, java_version, require_java

__all__ = [
    "add_judging_arguments",
    "add_spark_arguments",
    "check_spark",
    "or_here",
    "pairs",
    "refuse_with_here",
    "require_spark",
    "spark_settings",
]

_MASTER = re.compile(
    r"local(\[(\d+|\*)(,\s*\d+)?\])?|local-cluster\[.+\]|(spark|k8s)://.+|yarn", re.ASCII
)
_SPARKS = ("master", "conf")


def add_spark_arguments(
    parser: argparse._ActionsContainer, *, without: str = "this machine, all cores"
) -> None:
    parser.add_argument("--master", help=f"the Spark master (default: {without})")
    parser.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a Spark setting"
    )
    parser.add_argument("--verbose", action="store_true", help="let Spark's own log through")


def add_judging_arguments(parser: argparse._ActionsContainer) -> None:
    """For a verb that judges: Spark's, and one that does without."""
    parser.add_argument(
        "--here", action="store_true",
        help="judge in this process, without Spark and Java: up to ten million events",
    )  # fmt: skip
    add_spark_arguments(parser)


def refuse_with_here(options: argparse.Namespace, *more: str) -> None:
    """What Spark is told, and `more` of what only Spark does."""
    flags = (*more, *_SPARKS)
    if options.here and any(getattr(options, flag) for flag in flags):
        *some, last = (f"--{flag}" for flag in flags)
        raise UsageError(f"--here does without Spark: leave out {', '.join(some)} and {last}")


@contextmanager
def or_here(options: argparse.Namespace, *, spark_only: bool) -> Iterator[None]:
    """What keeps Spark from judging is told together with the way to do without it, unless that is
    no way to have what was asked for."""
    try:
        yield
    except SetupError as trouble:
        if spark_only or options.here or any(getattr(options, flag) for flag in _SPARKS):
            raise
        raise SetupError(f"{trouble}; or judge without Spark what is small: --here") from None


def spark_settings(options: argparse.Namespace) -> dict[str, str]:
    """What `--conf` says."""
    return pairs("--conf", options.conf)


def check_spark(options: argparse.Namespace) -> None:
    """What can be told of Spark without starting it, for a verb that has long work to do before."""
    config = spark_settings(options)
    wait_s(config)
    require_pyspark()
    require_java()
    if (version := java_version()) is not None and version < JAVA_VERSION_MIN:
        raise SetupError(f"Spark does not run on Java {version}: {GET_JAVA}")
    master = options.master or config.get("spark.master", "local[*]")
    if not _MASTER.fullmatch(master):
        raise UsageError(
            f"{master!r} is no Spark master: write local[*], spark://HOST:7077, yarn or k8s://…"
        )
    address_towards(master)  # refused now, if it does not answer


def require_spark(work: str) -> None:
    """`work` is what the user wants done, such as "a sweep"."""
    require_pyspark(work)


def pairs(flag: str, settings: list[str]) -> dict[str, str]:
    """What a flag says that is given as KEY=VALUE, any number of times."""
    found = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not key or not equals:
            raise UsageError(f"{flag} {setting!r} is not of the form KEY=VALUE")
        found[key] = value
    return found
