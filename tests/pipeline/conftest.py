"""One Spark session for the whole test run: it costs seconds to start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from ordercast.pipeline import judge, session
from ordercast.trace.verdicts import Judgement

from .builders import write
from .cases import CASES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    # Tests are short jobs, like small traces: see `pipeline._for_size`.
    quick = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    with session(config={"spark.driver.memory": "1g", **quick}) as opened:
        yield opened


@pytest.fixture(scope="session")
def judgement(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Judgement:
    """All cases at once: a job costs the same for one run as for fifty."""
    path = write(tmp_path_factory.mktemp("cases") / "trace", [case.run for case in CASES])
    return judge(path, spark=spark)
