"""What is known of runs beside their events, as columns: a trace may have a manifest for each of a
hundred thousand runs, and tasks need those of their own runs only."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from ordercast.pipeline.judging import RUNS
from ordercast.trace.manifest import Manifest
from ordercast.trace.verdicts import PROPERTIES, promised

__all__ = ["DESCRIBED", "describe", "digest", "with_bare", "with_holes"]

_TOLD = [pa.field("promises", pa.list_(pa.string())), pa.field("manifest", pa.string())]

DESCRIBED = pa.schema([*RUNS, *_TOLD])
"""`RUNS`, and what each run promised (null: nothing that we know of) and its manifest's digest."""


def describe(manifests: Iterable[Manifest]) -> pa.Table:
    """`DESCRIBED`, by run."""
    those = sorted(manifests, key=lambda manifest: manifest.run)
    columns = {
        "run": [one.run for one in those],
        "names": [one.processes for one in those],
        "size": [len(one.processes) for one in those],
        "quiesced": [None if one.silent else one.quiesced for one in those],  # or `with_bare` says
        "complete": [one.complete for one in those],
        "promises": [promised(one, PROPERTIES) for one in those],
        "manifest": [digest(one) for one in those],
    }
    return pa.table(columns, DESCRIBED)


def digest(manifest: Manifest) -> str:
    """A few letters that change if anything in the manifest does."""
    return hashlib.blake2b(manifest.to_json(), digest_size=8).hexdigest()


def with_bare(described: pa.Table, events: pa.Table, *, quiesced: bool) -> pa.Table:
    """And the runs that nobody wrote a manifest for. `quiesced` says if those came to rest, and
    those whose manifests do not say.

    in: described: `DESCRIBED`; events: at least the column `run`
    """
    place = DESCRIBED.get_field_index("quiesced")
    at_rest = pc.fill_null(described["quiesced"], quiesced)
    described = described.set_column(place, DESCRIBED.field(place), at_rest)
    seen = pc.unique(events["run"]).cast(pa.string())
    bare = seen.filter(pc.invert(pc.is_in(seen, described["run"].combine_chunks())))
    known = {
        "run": bare,
        "names": [[]] * len(bare),
        "quiesced": pa.repeat(quiesced, len(bare)),
        "complete": pa.repeat(True, len(bare)),
    }
    columns = [
        pa.array(known.get(field.name, pa.nulls(len(bare), field.type)), field.type)
        for field in DESCRIBED
    ]
    return pa.concat_tables([described, pa.table(columns, DESCRIBED)])


def with_holes(described: pa.Table, bad: pa.Table, *, torn: bool) -> pa.Table:
    """A row that was left out is a hole in its run's log; `torn` says that any run may have some.

    in: described: `DESCRIBED`; bad: `rows.FLAWS`
    """
    if not len(bad) and not torn:
        return described
    whole = pc.invert(pc.is_in(described["run"], bad["run"].combine_chunks()))
    complete = pc.and_(pc.and_(described["complete"], whole), not torn)
    place = described.schema.get_field_index("complete")
    return described.set_column(place, described.schema.field(place), complete)
