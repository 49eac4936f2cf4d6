"""Workers that are used again do not look through all modules for garbage after every task."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pyarrow as pa
import pytest

from ordercast.pipeline.settling import settles


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.unfreeze()


def test_what_is_there_after_the_first_task_is_settled_once() -> None:
    @settles
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        assert not gc.get_freeze_count()
        yield from batches

    batch = pa.RecordBatch.from_pydict({"id": [1]})
    assert list(run(iter([batch]))) == [batch]
    assert gc.get_freeze_count() > 10_000
    gc.unfreeze()
    list(run(iter([batch])))
    assert not gc.get_freeze_count(), "garbage would be kept, a little more with each task"
