"""Partitions, where a run's manifest tells of them in the trace's own time.

A simulated run has its plan, which was carried out to the microsecond; a real one has what was
done, and when.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

from ordercast.trace import Manifest

__all__ = ["Partition", "partitions_of"]

_UNIT_US = {"us": 1, "ms": 1_000, "s": 1_000_000}
_TIME = r"(\d+(?:\.\d+)?)(us|ms|s)"
_PARTITION = re.compile(rf"partition:([\d,|]+)@{_TIME}\+{_TIME}")


_FOR_EVER = 2**62


class _Parting(msgspec.Struct):
    sides: str
    start_us: int
    end_us: int | None = None


@dataclass(frozen=True, slots=True)
class Partition:
    start_us: int
    end_us: int
    sides: str


def partitions_of(manifest: Manifest) -> list[Partition]:
    return _planned(manifest) or _done(manifest)


def _done(manifest: Manifest) -> list[Partition]:
    try:
        done = msgspec.convert(manifest.extra.get("partitions", []), list[_Parting])
    except msgspec.ValidationError:  # somebody else's words
        return []
    return [
        Partition(one.start_us, _FOR_EVER if one.end_us is None else one.end_us, _sides(one.sides))
        for one in done
    ]


def _planned(manifest: Manifest) -> list[Partition]:
    faults = manifest.extra.get("faults")
    if manifest.extra.get("clock") != "virtual" or not isinstance(faults, str):
        return []
    found = []
    for sides, at, at_unit, length, length_unit in _PARTITION.findall(faults):
        start = round(float(at) * _UNIT_US[at_unit])
        end = start + round(float(length) * _UNIT_US[length_unit])
        found.append(Partition(start, end, _sides(sides)))
    return found


def _sides(sides: str) -> str:
    return " | ".join(sides.strip(",").split("|"))
