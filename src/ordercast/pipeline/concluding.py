"""What was found in one run that many tasks judged together, as tables with words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ordercast.pipeline.judged import SEEN, VERDICTS, VIOLATIONS, Judged
from ordercast.pipeline.rows import FLAWS
from ordercast.pipeline.sentences import Names, Seen, Steps, cycles, witnesses
from ordercast.trace.manifest import Manifest

__all__ = ["Finding", "Hit", "Message", "cycle_of", "judged", "witness_of"]

Message = tuple[int, int]
Hit = tuple[int, int | None, Message]
"""A violation: process, position if there is one, message."""


class Finding(NamedTuple):
    """What there is to say on one property."""

    checked: int
    violations: int = 0
    witness: dict[str, Any] | None = None
    doubts: int = 0
    listed: Sequence[Hit] = ()

    @property
    def verdict(self) -> str:
        return "violated" if self.violations else "unknown" if self.doubts else "holds"


def judged(
    manifest: Manifest,
    found: Mapping[str, Finding],
    *,
    events: int,
    messages: int,
    deliveries: int,
) -> Judged:
    """in: the findings by property, in order; and how many rows of what kind there were"""
    verdicts = [
        {
            "run": manifest.run,
            "property": name,
            "verdict": one.verdict,
            "checked": one.checked,
            "violations": one.violations,
            "witness": one.witness,
        }
        for name, one in found.items()
    ]
    violations = [
        {
            "run": manifest.run,
            "property": name,
            "process": process,
            "position": position,
            "origin": origin,
            "number": number,
        }
        for name, one in found.items()
        for process, position, (origin, number) in one.listed
    ]
    seen = {
        "run": manifest.run,
        "names": manifest.processes,
        "quiesced": manifest.quiesced,
        "complete": manifest.complete,
        "events": events,
        "messages": messages,
        "deliveries": deliveries,
    }
    return Judged(
        verdicts=pa.Table.from_pylist(verdicts, VERDICTS),
        violations=pa.Table.from_pylist(violations, VIOLATIONS),
        flaws=FLAWS.empty_table(),
        seen=pa.Table.from_pylist([seen], SEEN),
    )


def witness_of(
    manifest: Manifest,
    name: str,
    process: int,
    m: Message,
    n: Message | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """in: the other fields of `Seen`"""
    told = {"process": process, "origin": m[0], "number": m[1], **fields}
    if n is not None:
        told |= {"after": n[0], "later": n[1]}
    columns = {key: np.array([value]) for key, value in told.items()}
    seen = Seen(run=np.zeros(1, np.int64), **columns)
    [witness] = witnesses(name, seen, _names(manifest)).to_pylist()
    return dict(witness)


def cycle_of(manifest: Manifest, name: str, cycle: Sequence[tuple[Message, int]]) -> dict[str, Any]:
    """in: messages, and the members that have each of them before the next"""
    messages, members = zip(*cycle, strict=True)
    origins, numbers = np.array(messages).T
    size = len(messages)
    steps = Steps(
        start=np.zeros(1, np.int64), run=np.zeros(size, np.int64),
        origin=origins, number=numbers, member=np.array(members),
        sent_too=np.full(size, name == "synchronous"),
    )  # fmt: skip
    [told] = cycles(steps, _names(manifest)).to_pylist()
    return dict(told)


def _names(manifest: Manifest) -> Names:
    names = pa.array([manifest.processes], pa.list_(pa.string()))
    return Names(pa.chunked_array([names]))
