"""Logs with vector clocks, understood by Spark tasks as one machine understands them: whole, with
holes, with clocks that are wrong, one execution in many files and many in one."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ordercast.errors import TraceError
from ordercast.pipeline.reading.writing import import_log
from ordercast.trace.importers import import_trace

from .logs import same

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMED = {"send": r"sends (?<message>\S+)", "receive": r"hears (?<message>\S+)"}
DELIMITER = r"^=== (?<trace>.*) ===$"
Line = tuple[str, dict[str, int], str]


def execution(rng: random.Random, events: int) -> list[Line]:
    """Hosts that tick, send to all and hear what was sent, late and twice if it so happens."""
    hosts = [f"h{i}" for i in range(rng.randint(2, 4))]
    clocks: dict[str, dict[str, int]] = {host: {} for host in hosts}
    sent: list[tuple[str, dict[str, int]]] = []
    lines: list[Line] = []
    for i in range(events):
        host = rng.choice(hosts)
        clock, what = clocks[host], rng.choice(["tick", "send", "hear", "hear both"])
        heard = rng.choices(sent, k=1 + (what == "hear both")) if sent and "hear" in what else []
        for _, theirs in heard:
            for other, time in theirs.items():
                clock[other] = max(clock.get(other, 0), time)
        clock[host] = clock.get(host, 0) + 1
        words = f"hears {heard[0][0]}" if heard else "ticks"
        if what == "send":
            words = f"sends m{i}"
            sent.append((f"m{i}", dict(clock)))
        lines.append((host, dict(clock), words))
    return lines


def spoilt(rng: random.Random, lines: list[Line]) -> list[Line]:
    """With events missing, mixed up, or with an entry that is wrong."""
    kept = [line for line in lines if rng.random() > 0.1] or lines
    for _, clock, _ in rng.sample(kept, min(2, len(kept))):
        other = rng.choice(sorted(clock))
        clock[other] = max(1, clock[other] + rng.choice([-1, 1]))
    rng.shuffle(kept)
    return kept


def text(lines: list[Line]) -> str:
    return "".join(f"{host} {json.dumps(clock)}\n{words}\n" for host, clock, words in lines)


@pytest.mark.parametrize("options", [{}, {"receive": "hears"}, NAMED], ids=["", "half", "named"])
def test_executions_whole_and_spoilt(
    spark: SparkSession, options: dict[str, Any], tmp_path: Path
) -> None:
    rng = random.Random(len(options))
    files = dict.fromkeys(("one.log", "two.log", "three.log"), "")
    for run in range(12):
        lines = execution(rng, rng.randint(1, 30))
        lines = spoilt(rng, lines) if run % 2 else lines
        parts = rng.choice([1, 3])  # in one file, or its lines in all of them
        for part, name in enumerate(rng.sample(sorted(files), parts)):
            files[name] += f"=== run {run} ===\n{text(lines[part::parts])}"
    chosen = {"delimiter": DELIMITER, "to": "receivers", "skip_bad_rows": True, **options}
    traces = same(spark, files, "shiviz", tmp_path, **chosen)
    assert len(traces) > 10
    assert {trace.manifest.complete for trace in traces} == {True, False}


def test_a_file_per_host_and_a_layout_for_all(spark: SparkSession, tmp_path: Path) -> None:
    """Only the first file shows that clocks come first: the second one ends with a clock."""
    files = {
        "a.log": 'a {"a":1}\nstarts\na {"a":2}\nsends\n',
        "b.log": '# b\nb {"b":1}\nstarts\nb {"a":2, "b":2}\nb {"b":2}\n',
    }
    [trace] = same(spark, files, "shiviz", tmp_path, crashed=("a",))
    assert [event.kind for event in trace.events] == ["send", "crash", "deliver"]


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ("nothing\n", r"logs/b\.log: the parser '.*' finds no event in it"),
        ('b {"b":1}\nstarts\n', r"logs/a\.log: nothing in it is an event that can be judged"),
        ('b {"b":"x"}\nstarts\n', r"logs/b\.log, line 1: not a vector clock"),
    ],
)
def test_what_cannot_be_used(spark: SparkSession, second: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.log").write_text('a {"a":1}\nstarts\n')
    (tmp_path / "logs" / "b.log").write_text(second)
    with pytest.raises(TraceError, match=words):
        import_trace([tmp_path / "logs"], tmp_path / "t", format="shiviz")
    with pytest.raises(TraceError, match=words):
        import_log([tmp_path / "logs"], tmp_path / "t", format="shiviz", spark=spark)
    assert not (tmp_path / "t").exists()
