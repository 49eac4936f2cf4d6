"""Exactly once, by force: a driver that is killed again and again, and what its sink has then.

    python -m tests.pipeline.streaming.kills --lives 20

Each life goes on from the checkpoint of the one before. All but the last end by `kill -9` of the
driver and its JVM, at a random moment after Spark has started.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.dataset as ds

from .builders import record, sent, shuffled

WIDTH = 3
ROOT = Path(__file__).parents[3]


def write_stream(directory: Path, random: Random, *, files: int) -> int:
    """How many messages there are; each comes once or twice, out of order."""
    messages = sent(random, groups=6, origins=WIDTH, messages=40 * files)
    copies = shuffled(random, messages + random.sample(messages, k=10 * files), reach=150)
    directory.mkdir()
    share = -(-len(copies) // files)
    for at in range(files):
        lines = [json.dumps(record(m, width=WIDTH)) for m in copies[at * share : (at + 1) * share]]
        file = directory / f"{at:04}.json"
        file.write_text("\n".join(lines) + "\n")
        os.utime(file, (at, at))
    return len(messages)


def live(directory: Path) -> subprocess.Popen[bytes]:
    command = [
        *(sys.executable, "-m", "ordercast", "stream", "order", str(directory / "in")),
        *("--schema", "room string, origin int, number long, stamp array<long>, label long"),
        *("--group", "room", "--buckets", "2", "--once", "--option", "maxFilesPerTrigger=1"),
        *("--output", str(directory / "out"), "--checkpoint", str(directory / "state")),
        *("--master", "local[2]", "--conf", "spark.driver.memory=512m"),
        *("--conf", "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1"),
    ]
    with (directory / "log.txt").open("ab") as log:
        # A group of its own: its JVM and its workers die with it.
        return subprocess.Popen(
            command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True, env=os.environ
        )


def counts(directory: Path) -> tuple[int, int]:
    """Batches that were begun, and that were committed."""
    names = ("offsets", "commits")
    begun, committed = (len(list((directory / "state" / n).glob("[0-9]*"))) for n in names)
    return begun, committed


def kill_in_the_middle(process: subprocess.Popen[bytes], directory: Path, random: Random) -> None:
    """At any moment after it has got somewhere: in a batch, or between two."""
    before = counts(directory)
    while process.poll() is None and counts(directory) == before:
        time.sleep(0.05)
    time.sleep(random.uniform(0, 3))
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    else:
        assert process.returncode == 0, (directory / "log.txt").read_text()[-3000:]


def check(directory: Path, messages: int) -> None:
    """Every message once, each after all that it needs."""
    rows = ds.dataset(directory / "out" / "ordered", partitioning="hive").to_table().to_pylist()
    copies = Counter(row["label"] for row in rows)
    assert not (twice := [label for label, count in copies.items() if count > 1]), twice
    assert len(rows) == messages, f"{len(rows)} rows of {messages}"
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: (row["room"], row["position"])):
        groups.setdefault(row["room"], []).append(row)
    for mine in groups.values():
        assert [row["position"] for row in mine] == list(range(len(mine)))
        assert [row["batch"] for row in mine] == sorted(row["batch"] for row in mine)
        reached = [0] * WIDTH
        for row in mine:
            needed = list(row["stamp"])
            needed[row["origin"]] -= 1
            assert needed[row["origin"]] == reached[row["origin"]], row
            assert all(n <= r for n, r in zip(needed, reached, strict=True)), (row, reached)
            reached[row["origin"]] += 1


def run(directory: Path, *, lives: int, seed: int) -> list[int]:
    """Batches that were committed after each life."""
    random = Random(seed)
    messages = write_stream(directory / "in", random, files=2 * lives + 2)
    committed = []
    for life in range(lives):
        process = live(directory)
        try:
            if life < lives - 1:
                kill_in_the_middle(process, directory, random)
            else:
                assert process.wait(timeout=600) == 0, (directory / "log.txt").read_text()[-3000:]
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        committed.append(counts(directory)[1])
        print(f"life {life + 1}: {committed[-1]} batches committed", file=sys.stderr, flush=True)
    check(directory, messages)
    return committed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lives", type=int, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ordercast-kills-") as place:
        committed = run(Path(place), lives=chosen.lives, seed=chosen.seed)
    print(f"seed {chosen.seed}: every message once, in causal order, after {len(committed)} lives")


if __name__ == "__main__":
    main()
