"""The figures in front of a person, or as JSON."""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks.runtime.conduct import LOW_RATE, Figures, Phase
from benchmarks.runtime.goals import goals
from benchmarks.runtime.processes import QUIET_CORES
from benchmarks.show import Row, show
from ordercast.runtime.deliveries import COMPILED

__all__ = ["print_results", "write_json"]

_PACKAGES = ("uvloop", "nats-py", "redis", "hiredis", "pysyncobj")
_PROGRAMS = ("nats-server", "redis-server", "corosync", "java")


def print_results(measured: Sequence[Figures], skipped: Mapping[str, str]) -> None:
    print(_machine_words())
    print(
        "R: deliveries a second, of others' messages, per process; µs: processor time of all "
        "processes for one delivery;\n"
        f"low: {LOW_RATE:,} messages a second and process; half: half of what the process sent "
        "under full load; latencies in µs, p50 and p99"
    )
    ordered = sorted(measured, key=_group)
    for (n, size, tls), figures in groupby(ordered, key=_group):
        title = f"n = {n}, {size} bytes, {'mutual TLS 1.3' if tls else 'plain'}"
        _table(title, [_row(one) for one in figures])
    _table("goals", [goal.row() for goal in goals(measured)])
    for name, reason in skipped.items():
        print(f"NOT MEASURED: {name}: {reason}")


def _group(figures: Figures) -> tuple[int, int, bool]:
    case = figures.case
    return case.n, case.payload_bytes, case.tls


def _table(title: str, rows: list[Row]) -> None:
    if rows:
        print()
        cells = [{key: "—" if cell is None else cell for key, cell in row.items()} for row in rows]
        show(title, cells, as_json=False)


def _row(one: Figures) -> Row:
    return {
        "subject": one.case.subject,
        "order": one.order,
        "handed over": one.case.form.name,
        "R": None if one.full is None else round(one.full.deliveries_per_s),
        "µs": None if one.full is None else one.full.cpu_us,
        "low_p50": _quantile(one.low, 0.5),
        "low_p99": _quantile(one.low, 0.99),
        "half_p50": _quantile(one.half, 0.5),
        "half_p99": _quantile(one.half, 0.99),
        "remarks": _remarks(one),
    }


def _quantile(phase: Phase | None, share: float) -> int | None:
    value = None if phase is None else phase.latencies.quantile_us(share)
    return None if value is None else round(value)


def _remarks(one: Figures) -> str:
    words = [one.words] if one.words else []
    for name in ("full", "low", "half"):
        phase: Phase | None = getattr(one, name)
        if phase is not None and phase.lost:
            words.append(f"{name}: {phase.lost:,} of {phase.sent * (one.case.n - 1):,} lost")
        if phase is not None and phase.disorder:
            words.append(f"{name}: {phase.disorder:,} out of order")
    if one.full is not None and one.full.others_cores > QUIET_CORES:
        words.append(f"others took {one.full.others_cores:.1f} cores")
    return "; ".join(words)


def write_json(file: Path, measured: Sequence[Figures], skipped: Mapping[str, str]) -> None:
    figures = {
        "machine": _machine(),
        "cases": [_case(one) for one in measured],
        "goals": [vars(goal) for goal in goals(measured)],
        "skipped": dict(skipped),
    }
    file.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n")


def _case(one: Figures) -> Row:
    case = one.case
    return {
        "subject": case.subject,
        "order": one.order,
        "form": case.form.name,
        "n": case.n,
        "payload_bytes": case.payload_bytes,
        "tls": case.tls,
        "full": _phase(one.full),
        "low": _phase(one.low),
        "half": _phase(one.half),
        "words": one.words,
    }


def _phase(phase: Phase | None) -> dict[str, Any] | None:
    if phase is None:
        return None
    return {
        "deliveries_per_s": phase.deliveries_per_s,
        "cpu_us": phase.cpu_us,
        "p50_us": phase.latencies.quantile_us(0.5),
        "p99_us": phase.latencies.quantile_us(0.99),
        "samples": phase.latencies.total(),
        "sent": phase.sent,
        "delivered": phase.delivered,
        "lost": phase.lost,
        "disorder": phase.disorder,
        "others_cores": phase.others_cores,
    }


def _machine() -> dict[str, Any]:
    return {
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "compiled": COMPILED,
        "packages": {name: _version(name) for name in _PACKAGES},
        "programs": {name: shutil.which(name) is not None for name in _PROGRAMS},
    }


def _machine_words() -> str:
    known = _machine()
    packages = ", ".join(f"{name} {number}" for name, number in known["packages"].items() if number)
    taking = "compiled" if known["compiled"] else "not compiled"
    return (
        f"{known['cores']} cores, load {known['load']:.1f}; Python {known['python']}, {packages}; "
        f"ordercast's iterator is {taking}"
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
