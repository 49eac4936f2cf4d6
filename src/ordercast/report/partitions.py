"""Partitions, where a run's manifest tells of them in the trace's own time: simulated runs do."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ordercast.trace import Manifest

__all__ = ["Partition", "partitions_of"]

_UNIT_US = {"us": 1, "ms": 1_000, "s": 1_000_000}
_TIME = r"(\d+(?:\.\d+)?)(us|ms|s)"
_PARTITION = re.compile(rf"partition:([\d,|]+)@{_TIME}\+{_TIME}")


@dataclass(frozen=True, slots=True)
class Partition:
    start_us: int
    end_us: int
    sides: str


def partitions_of(manifest: Manifest) -> list[Partition]:
    faults = manifest.extra.get("faults")
    if manifest.extra.get("clock") != "virtual" or not isinstance(faults, str):
        return []
    found = []
    for sides, at, at_unit, length, length_unit in _PARTITION.findall(faults):
        start = round(float(at) * _UNIT_US[at_unit])
        end = start + round(float(length) * _UNIT_US[length_unit])
        found.append(Partition(start, end, " | ".join(sides.strip(",").split("|"))))
    return found
