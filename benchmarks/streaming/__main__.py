"""How fast a stream is put in causal order, next to no operator and to Spark's own with state.

Streams of 1, 100 and 10,000 groups with 4 and 16 origins, of which 0, 10 and 50 % come out of
order, are written as Parquet; each goes as whole batches through each subject, in one session that
has been through hundreds, into a sink that drops it. Subjects take turns, and the fastest batch
counts. Then: the cost while 1 and 100 messages a group are held, bytes of state for each, the time
from a small file to the sink, and the events a second of a watch on a trace.

example:
  python -m benchmarks.streaming --rows 100000 --only g100-n4 --warm 0
  python -m benchmarks.streaming --json figures.json
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.show import Row, show
from benchmarks.streaming.goals import goals, rate
from benchmarks.streaming.measure import Speed, latency_s, speed, state_bytes_per_held
from benchmarks.streaming.streams import Stream
from benchmarks.streaming.subjects import NOTHING, OURS, SUBJECTS
from benchmarks.streaming.watching import Trace, watch_rates
from ordercast import pipeline
from ordercast.cli.steps import Steps, steps
from ordercast.pipeline import streaming

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WARM_UP_BATCHES = 16
"""Of one turn."""


def main() -> None:
    chosen = _parser().parse_args()
    streams = [one for one in _streams(chosen.rows, chosen.batches) if chosen.only in one.name]
    if not streams:
        print("there is no stream with that in its name", file=sys.stderr)
        sys.exit(2)
    config = {**streaming.SESSION_SETTINGS, "spark.sql.shuffle.partitions": "2"}
    if not chosen.local:
        for key in streaming.LOCAL_CHECKPOINT:
            del config[key]
    speeds: list[Speed] = []
    more: dict[str, Any] = {}
    with (
        tempfile.TemporaryDirectory(prefix="ordercast-benchmark-", dir=chosen.directory) as place,
        steps() as doing,
        pipeline.session(config=config) as spark,
    ):
        _warm_up(spark, chosen, doing, Path(place))
        for stream in streams:
            for subject in _subjects(stream, chosen.rounds, quick=chosen.quick):
                doing.begin(f"{subject}, {stream.name}")
                speeds.append(speed(spark, stream, subject, Path(place)))
        if chosen.only == "" or chosen.rest:
            more = _rest(spark, chosen, doing, Path(place))
    _tell(speeds, more, chosen.json)


def _warm_up(spark: SparkSession, chosen: argparse.Namespace, doing: Steps, place: Path) -> None:
    """A stream runs for hours, and its JVM goes on compiling for some three hundred batches."""
    stream = Stream(100, 4, 0.1, chosen.rows, WARM_UP_BATCHES)
    for done in range(0, chosen.warm, WARM_UP_BATCHES):
        for subject in (OURS, NOTHING):
            doing.begin(f"warming up, {subject}: batch {done + 1} of {chosen.warm}")
            speed(spark, stream, subject, place / "warm")


def _streams(rows: int, batches: int) -> list[Stream]:
    plain = [
        Stream(groups, origins, disorder, rows, batches)
        for origins in (4, 16)
        for groups in (1, 100, 10_000)
        for disorder in (0, 0.1, 0.5)
    ]
    return plain + [Stream(100, 4, 0.1, rows, batches, held=held) for held in (1, 100)]


def _subjects(stream: Stream, rounds: int, *, quick: bool) -> list[str]:
    """In turns. Spark's own operators with state take minutes, so they are measured on two streams
    only, and afterwards: what the JVM has compiled for the others, it compiles anew for them."""
    if stream.held:
        return rounds * [OURS]
    every = stream.groups == 100 and stream.disorder == 0.1 and not quick
    others = [name for name in SUBJECTS if name not in (NOTHING, OURS)] if every else []
    return rounds * [NOTHING, OURS] + rounds * others


def _rest(
    spark: SparkSession, chosen: argparse.Namespace, doing: Steps, place: Path
) -> dict[str, Any]:
    doing.begin("bytes of state")
    held = Stream(100, 4, 0.1, chosen.rows, chosen.batches, held=100)
    found: dict[str, Any] = {"state bytes per held": state_bytes_per_held(spark, held, place)}
    small = Stream(100, 4, 0.1, 200, 10)
    for subject in (NOTHING, OURS):
        doing.begin(f"latency, {subject}")
        found[f"latency s, {subject}"] = latency_s(spark, small, subject, place, 10)
    for runs in (1, 100):
        trace = Trace(runs, 4, chosen.rows, chosen.batches)
        doing.begin(f"watch, {trace.name}")
        for subject, events_per_s in watch_rates(spark, trace, place).items():
            found[f"events k/s, {subject}, {trace.name}"] = events_per_s / 1000
    return found


def _tell(speeds: list[Speed], more: dict[str, Any], file: Path | None) -> None:
    rows: list[Row] = []
    for name in dict.fromkeys(one.stream.name for one in speeds):
        known = {subject: rate(speeds, name, subject) for subject in SUBJECTS}
        ours = known.pop(OURS)
        assert ours is not None
        rows.append(
            {"stream": name, "causal_order_k/s": ours / 1000}
            | {f"× {other}": None if one is None else ours / one for other, one in known.items()}
        )
    show("rows a second, and ratios to the others", rows, as_json=False)
    if more:
        show(
            "and", [{"what": name, "figure": value} for name, value in more.items()], as_json=False
        )
    found = goals(speeds)
    if found:
        show("goals", [goal.row() for goal in found], as_json=False)
    if file is not None:
        content = {"speeds": rows, "more": more, "goals": [vars(goal) for goal in found]}
        file.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.streaming",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add: Any = parser.add_argument
    add("--rows", type=int, default=200_000, help="of a batch (default: 200000)")
    add("--batches", type=int, default=4, help="default: 4; the first is not counted")
    add("--rounds", type=int, default=3, help="through each subject (default: 3)")
    add("--warm", type=int, default=320, metavar="N",
        help="batches through both before any counts (default: 320)")  # fmt: skip
    add("--only", default="", metavar="NAME", help="streams with that in their name: g100-n4-10%%")
    add("--quick", action="store_true", help="only next to no operator")
    add("--local", action="store_true", help="with `streaming.LOCAL_CHECKPOINT`, for all subjects")
    add("--rest", action="store_true", help="state, latency and the watch also with --only")
    add("--directory", type=Path, metavar="DIR", help="for the streams (default: a temporary one)")
    add("--json", type=Path, metavar="FILE", help="write all figures there as well")
    return parser


if __name__ == "__main__":
    main()
