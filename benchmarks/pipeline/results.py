"""The figures in front of a person, or as JSON."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.pipeline.goals import FULL_SIZE, goals, growth, ratio_to_peer, times_floor
from benchmarks.pipeline.measure import REPEAT, Compared, Measured, Times
from benchmarks.pipeline.workers import free_mib
from benchmarks.show import Row, show

__all__ = ["print_results", "write_json"]

_PACKAGES = ("pyspark", "pyarrow", "numpy", "numba", "duckdb", "polars")


def print_results(measured: Sequence[Measured], compared: Sequence[Compared], n: int) -> None:
    print(f"{_machine_words()}; M/s are million events a second; best of {REPEAT}, after a warm-up")
    _table("traces: the floor, the judgement, and what a Python worker took", _speeds(measured))
    _table("each property alone, M/s", _alone(measured))
    _table(
        "the safety set by others, in a process of their own, best of 2, start-up not counted",
        _peers(measured, compared),
    )
    _table("growth: time per event next to the trace before", growth(measured, n))
    reached = goals(measured, compared, n)
    _table("goals", [goal.row() for goal in reached])
    if not all(goal.full_size for goal in reached):
        print(f"in brackets: measured on less than the goal is for, which is {FULL_SIZE}")


def _table(title: str, rows: list[Row]) -> None:
    if rows:
        print()
        cells = [{key: "—" if cell is None else cell for key, cell in row.items()} for row in rows]
        show(title, cells, as_json=False)


def _speeds(measured: Sequence[Measured]) -> list[Row]:
    return [
        {
            "trace": one.case.title,
            "events": one.case.events,
            "floor_M/s": one.case.events / one.floor_s / 1e6,
            "safety_M/s": _rate(one, one.safety),
            "safety_× floor": times_floor(one, one.safety),
            "all_M/s": _rate(one, one.all),
            "all_× floor": times_floor(one, one.all),
            "safety_peak MiB": one.safety.peak_mib,
            "all_peak MiB": one.all.peak_mib,
            "remarks": "; ".join(sorted({t.words for t in one.judged.values() if t.words})),
        }
        for one in measured
    ]


def _rate(measured: Measured, times: Times) -> float | None:
    return None if times.seconds is None else measured.case.events / times.seconds / 1e6


def _alone(measured: Sequence[Measured]) -> list[Row]:
    return [
        {"trace": one.case.title} | {name: _rate(one, times) for name, times in one.each.items()}
        for one in measured
        if one.each
    ]


def _peers(measured: Sequence[Measured], compared: Sequence[Compared]) -> list[Row]:
    """Each peer against ordercast on the same trace; one that was only measured on a small trace,
    against all of them."""
    rows: list[Row] = []
    for one in compared:
        for ours in measured:
            same = ours.case == one.case
            scaled = one.peer.small_only and not same
            if not (same or (scaled and ours.case.plain and _alike(ours, one))):
                continue
            ratio = ratio_to_peer(ours, one)
            speed = one.seconds_per_event
            remark = f"measured on {one.case.title}, scaled per event" if scaled else ""
            rows.append(
                {
                    "trace": ours.case.title,
                    "peer": one.peer.name,
                    "M/s": _bounded(speed, at_most=one.at_least),
                    "ordercast_M/s": _rate(ours, ours.safety),
                    "ordercast is": _so_many_times(ratio, at_least=one.at_least),
                    "peak_MiB": one.times.peak_mib,
                    "remarks": one.times.words or remark,
                }
            )
    return sorted(rows, key=lambda row: [m.case.title for m in measured].index(row["trace"]))


def _alike(ours: Measured, theirs: Compared) -> bool:
    return ours.case.processes == theirs.case.processes


def _bounded(seconds_per_event: float | None, *, at_most: bool) -> str | float | None:
    if seconds_per_event is None:
        return None
    rate = 1e-6 / seconds_per_event
    return f"≤ {rate:.2f}" if at_most else rate


def _so_many_times(ratio: float | None, *, at_least: bool) -> str | None:
    return None if ratio is None else f"{'≥ ' if at_least else ''}{ratio:.1f}× as fast"


def write_json(
    file: Path, measured: Sequence[Measured], compared: Sequence[Compared], n: int
) -> None:
    figures = {
        "machine": _machine(),
        "traces": [_trace(one) for one in measured],
        "peers": [_peer(one) for one in compared],
        "growth": growth(measured, n),
        "goals": [vars(goal) for goal in goals(measured, compared, n)],
    }
    file.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n")


def _trace(one: Measured) -> Row:
    return {
        "name": one.case.name,
        "processes": one.case.processes,
        "events": one.case.events,
        "floor_s": one.floor_s,
        "all": _times(one.all),
        "safety": _times(one.safety),
        "properties": {name: _times(times) for name, times in one.each.items()},
    }


def _peer(one: Compared) -> Row:
    return {
        "peer": one.peer.name,
        "trace": one.case.name,
        "events": one.case.events,
        **_times(one.times),
        "at_least": one.at_least,
        "found": one.found,
    }


def _times(times: Times) -> dict[str, Any]:
    return {"seconds": times.seconds, "peak_mib": times.peak_mib, "words": times.words}


def _machine() -> dict[str, Any]:
    return {
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "free_mib": round(free_mib()),
        "python": platform.python_version(),
        **{name: _version(name) for name in _PACKAGES},
    }


def _machine_words() -> str:
    known = _machine()
    packages = ", ".join(f"{name} {known[name]}" for name in _PACKAGES if known[name])
    return f"{known['cores']} cores, load {known['load']:.1f}; Python {known['python']}, {packages}"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
