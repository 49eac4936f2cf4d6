"""Logs with vector clocks, understood by Spark tasks as one machine understands them: whole, with
holes, with clocks that are wrong, one execution in many files and many in one."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ordercast.errors import TraceError
from ordercast.pipeline.reading.writing import import_log
from ordercast.trace import Trace
from ordercast.trace.importers import import_trace
from ordercast.trace.importers.meaning import COUNTED

from .logs import same

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORDS = {"send": r"sends (?<message>\S+)", "receive": r"hears(?: (?<message>\S+))?"}
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


def in_words(rng: random.Random, lines: list[Line]) -> list[Line]:
    """Some name messages where they are sent and heard, some only where they are sent, and some
    nowhere: then it takes the clocks to tell that there was a send."""
    unnamed = rng.choice(["never", "(?<=hears) .*", "(?<=hears) .*|sends .*"])
    return [(host, clock, re.sub(unnamed, "", words)) for host, clock, words in lines]


def executions(rng: random.Random, worded: Callable[..., list[Line]]) -> dict[str, str]:
    """Whole and spoilt ones, each in one file, or its lines in all of them."""
    files = dict.fromkeys(("one.log", "two.log", "three.log"), "")
    for run in range(18):
        lines = worded(rng, execution(rng, rng.randint(1, 30)))
        lines = spoilt(rng, lines) if run % 2 else lines
        parts = rng.choice([1, 3])
        for part, name in enumerate(rng.sample(sorted(files), parts)):
            files[name] += f"=== run {run} ===\n{text(lines[part::parts])}"
    return files


def as_they_are(_: random.Random, lines: list[Line]) -> list[Line]:
    return lines


def imported(spark: SparkSession, files: dict[str, str], place: Path, **chosen: Any) -> list[Trace]:
    """Runs of all kinds, and a note on everything that there is to be noted."""
    chosen = {"delimiter": DELIMITER, "to": "receivers", "skip_bad_rows": True, **chosen}
    traces = same(spark, files, "shiviz", place, **chosen)
    assert len(traces) > 10
    assert {trace.manifest.complete for trace in traces} == {True, False}
    notes = "\n".join(traces[0].manifest.extra["imported"]["notes"])
    told = COUNTED.keys() - ({"silent"} if "receive" in chosen else {"late"})
    assert {what for what, words in COUNTED.items() if words.partition(":")[0] in notes} == told
    return traces


def test_executions_and_a_layout_for_all(spark: SparkSession, tmp_path: Path) -> None:
    """A file per host, of which only the first one shows that clocks come first: the second one
    ends with a clock. And executions of which all is read off the clocks."""
    files = {
        "a.log": 'a {"a":1}\nstarts\na {"a":2}\nsends\n',
        "b.log": '# b\n1000 b {"b":1}\nstarts\n2000 b {"a":2, "b":2}\nb {"b":2}\n',
    }
    files |= executions(random.Random(3), as_they_are)
    traces = imported(spark, files, tmp_path, crashed=("a",))
    [trace] = (trace for trace in traces if trace.manifest.run == "source")
    found = [(event.kind, event.time_us) for event in trace.events]
    assert found == [("send", None), ("crash", None), ("deliver", 2)]


def test_executions_in_words(spark: SparkSession, tmp_path: Path) -> None:
    imported(spark, executions(random.Random(1), in_words), tmp_path, **WORDS)


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
