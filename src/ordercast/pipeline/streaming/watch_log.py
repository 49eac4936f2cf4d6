"""What a watch keeps of one run: its rows, by process and position, and what follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.pipeline.arrays import ints_of, kinds_of
from ordercast.pipeline.kernels.index import CRASH, DELIVER, RECEIVE, RECOVER, SEND
from ordercast.pipeline.kernels.kernel import Bools, Ints
from ordercast.pipeline.streaming.watch_keys import first_of_each, pair_keys, ranks
from ordercast.trace.parquet import arrow_schema
from ordercast.trace.runs import parse_id
from ordercast.trace.verdicts import Witness

__all__ = ["KEPT", "Lengths", "Log", "kept_columns", "pack_rows", "unpack_rows"]

KEPT = pa.schema(
    [
        pa.field("kind", pa.dictionary(pa.int32(), pa.string()))
        if field.name == "kind"
        else pa.field(field.name, field.type)
        for field in arrow_schema()
        if field.name not in ("run", "bytes", "control_bytes")
    ]
)
"""The columns of a row that is kept: those that verdicts and latencies follow from."""
# A thread for each column would cost more than it saves.
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_ONE_THREAD = pa.ipc.IpcReadOptions(use_threads=False)


def kept_columns(table: pa.Table) -> pa.Table:
    """in: rows of one run, `rules.typed` and `time_us`; out: `KEPT`"""
    return table.select(KEPT.names).cast(KEPT).combine_chunks()


def pack_rows(table: pa.Table) -> bytes:
    """As `blobs.pack` does, in less room: these bytes stay."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_COMPRESSED) as stream:
        stream.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def unpack_rows(packed: bytes) -> pa.Table:
    with pa.ipc.open_stream(packed, options=_ONE_THREAD) as stream:
        return stream.read_all()


class Lengths(NamedTuple):
    """For each member, how many messages there are in its chains: what the total orders and
    synchronous order count as checked follows from these."""

    shared: Ints
    """Delivered by it and by others as well."""
    delivered: Ints
    met: Ints
    """Sent or delivered, one after the other."""

    def plus(self, other: Lengths) -> Lengths:
        return Lengths(*(one + two for one, two in zip(self, other, strict=True)))

    def without(self, other: Lengths) -> Lengths:
        return Lengths(*(one - two for one, two in zip(self, other, strict=True)))


class Log:
    """Rows of one run (`KEPT`), sorted by process and position, no position twice."""

    def __init__(self, table: pa.Table) -> None:
        """in: sorted"""
        self.table = table.unify_dictionaries().combine_chunks()
        self.process = ints_of(self.table["process"], np.int64)
        self.position = ints_of(self.table["position"], np.int64)
        self.kind = kinds_of(self.table["kind"])
        self.origin = ints_of(self.table["origin"], np.int64)
        self.number = ints_of(self.table["number"], np.int64)

    @classmethod
    def of(cls, tables: Sequence[pa.Table]) -> tuple[Log, Ints]:
        """All these rows; of two at the same position, the first counts. And for each row that
        is left the place that it had."""
        table = pa.concat_tables([KEPT.empty_table(), *tables])
        process, position = (ints_of(table[name], np.int64) for name in ("process", "position"))
        places = first_of_each(*pair_keys(process, position))
        return cls(table.take(pa.array(places))), places

    def __len__(self) -> int:
        return len(self.process)

    def only(self, these: Bools) -> Log:
        return self if these.all() else Log(self.table.filter(pa.array(these)))

    @cached_property
    def time_us(self) -> Ints:
        return ints_of(self.table["time_us"], np.int64)

    @cached_property
    def message(self) -> Ints:
        """Each row's message as an index by origin and number; -1 for rows without one."""
        rows = np.flatnonzero(np.isin(self.kind, (SEND, DELIVER, RECEIVE)))
        found = np.full(len(self), -1)
        found[rows] = ranks(*pair_keys(self.origin[rows], self.number[rows]))
        return found

    @cached_property
    def messages(self) -> int:
        return int(self.message.max(initial=-1)) + 1

    @cached_property
    def first(self) -> Bools:
        """Which rows are a process's first delivery of a message."""
        rows = np.flatnonzero(self.kind == DELIVER)
        at = first_of_each(*pair_keys(self.process[rows], self.message[rows]))
        found = np.zeros(len(self), np.bool_)
        found[rows[at]] = True
        return found

    def shown(self, name: str, witness: Witness) -> int | None:
        """Where in the log of its process a violation of this property is seen: at the delivery
        of its last message, or at the second one. None if no delivery shows it."""
        origin, number = parse_id(witness.messages[-1])
        rows = (self.process == witness.process) & (self.kind == DELIVER)
        rows &= (self.origin == origin) & (self.number == number)
        places = self.position[rows]
        nth = int(name == "no_duplication")
        return int(places[nth]) if len(places) > nth else None

    def unfinished(self, members: int) -> Bools:
        """Which messages were not sent, or not delivered by everyone they are addressed to."""
        sends = np.flatnonzero(self.kind == SEND)
        lists = self.table["destinations"].combine_chunks()
        if isinstance(lists, pa.ChunkedArray):
            lists = pa.concat_arrays(lists.chunks) if lists.num_chunks else pa.array([], lists.type)
        lists = lists.take(pa.array(sends))
        everyone = np.asarray(lists.is_null())
        delivered = self.message[self.first] * members + self.process[self.first]
        done = np.bincount(self.message[self.first], minlength=self.messages)
        lacking = np.ones(self.messages, np.bool_)
        sent = self.message[sends]
        lacking[sent[everyone]] = done[sent[everyone]] < members
        lengths = np.where(everyone, 0, pc.fill_null(lists.value_lengths(), 0).to_numpy())
        owed = np.repeat(sent, lengths) * members + lists.flatten().to_numpy()
        missing = ~np.isin(owed, delivered)
        lacking[sent[~everyone]] = False
        lacking[np.repeat(sent, lengths)[missing]] = True
        return lacking

    def up(self, members: int) -> Bools:
        """Everyone but those whose last crash has no recovery after it."""
        found = np.ones(members, np.bool_)
        rows = np.flatnonzero(np.isin(self.kind, (CRASH, RECOVER)))
        found[self.process[rows]] = self.kind[rows] == RECOVER  # the last one stays
        return found

    def lengths(self, members: int) -> Lengths:
        mine, message = self.process[self.first], self.message[self.first]
        shared = np.bincount(message, minlength=self.messages)[message] >= 2
        chain = np.flatnonzero(self.first | (self.kind == SEND))
        met, who = self.message[chain], self.process[chain]
        twice = np.zeros(len(chain), np.bool_)
        twice[1:] = (met[1:] == met[:-1]) & (who[1:] == who[:-1])
        counted = (mine[shared], mine, who[~twice])
        return Lengths(*(np.bincount(one, minlength=members) for one in counted))

    def bare(self) -> Bools:
        """Of the rows without a message, those to keep: the last word on who is up."""
        rows = np.flatnonzero(np.isin(self.kind, (CRASH, RECOVER)))
        last = np.ones(len(rows), np.bool_)
        last[:-1] = self.process[rows][1:] != self.process[rows][:-1]
        found = np.zeros(len(self), np.bool_)
        found[rows[last]] = True
        return found

    def anchors(self, left: Log) -> pa.Table:
        """A row that says nothing for each process that has none left: that its log is known
        must not be forgotten."""
        lost = np.setdiff1d(self.process, left.process)
        last = np.searchsorted(self.process, lost, side="right") - 1
        rows = [
            {"process": process, "position": position, "kind": "join"}
            for process, position in zip(lost.tolist(), self.position[last].tolist(), strict=True)
        ]
        return pa.Table.from_pylist(rows, KEPT)
