"""What a watch says, as rows: verdicts when something changes, and how each run is doing."""

from __future__ import annotations

from datetime import UTC, datetime

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from ordercast.pipeline.streaming.watch_fold import Folded
from ordercast.pipeline.streaming.watch_memory import Memory
from ordercast.trace.manifest import Manifest
from ordercast.trace.news import Quantiles
from ordercast.trace.verdicts import Verdict, order_held, promised

__all__ = [
    "WATCHED",
    "flaw_row",
    "flaw_rows",
    "status_row",
    "status_rows",
    "verdict_row",
    "verdict_rows",
]

_QUANTILES = "struct<p50: bigint, p99: bigint>"
_WITNESS = "struct<process: int, messages: array<string>, sentence: string>"
_STANDING = "struct<property: string, verdict: string, checked: bigint, violations: bigint>"
_VERDICT = (
    "struct<property: string, verdict: string, checked: bigint, violations: bigint, "
    f"witness: {_WITNESS}, since: string>"
)
_STATUS = (
    "struct<events: bigint, messages: bigint, deliveries: bigint, kept: bigint, waiting: bigint, "
    "repeated: bigint, events_per_s: double, deliveries_per_s: double, "
    f"latency_us: {_QUANTILES}, held_us: {_QUANTILES}, order_held: string, "
    f"promised: array<string>, over: boolean, standing: array<{_STANDING}>>"
)
WATCHED = (
    f"run string, time timestamp, kind string, verdict {_VERDICT}, status {_STATUS}, flaw string"
)
"""`kind` is `verdict`, `status` or `flaw`, and only the column of that name is filled in."""


def verdict_rows(watched: DataFrame) -> DataFrame:
    """Of what `watch` gives: run, time, property, verdict, checked, violations, witness, since.

    A row comes the first time that a property of a run is judged, whenever violations are found
    and once the run is over (`since`: first, changed, final).
    """
    return _of("verdict", watched)


def status_rows(watched: DataFrame) -> DataFrame:
    """Of what `watch` gives, one row per batch and run that had something new: run, time, and how
    much there was of it. `standing` has the current verdicts."""
    return _of("status", watched)


def flaw_rows(watched: DataFrame) -> DataFrame:
    """Of what `watch` gives: run, time, flaw: rows that could not be used, in words."""
    return watched.where(F.col("kind") == "flaw").select("run", "time", "flaw")


def _of(kind: str, watched: DataFrame) -> DataFrame:
    return watched.where(F.col("kind") == kind).select("run", "time", f"{kind}.*")


def verdict_row(verdict: Verdict, since: str, at: float) -> Row:
    seen = verdict.witness
    witness = None
    if seen is not None:
        process = None if seen.process < 0 else seen.process
        witness = Row(process=process, messages=list(seen.messages), sentence=seen.sentence)
    said = Row(
        property=verdict.property,
        verdict=verdict.verdict,
        checked=verdict.checked,
        violations=verdict.violations,
        witness=witness,
        since=since,
    )
    return _row(verdict.run, at, "verdict", verdict=said)


def status_row(run: str, memory: Memory, folded: Folded, kept: int, at: float) -> Row:
    passed = None if memory.seen_at is None else max(at - memory.seen_at, 1e-3)
    manifest = memory.described() or Manifest(run, ())
    standing = [
        Row(property=one.property, verdict=one.verdict, checked=one.checked,
            violations=one.violations)
        for one in memory.standing.values()
    ]  # fmt: skip
    said = Row(
        events=memory.events,
        messages=memory.messages,
        deliveries=memory.deliveries,
        kept=kept,
        waiting=folded.waiting,
        repeated=memory.repeated,
        events_per_s=None if passed is None else folded.new_events / passed,
        deliveries_per_s=None if passed is None else folded.new_deliveries / passed,
        latency_us=_quantiles(folded.latency),
        held_us=_quantiles(folded.held),
        order_held=order_held(memory.standing.values()),
        promised=list(promised(manifest, memory.standing)),
        over=folded.over,
        standing=standing,
    )
    return _row(run, at, "status", status=said)


def flaw_row(run: str, flaw: str, at: float) -> Row:
    return _row(run, at, "flaw", flaw=flaw)


def _quantiles(found: Quantiles | None) -> Row | None:
    return None if found is None else Row(p50=found.p50, p99=found.p99)


def _row(
    run: str,
    at: float,
    kind: str,
    *,
    verdict: Row | None = None,
    status: Row | None = None,
    flaw: str | None = None,
) -> Row:
    when = datetime.fromtimestamp(at, UTC)
    return Row(run=run, time=when, kind=kind, verdict=verdict, status=status, flaw=flaw)
