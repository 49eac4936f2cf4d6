"""All hand-written cases, judged once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from ordercast import pipeline
from ordercast.pipeline import judge
from ordercast.pipeline.blocks import judging, plan
from ordercast.pipeline.here import Here, judge_here
from ordercast.pipeline.kernels import kernel
from ordercast.pipeline.options import Options
from ordercast.pipeline.source import Source
from ordercast.trace.verdicts import Judgement

from .builders import write
from .cases import CASES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def judgement(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Judgement:
    """All cases at once: a job costs the same for one run as for fifty."""
    path = write(tmp_path_factory.mktemp("cases") / "trace", [case.run for case in CASES])
    return judge(path, spark=spark)


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many there were each time. What is compiled once is used by all tests."""
    monkeypatch.setattr(kernel, "WORTH_COMPILING", 0)
    many = []

    def count(*those: object) -> list[plan.Work]:
        found = plan.blocks(*those)  # type: ignore[arg-type]
        many.append(len(found))
        return found

    monkeypatch.setattr(judging, "blocks", count)
    return many


class Ready(Here):
    """As `Results` has it, for who writes it down."""

    def stream(self, name: str) -> Iterator[pa.Table]:
        yield self.collect(name)


@pytest.fixture
def judged_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verdicts are found in this process: for tests of what becomes of them, and of nothing that is
    Spark's. There are no costs."""

    def ready(source: Source, options: Options) -> Ready:
        return Ready(judge_here(source, options)._ready)

    monkeypatch.setattr(pipeline, "_on", lambda _: ready)
