"""DuckDB: SQL, on all cores.

`count(*) filter (…) over (…)` would read better than `sum((…)::int) over (…)`, and takes hundreds
of times as long.
"""

# ruff: noqa: S608 - every word of the SQL is our own
from __future__ import annotations

import os
from pathlib import Path

import duckdb

from benchmarks.pipeline.peers import Found, members

__all__ = ["wide", "windows"]

MEMORY_SHARE = 0.6
"""Of the machine's; then it goes to disk."""


def windows(trace: Path, *, scratch: Path) -> Found:
    size = members(trace)
    with _open(trace, scratch) as db:
        found = {
            "no_duplication": _count(
                db,
                "select 1 from events where not sent group by process, origin, number "
                "having count(*) > 1",
            ),
            "no_creation": _count(
                db,
                "select 1 from (from events where not sent) "
                "anti join (from events where sent) using (origin, number)",
            ),
            "agreement": _count(
                db,
                "select 1 from events where not sent group by origin, number "
                f"having count(distinct process) < {size}",
            ),
            "fifo": _count(
                db,
                "from (select number, lag(number) over (partition by process, origin "
                "order by position) before from events where not sent) where number < before",
            ),
        }
        counts = _each(size, "sum((not sent and origin = {0})::int) over past as c{0}", ", ")
        db.execute(
            f"create temp table counted as select sent, origin, number, {counts} from events "
            "window past as (partition by process order by position "
            "rows between unbounded preceding and current row)"
        )
        short = _each(size, "d.c{0} - (d.origin = {0})::int < m.c{0}", " or ")
        found["causal"] = _count(
            db,
            "select 1 from (from counted where not sent) d "
            f"join (from counted where sent) m using (origin, number) where {short}",
        )
        return found


def wide(trace: Path, *, scratch: Path) -> Found:
    size = members(trace)
    with _open(trace, scratch) as db:
        at = _each(size, "max(position) filter (not sent and process = {0}) as at{0}", ", ")
        receivers = _each(size, "(at{0} is not null)::int", " + ")
        db.execute(
            f"create temp table messages as select *, {receivers} as receivers from ("
            "select origin, number, bool_or(sent) as sent, count(*) filter (not sent) as times, "
            f"{at} from events group by origin, number)"
        )
        db.execute(
            "create temp table needs as select process, turn, origin, max(number) as number from ("
            "select process, sent, origin, number, sum(sent::int) over (partition by process "
            "order by position rows between unbounded preceding and current row) as turn "
            "from events) where not sent group by all"
        )
        before = _each(size, "lag(at{0} ignore nulls) over numbers as before{0}", ", ")
        fell = _each(size, "at{0} < before{0}", " or ")
        late = _each(
            size, "(m.at{0} is not null and (d.at{0} is null or d.at{0} > m.at{0}))", " or "
        )
        return {
            "no_duplication": _count(db, "from messages where times > receivers"),
            "no_creation": _count(db, "from messages where not sent and times > 0"),
            "agreement": _count(db, f"from messages where receivers between 1 and {size - 1}"),
            "fifo": _count(
                db,
                f"from (select *, {before} from messages "
                f"window numbers as (partition by origin order by number)) where {fell}",
            ),
            "causal": _count(
                db,
                "select 1 from needs "
                "join messages m on m.origin = needs.process and m.number = needs.turn + 1 "
                "join messages d on d.origin = needs.origin and d.number = needs.number "
                f"where {late}",
            ),
        }


def _open(trace: Path, scratch: Path) -> duckdb.DuckDBPyConnection:
    """With a table of all sends and deliveries: process, position, sent, origin, number."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * MEMORY_SHARE
    db = duckdb.connect(
        config={"memory_limit": f"{memory / 1e9:.1f}GB", "temp_directory": str(scratch)}
    )
    db.execute(
        "create temp table events as "
        "select process, position, kind = 'send' as sent, origin, number "
        f"from read_parquet('{trace}/events/*.parquet') where kind in ('send', 'deliver')"
    )
    return db


def _count(db: duckdb.DuckDBPyConnection, query: str) -> int:
    row = db.execute(f"select count(*) from ({query})").fetchone()
    assert row is not None
    return int(row[0])


def _each(size: int, words: str, between: str) -> str:
    """The words for every process."""
    return between.join(words.format(p) for p in range(size))
