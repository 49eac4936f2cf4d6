"""Polars: expressions, on all cores, by the streaming engine where that is quicker."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from polars import col

from benchmarks.pipeline.peers import Found, members

__all__ = ["wide", "windows"]

_ORIGIN = 1 << 40
"""A message as one number is origin × this + number: one key is quicker than two."""


def windows(trace: Path) -> Found:
    size = members(trace)
    events = _events(trace)
    delivered, sent = events.filter(~col("sent")), events.filter("sent")
    per_process = delivered.lazy().group_by("message", "process").agg(times=pl.len())
    reached = per_process.group_by("message").agg(times=col("times").max(), receivers=pl.len())
    counts = {
        f"c{o}": (~col("sent") & (col("origin") == o)).cast(pl.Int32).cum_sum().over("process")
        for o in range(size)
    }
    counted = events.lazy().with_columns(**counts)
    both = counted.filter(~col("sent")).join(counted.filter("sent"), on="message", suffix="_needed")
    short = pl.any_horizontal(
        col(f"c{o}") - (col("origin") == o).cast(pl.Int32) < col(f"c{o}_needed")
        for o in range(size)
    )
    totals = _streamed(
        reached.select(
            no_duplication=(col("times") > 1).sum(),
            agreement=(col("receivers") < size).sum(),
        )
    )
    before = col("message").shift().over("process", "origin")
    return totals | {
        "no_creation": delivered.join(sent, on="message", how="anti").height,
        "fifo": delivered.filter(col("message") < before).height,
        "causal": _streamed(both.select(causal=short.sum()))["causal"],
    }


def wide(trace: Path) -> Found:
    size = members(trace)
    events = _events(trace)
    at = [f"at{p}" for p in range(size)]
    sent = events.lazy().filter("sent").select("message", "process").with_row_index("turn")
    messages = (
        events.lazy()
        .filter(~col("sent"))
        .group_by("message")
        .agg(
            pl.len().alias("times"),
            *(
                pl.when(col("process") == p).then(col("position")).max().alias(at[p])
                for p in range(size)
            ),
        )
        .with_columns(receivers=pl.sum_horizontal(col(name).is_not_null() for name in at))
        .collect(engine="streaming")
    )
    # Positions of one origin after the other, so that one running maximum does for all of them.
    spread = [col(name) + col("message") // _ORIGIN * _ORIGIN for name in at]
    fell = pl.any_horizontal(one < one.fill_null(-1).cum_max().shift() for one in spread)
    late = pl.any_horizontal(
        col(name).is_not_null()
        & (col(f"{name}_needed").is_null() | (col(f"{name}_needed") > col(name)))
        for name in at
    )
    causal = (
        _needs(events, sent, size)
        .join(messages.lazy().select("message", *at), on="message")
        .join(
            messages.lazy().select("message", *at),
            left_on="needed", right_on="message", suffix="_needed",
        )
        .select(causal=late.sum())
    )  # fmt: skip
    counts = messages.lazy().select(
        no_duplication=(col("times") > col("receivers")).sum(),
        agreement=(col("receivers") < size).sum(),
    )
    forged = messages.lazy().join(sent, on="message", how="anti").select(no_creation=pl.len())
    fifo = messages.lazy().sort("message").select(fifo=fell.sum())
    return _streamed(counts) | _streamed(forged) | _streamed(fifo) | _streamed(causal)


def _needs(events: pl.DataFrame, sent: pl.LazyFrame, size: int) -> pl.LazyFrame:
    """out: message, needed: for each message, the last of each origin that its sender delivered
    since its previous one."""
    # How many sends there are before a row, of all processes, tells which send is next. To add the
    # process keeps what one delivers after its last send from the first send of the next.
    slot = col("turn").cast(pl.Int64) + col("process")
    return (
        events.lazy()
        .with_columns(turn=col("sent").cum_sum())
        .filter(~col("sent"))
        .group_by((slot * size + col("origin")).alias("slot"))
        .agg(needed=col("message").max())
        .with_columns(col("slot") // size)
        .join(sent.select("message", slot.alias("slot")), on="slot")
    )


def _events(trace: Path) -> pl.DataFrame:
    """process, position, sent, origin, message"""
    return (
        pl.scan_parquet(trace / "events" / "*.parquet")
        .filter(col("kind").is_in(["send", "deliver"]))
        .select(
            "process",
            "position",
            (col("kind") == "send").alias("sent"),
            "origin",
            (col("origin").cast(pl.Int64) * _ORIGIN + col("number")).alias("message"),
        )
        .collect(engine="streaming")
    )


def _streamed(frame: pl.LazyFrame) -> Found:
    """The one row of a frame of counts."""
    row = frame.collect(engine="streaming").row(0, named=True)
    return {name: int(count or 0) for name, count in row.items()}
