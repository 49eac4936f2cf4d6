"""When a member crashed, of which it can say little itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from ordercast.runtime.collect import collect
from ordercast.trace import Trace, TraceWriter
from ordercast.trace.span_log import SpanLog
from ordercast.trace.spans import Span

LIFE = [Span("send", 100, 0, 1, 2, 8)]
SECOND_LIFE = [Span("crash", 900), Span("recover", 900), Span("send", 950, 0, 3, 1, 8)]


@pytest.mark.parametrize(
    ("log", "ends_us", "crashes_us"),
    [
        pytest.param(LIFE, (130,), [130], id="seen"),
        pytest.param(LIFE, (), [100], id="not seen: its last sign of life"),
        pytest.param([], (130,), [130], id="no sign of life at all"),
        pytest.param(LIFE + SECOND_LIFE, (130, 970), [130, 970], id="twice"),
        pytest.param(LIFE + SECOND_LIFE, (130, 140, 970), [130, 970], id="a life of no deeds"),
        pytest.param(LIFE + SECOND_LIFE, (), [900, 950], id="as it wrote down itself"),
    ],
)
def test_a_crash_is_when_it_was_and_not_when_logs_are_collected(
    tmp_path: Path, log: list[Span], ends_us: tuple[int, ...], crashes_us: list[int]
) -> None:
    with SpanLog(tmp_path / "members", "p0", run="r", process=0) as spans:
        spans.write(log)
    with TraceWriter(tmp_path / "trace") as writer:
        tally = collect(
            tmp_path / "members", writer, run="r", process=0, crashed=True, ends_us=ends_us
        )
    (trace,) = Trace.load(tmp_path / "trace")
    times = [event.time_us or 0 for event in trace.events]
    assert times == sorted(times)
    assert [event.time_us for event in trace.events if event.kind == "crash"] == crashes_us
    assert trace.events[-1].kind == "crash"
    assert tally.sent == sum(event.kind == "send" for event in trace.events)
