"""The verdicts on a huge run, from what its passes found (`huge`)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from ordercast.pipeline.huge import Found, Gap, Pair, Tally
from ordercast.pipeline.judging import SEEN, VERDICTS, VIOLATIONS, Judged
from ordercast.pipeline.kernels import findings as f
from ordercast.pipeline.kernels.findings import LISTED
from ordercast.pipeline.kernels.kernel import Bools, Ints
from ordercast.pipeline.rows import FLAWS
from ordercast.pipeline.sentences import Names, Seen, Steps, cycles, witnesses
from ordercast.trace.manifest import Manifest
from ordercast.trace.verdicts import PROPERTIES

__all__ = ["conclude"]

_HEALTHY = ("no_duplication", "no_creation", "fifo", "causal")


def conclude(
    manifest: Manifest,
    tally: Tally,
    windows: Sequence[Found],
    properties: Collection[str],
    events: int,
) -> Judged:
    """in: what every window showed; none if only counts were asked for"""
    deliveries = int(tally.delivered.sum())
    rows = {name: _row(manifest, name, deliveries) for name in _HEALTHY}
    listed: list[dict[str, Any]] = []
    for name in ("validity", "agreement", "uniform_agreement"):
        rows[name] = _obligations(manifest, name, tally, listed)
    gaps = sorted(
        (gap for one in windows for gap in one.listed), key=lambda gap: (gap.process, gap.turn)
    )
    pairs = sum(one.pairs for one in windows)
    crossed = _first(one.crossed for one in windows)
    rows["total_pairwise"] = _row(
        manifest, "total_pairwise", _shared(tally.delivered), pairs,
        _crossed(manifest, crossed, exact=all(one.exact for one in windows)),
    )  # fmt: skip
    rows["total_acyclic"] = _row(
        manifest,
        "total_acyclic",
        int(np.maximum(tally.delivered.sum(axis=1) - 1, 0).sum()),
        sum(one.total_knots for one in windows),
        _cycle(manifest, "total_acyclic", crossed),
    )
    rows["total_gap_free"] = _row(
        manifest, "total_gap_free", deliveries, sum(one.gaps for one in windows),
        _gap(manifest, gaps),
    )  # fmt: skip
    rows["synchronous"] = _row(
        manifest,
        "synchronous",
        sum(max(log.chain - 1, 0) for log in tally.logs),
        sum(one.synchronous_knots for one in windows),
        _cycle(manifest, "synchronous", _first(one.entangled for one in windows)),
    )
    listed += [
        _hit(manifest, "total_gap_free", gap.process, gap.position, gap.n) for gap in gaps[:LISTED]
    ]
    verdicts = [rows[name] for name in PROPERTIES if name in properties]
    seen = {
        "run": manifest.run,
        "names": manifest.processes,
        "quiesced": manifest.quiesced,
        "complete": manifest.complete,
        "events": events,
        "messages": int(tally.sent.sum()),
        "deliveries": deliveries,
    }
    return Judged(
        verdicts=pa.Table.from_pylist(verdicts, VERDICTS),
        violations=pa.Table.from_pylist(
            [hit for hit in listed if hit["property"] in properties], VIOLATIONS
        ),
        flaws=FLAWS.empty_table(),
        seen=pa.Table.from_pylist([seen], SEEN),
    )


def _row(
    manifest: Manifest,
    name: str,
    checked: int,
    violations: int = 0,
    witness: dict[str, Any] | None = None,
    *,
    doubts: int = 0,
) -> dict[str, Any]:
    return {
        "run": manifest.run,
        "property": name,
        "verdict": "violated" if violations else "unknown" if doubts else "holds",
        "checked": checked,
        "violations": violations,
        "witness": witness,
    }


def _hit(
    manifest: Manifest, name: str, process: int, position: int | None, message: tuple[int, int]
) -> dict[str, Any]:
    origin, number = message
    return {
        "run": manifest.run,
        "property": name,
        "process": process,
        "position": position,
        "origin": origin,
        "number": number,
    }


def _witness(manifest: Manifest, name: str, **fields: int) -> dict[str, Any]:
    """in: the fields of `Seen`"""
    seen = Seen(
        run=np.zeros(1, np.int64), **{key: np.array([value]) for key, value in fields.items()}
    )
    [told] = witnesses(name, seen, _names(manifest)).to_pylist()
    return dict(told)


def _names(manifest: Manifest) -> Names:
    return Names(pa.chunked_array([pa.array([manifest.processes], pa.list_(pa.string()))]))


def _obligations(
    manifest: Manifest, name: str, tally: Tally, listed: list[dict[str, Any]]
) -> dict[str, Any]:
    """Everyone has delivered a beginning of what each origin sent: only how far it goes counts."""
    due = _due(name, tally.delivered, tally.sent, tally.up)
    missing = due - tally.delivered * (due > 0)
    missing = np.maximum(missing, 0)
    unmet = int(missing.sum())
    settled = manifest.quiesced  # huge runs are judged here only if their log is complete
    witness = None
    if unmet:
        q, o, number = next(_unmet(tally.delivered, missing))
        had = (tally.delivered[:, o] >= number) & (tally.up | (name == "uniform_agreement"))
        other = o if name == "validity" else int(np.flatnonzero(had)[0])
        witness = _witness(
            manifest, name, process=q, origin=o, number=number, by=other,
            unknown=not settled, complete=True,
        )  # fmt: skip
        if settled:
            first = islice(_unmet(tally.delivered, missing), LISTED)
            listed += [_hit(manifest, name, q, None, (o, number)) for q, o, number in first]
    violations, doubts = (unmet, 0) if settled else (0, unmet)
    return _row(manifest, name, int(due.sum()), violations, witness, doubts=doubts)


def _due(name: str, delivered: Ints, sent: Ints, up: Bools) -> Ints:
    """process × origin: how many messages it owes it to someone to deliver."""
    if name == "validity":
        return np.diag(np.where(up, sent, 0))
    those = delivered[up] if name == "agreement" else delivered
    most = those.max(axis=0, initial=0)
    return np.where(up[:, None], most[None, :], 0)


def _unmet(delivered: Ints, missing: Ints) -> Iterator[tuple[int, int, int]]:
    for q, o in np.argwhere(missing).tolist():
        for number in range(int(delivered[q, o]) + 1, int(delivered[q, o] + missing[q, o]) + 1):
            yield q, o, number


def _shared(delivered: Ints) -> int:
    """Neighbours in each process's order, of messages that others have delivered as well."""
    if len(delivered) < 2:
        return 0
    second = np.sort(delivered, axis=0)[-2]
    mine = np.minimum(delivered, second).sum(axis=1)
    return int(np.maximum(mine - 1, 0).sum())


def _first(pairs: Iterator[Pair | None]) -> Pair | None:
    return min((pair for pair in pairs if pair is not None), key=lambda pair: pair.m, default=None)


def _crossed(manifest: Manifest, pair: Pair | None, *, exact: bool) -> dict[str, Any] | None:
    if pair is None:
        return None
    one, other = sorted((pair.forth, pair.back))
    return _witness(
        manifest, "total_pairwise", process=other,
        origin=pair.m[0], number=pair.m[1], after=pair.n[0], later=pair.n[1],
        link=f.FIRST if one == pair.forth else f.SECOND, by=one, exact=exact,
    )  # fmt: skip


def _cycle(manifest: Manifest, name: str, pair: Pair | None) -> dict[str, Any] | None:
    if pair is None:
        return None
    origins, numbers = np.array([pair.m, pair.n]).T
    steps = Steps(
        start=np.zeros(1, np.int64), run=np.zeros(2, np.int64), origin=origins, number=numbers,
        member=np.array([pair.forth, pair.back]), sent_too=np.full(2, name == "synchronous"),
    )  # fmt: skip
    [told] = cycles(steps, _names(manifest)).to_pylist()
    return dict(told)


def _gap(manifest: Manifest, gaps: list[Gap]) -> dict[str, Any] | None:
    if not gaps:
        return None
    gap = gaps[0]
    assert gap.m is not None
    return _witness(
        manifest, "total_gap_free", process=gap.process,
        origin=gap.m[0], number=gap.m[1], after=gap.n[0], later=gap.n[1],
        missing=gap.missing, by=gap.ahead, unknown=False, complete=True,
    )  # fmt: skip
