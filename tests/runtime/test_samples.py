"""What a member tells about itself in a live run: bounded, and of the same messages everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ordercast.runtime.control import Moment
from ordercast.runtime.samples import MOMENTS_MAX, WatchedLog
from ordercast.trace.spans import Span, log_files, read_log


@pytest.fixture
def log(tmp_path: Path) -> Iterator[WatchedLog]:
    with WatchedLog(tmp_path, "p0", run="r", process=0) as log:
        yield log


def sends(first: int, count: int) -> Span:
    return Span("send", first, 0, first, count)


def test_what_is_written_is_told_once_and_is_in_the_log(log: WatchedLog, tmp_path: Path) -> None:
    spans = [sends(1, 2), Span("deliver", 7, 1, 5), Span("crash", 9)]
    log.write(iter(spans))
    told, every = log.take()
    assert told == (Moment("send", 1, 0, 1), Moment("send", 1, 0, 2), Moment("deliver", 7, 1, 5))
    assert every == 1
    assert log.take() == ((), 1)
    assert [span for file in log_files(tmp_path) for span in read_log(file)[1]] == spans


@pytest.mark.parametrize("bundle", [1, 7, 100, 5000])
def test_of_many_only_multiples_are_told_and_never_too_many(log: WatchedLog, bundle: int) -> None:
    for first in range(1, 10_000, bundle):
        log.write([sends(first, bundle)])
    told, every = log.take()
    assert MOMENTS_MAX // 4 < len(told) <= MOMENTS_MAX
    last = 10_000 if bundle == 1 else (9_999 + bundle - 1) // bundle * bundle
    assert [moment.number for moment in told] == list(range(every, last, every))[: len(told)]
    assert len(told) == (last if bundle > 1 else 9_999) // every


def test_what_is_told_of_less_is_more_again(log: WatchedLog) -> None:
    for number in range(1, 5_000):
        log.write([sends(number, 1)])
    seen = [log.take()[1]]
    assert seen[0] > 1
    for _ in range(10):
        log.write([sends(5_000, 1)])
        seen.append(log.take()[1])
    assert seen == sorted(seen, reverse=True)
    assert seen[-1] == 1
