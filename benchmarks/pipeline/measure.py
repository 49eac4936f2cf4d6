"""The clock: ordercast and the floor in one warm session; the peers one by one, after it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from benchmarks.pipeline.peers import CHECKS, Found, Peer
from benchmarks.pipeline.traces import Case
from benchmarks.pipeline.workers import Watch, free_mib, peak_mib
from ordercast import pipeline
from ordercast.trace.verdicts import PROPERTIES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ordercast.trace.verdicts import Judgement

__all__ = ["SAFETY", "Compared", "Limits", "Measured", "Times", "measure", "run_peer"]

SAFETY = CHECKS
REPEAT = 2
"""And keep the fastest."""
_FREE_SHARE = 0.8
_MORE = {"total_pairwise", "total_acyclic", "total_gap_free", "synchronous"}
"""What causal broadcast does not give."""
_PLANTED = {"no_duplication", "no_creation", "agreement", "uniform_agreement", "fifo", "causal"}
"""What does not hold where there are faults."""


@dataclass(frozen=True)
class Limits:
    seconds: float = 300
    """For one judgement, and for all of a peer's."""

    @property
    def mib(self) -> float:
        """For one process."""
        return _FREE_SHARE * free_mib()


@dataclass(frozen=True)
class Times:
    seconds: float | None
    """None if it came to nothing."""
    peak_mib: float = 0.0
    words: str = ""
    """Why it came to nothing."""


@dataclass(frozen=True)
class Measured:
    case: Case
    path: Path
    floor_s: float
    all: Times
    safety: Times
    each: dict[str, Times] = field(default_factory=dict)
    """By property."""

    @property
    def judged(self) -> dict[str, Times]:
        return {"all": self.all, "safety": self.safety, **self.each}

    @property
    def peak_mib(self) -> float:
        return max(times.peak_mib for times in self.judged.values())


@dataclass(frozen=True)
class Compared:
    """What a peer made of a trace."""

    peer: Peer
    case: Case
    times: Times
    found: Found = field(default_factory=dict)
    at_least: bool = False
    """It would have taken longer."""

    @property
    def seconds_per_event(self) -> float | None:
        return None if self.times.seconds is None else self.times.seconds / self.case.events


def measure(spark: SparkSession, case: Case, path: Path, limits: Limits, *, each: bool) -> Measured:
    """The floor is measured right before and right after, and the faster one counts."""
    before = floor_s(spark, case, path, limits)
    everything = _judged(spark, case, path, PROPERTIES, limits)
    safety = _judged(spark, case, path, SAFETY, limits)
    alone = {
        name: _judged(spark, case, path, (name,), limits) for name in (PROPERTIES if each else ())
    }
    return Measured(
        case, path, min(before, floor_s(spark, case, path, limits)), everything, safety, alone
    )


def floor_s(spark: SparkSession, case: Case, path: Path, limits: Limits) -> float:
    """The least that a job on Spark would do with the trace: read it, and count."""
    keys = ["run", "process", "origin"] if case.many else ["process", "origin"]

    def count() -> None:
        events = spark.read.parquet(str(path / "events"))
        counted = events.groupBy(*keys).agg(F.count("*"), F.max("number"))
        # A million groups are not for the driver.
        if case.many:
            counted.write.format("noop").mode("overwrite").save()
        else:
            counted.collect()

    fastest = float("inf")
    for _ in range(REPEAT):
        with Watch(spark, limit_s=limits.seconds, limit_mib=limits.mib):
            start = time.perf_counter()
            count()
            fastest = min(fastest, time.perf_counter() - start)
    return fastest


def _judged(
    spark: SparkSession, case: Case, path: Path, properties: Collection[str], limits: Limits
) -> Times:
    fastest, peak = float("inf"), 0.0
    for _ in range(REPEAT):
        with Watch(spark, limit_s=limits.seconds, limit_mib=limits.mib) as watch:
            try:
                start = time.perf_counter()
                judgement = pipeline.judge(path, spark=spark, properties=properties)
                fastest = min(fastest, time.perf_counter() - start)
            except Exception as error:
                # A figure that cannot be had must not cost the others.
                words = watch.stopped or f"failed: {str(error).splitlines()[0][:200]}"
                return Times(None, watch.peak_mib, words)
        peak = max(peak, watch.peak_mib)
        if (wrong := _wrong(case, judgement)) is not None:
            return Times(None, peak, f"wrong: {wrong}")
    return Times(fastest, peak)


def _wrong(case: Case, judgement: Judgement) -> str | None:
    """How fast a wrong answer comes is of no interest."""
    if judgement.events != case.events:
        return f"{judgement.events} events, not {case.events}"
    broken = {one.property for one in judgement.verdicts if one.verdict != "holds"}
    allowed = {"synchronous"} if case.total else _MORE
    planted = {one.property for one in judgement.verdicts} & _PLANTED if case.faults else set()
    if not planted <= broken:
        return f"it says that {sorted(planted - broken)} hold"
    lost = broken - allowed - planted
    return f"it says that {sorted(lost)} do not hold" if lost else None


def run_peer(peer: Peer, case: Case, path: Path, scratch: Path, limits: Limits) -> Compared:
    """In a process of its own, so that its memory is its own."""
    if peer.missing is not None:
        print(f"{peer.name} is skipped: {peer.missing}", file=sys.stderr, flush=True)
        return Compared(peer, case, Times(None, words=f"skipped: {peer.missing}"))
    scratch.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "benchmarks.pipeline.peers", peer.name, path, scratch, REPEAT]
    log, errors = scratch / "peer.jsonl", scratch / "peer.txt"
    with log.open("wb") as out, errors.open("wb") as words:
        process = subprocess.Popen(map(str, command), stdout=out, stderr=words)  # noqa: S603
        stopped, peak = _await(process, limits)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    if not lines:
        last = (errors.read_text().splitlines() or ["it ended without a word"])[-1]
        seconds = limits.seconds if stopped and "after" in stopped else None
        told = stopped or f"failed: {last[:200]}"
        return Compared(peer, case, Times(seconds, peak, told), at_least=seconds is not None)
    best = min(lines, key=lambda line: line["seconds"])
    peak, found = lines[-1]["peak_mib"], best["found"]
    if any(found.values()):
        return Compared(peer, case, Times(None, peak, f"wrong: it found {found}"), found)
    return Compared(peer, case, Times(best["seconds"], peak), found)


def _await(process: subprocess.Popen[bytes], limits: Limits) -> tuple[str | None, float]:
    """Why it had to be stopped, if it had to; and the most memory it was seen with."""
    end, most, peak = time.monotonic() + limits.seconds, limits.mib, 0.0
    stopped = None
    try:
        while process.poll() is None and stopped is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=0.1)
            peak = max(peak, peak_mib(process.pid))
            if time.monotonic() > end:
                stopped = f"gave up after {limits.seconds:.0f} s"
            elif peak > most:
                stopped = f"gave up: it took more than {most:,.0f} MiB"
    finally:
        process.kill()
        process.wait()
    return stopped, peak
