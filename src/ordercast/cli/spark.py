"""What every verb that works on Spark lets its user say about it."""

from __future__ import annotations

import argparse
import re

from ordercast.errors import SetupError, UsageError
from ordercast.pipeline.cluster import address_towards, wait_s
from ordercast.pipeline.java import GET_JAVA, JAVA_VERSION_MIN, java_version, require_java
from ordercast.pipeline.session import require_pyspark

__all__ = [
    "add_spark_arguments",
    "check_spark",
    "pairs",
    "require_extra",
    "require_spark",
    "spark_settings",
]

_MASTER = re.compile(
    r"local(\[(\d+|\*)(,\s*\d+)?\])?|local-cluster\[.+\]|(spark|k8s)://.+|yarn", re.ASCII
)
_INSTALL = "pip install 'ordercast[spark]'"


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
    try:
        require_pyspark()
    except SetupError:
        raise SetupError(f"{work} needs Spark, which is not installed here: {_INSTALL}") from None


def require_extra(work: str) -> None:
    """The same for what does without Spark, but not without what is installed with it."""
    try:
        require_pyspark()
    except SetupError:
        raise SetupError(
            f"{work} needs packages that are not all installed here: {_INSTALL}"
        ) from None


def pairs(flag: str, settings: list[str]) -> dict[str, str]:
    """What a flag says that is given as KEY=VALUE, any number of times."""
    found = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not key or not equals:
            raise UsageError(f"{flag} {setting!r} is not of the form KEY=VALUE")
        found[key] = value
    return found
