"""All hand-written cases, judged once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ordercast.pipeline import judge
from ordercast.pipeline.blocks import judging, plan
from ordercast.pipeline.kernels import kernel
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
