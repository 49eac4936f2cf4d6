"""The rows of whole runs as arrays, sorted as the kernels need them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.pipeline.kernels.index import (
    CRASH,
    DELIVER,
    OTHER,
    RECEIVE,
    RECOVER,
    SEND,
    UNHEARD_OF,
)
from ordercast.pipeline.kernels.kernel import Bools, Ints

__all__ = ["Rows", "destinations_of", "ints_of", "kinds_of", "rows_of"]

_KINDS = {
    "send": SEND,
    "deliver": DELIVER,
    "crash": CRASH,
    "recover": RECOVER,
    "receive": RECEIVE,
    "join": OTHER,
    "leave": OTHER,
}


class Rows(NamedTuple):
    """Sorted by run, process and position."""

    run_start: Ints
    """Where each run's rows begin, and the end. A run may have none."""
    process: Ints
    position: Ints
    kind: Ints
    """`kernels.index`: SEND, DELIVER, …"""
    origin: Ints
    number: Ints
    """-1: the row has no message."""
    everyone: Bools
    dest_start: Ints
    dest: Ints
    """Whom a send is for, unless it is for everyone."""

    def without(self, bad: Bools) -> Rows:
        """All rows but the bad ones."""
        keep = ~bad
        kept_before = np.concatenate(([0], np.cumsum(keep)))
        lengths = np.diff(self.dest_start)
        return _rows(
            run_start=kept_before[self.run_start],
            process=self.process[keep],
            position=self.position[keep],
            kind=self.kind[keep],
            origin=self.origin[keep],
            number=self.number[keep],
            everyone=self.everyone[keep],
            dest_start=np.concatenate(([0], np.cumsum(lengths[keep]))),
            dest=self.dest[np.repeat(keep, lengths)],
        )


def rows_of(events: pa.Table, runs: list[str]) -> Rows:
    """in: `rules.COLUMNS`, in any order of rows; runs: their names, sorted"""
    run = _words(events.column("run"))
    rank_of = {name: rank for rank, name in enumerate(runs)}
    # The dictionary may know runs that none of the rows belong to.
    ranks = np.array([rank_of.get(name, -1) for name in run.dictionary.to_pylist()] or [0])
    run_rank = ranks[run.indices.to_numpy()]
    process = ints_of(events.column("process"), np.int32)
    position = ints_of(events.column("position"), np.int64)
    order: Any = slice(None)
    lists = events.column("destinations").combine_chunks()
    if not _sorted(run_rank, process, position):
        order = np.lexsort((position, process, run_rank))
        lists = lists.take(pa.array(order))
    everyone, dest_start, dest = destinations_of(lists)
    return _rows(
        run_start=np.searchsorted(run_rank[order], np.arange(len(runs) + 1)),
        process=process[order],
        position=position[order],
        kind=kinds_of(events.column("kind"))[order],
        origin=ints_of(events.column("origin"), np.int32)[order],
        number=ints_of(events.column("number"), np.int64)[order],
        everyone=everyone,
        dest_start=dest_start,
        dest=dest,
    )


def destinations_of(lists: pa.Array | pa.ChunkedArray) -> tuple[Bools, Ints, Ints]:
    """Of each row, whether it is for everyone; where its list begins, and the end; all lists."""
    if isinstance(lists, pa.ChunkedArray):
        lists = pa.concat_arrays(lists.chunks) if lists.num_chunks else pa.array([], lists.type)
    everyone = np.asarray(lists.is_null())
    lengths = np.where(everyone, 0, pc.fill_null(lists.value_lengths(), 0).to_numpy())
    dest = lists.flatten().to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
    return everyone, np.concatenate(([0], np.cumsum(lengths))), dest


def _rows(**columns: Any) -> Rows:
    return Rows(**{name: _frozen(column) for name, column in columns.items()})


def kinds_of(column: pa.ChunkedArray) -> Ints:
    kinds = _words(column)
    known = [_KINDS.get(word, UNHEARD_OF) for word in kinds.dictionary.to_pylist()]
    codes = np.array([*known, UNHEARD_OF], np.int8)
    indices = kinds.indices
    if indices.null_count:
        indices = pc.fill_null(indices, len(known))
    found: Ints = _frozen(codes.take(indices.to_numpy()))
    return found


def _words(column: pa.ChunkedArray) -> pa.DictionaryArray:
    if pa.types.is_dictionary(column.type):
        if column.num_chunks == 1:
            return column.chunk(0)
        chunks = column.unify_dictionaries().chunks
        if not chunks:
            return pa.array([], pa.string()).dictionary_encode()
        indices = pa.concat_arrays([chunk.indices for chunk in chunks])
        return pa.DictionaryArray.from_arrays(indices, chunks[0].dictionary)
    return pa.concat_arrays(column.chunks or [pa.array([], column.type)]).dictionary_encode()


def _sorted(run: Ints, process: Ints, position: Ints) -> bool:
    same_run = run[1:] == run[:-1]
    same_process = same_run & (process[1:] == process[:-1])
    fine = (
        (run[1:] > run[:-1])
        | (same_run & (process[1:] > process[:-1]))
        | (same_process & (position[1:] >= position[:-1]))
    )
    return bool(fine.all())


def ints_of(column: pa.ChunkedArray, dtype: Any) -> Ints:
    if column.null_count:
        column = pc.fill_null(column, -1)
    values: Ints = column.chunk(0).to_numpy() if column.num_chunks == 1 else column.to_numpy()
    frozen: Ints = _frozen(values.astype(dtype, copy=False))
    return frozen


def _frozen(array: Any) -> Any:
    """What comes straight from Arrow cannot be written to, and the compiler makes a difference: so
    nothing can."""
    array = np.ascontiguousarray(array)
    array.flags.writeable = False
    return array
