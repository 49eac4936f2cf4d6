"""A bucket as bytes, for the state store: what was reached (`counts`), and what waits (`held`).

Both begin with a mark, a version and the form that they were made for. What was made by another
version, or for another form, is refused with a sentence: to guess would be to lose messages.
"""

from __future__ import annotations

import json
import struct

import numpy as np
import pyarrow as pa

from ordercast.errors import CheckpointError
from ordercast.pipeline.kernels.kernel import Ints
from ordercast.pipeline.streaming.bucket import Held
from ordercast.pipeline.streaming.form import Form
from ordercast.pipeline.streaming.ledger import Intervals, Ledger

__all__ = ["VERSION", "read_counts", "read_form", "read_held", "read_table", "table_bytes"]
__all__ += ["require_form", "write_counts", "write_form", "write_held"]

VERSION = 2
_MARK = b"ordercast"
_HEAD = struct.Struct(f"<{len(_MARK)}sBqI")
"""Mark, version, when the next timer rings, and the length of the form."""
_PART = struct.Struct("<Q")
_ARRIVED = "ordercast arrived ms"


def table_bytes(
    table: pa.Table | pa.RecordBatch, options: pa.ipc.IpcWriteOptions | None = None
) -> bytes:
    """With its schema: whoever reads it needs nothing else."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def read_table(
    content: bytes | memoryview, options: pa.ipc.IpcReadOptions | None = None
) -> pa.Table:
    with pa.ipc.open_stream(pa.py_buffer(content), options=options) as reader:
        return reader.read_all()


def write_counts(ledger: Ledger, form: Form) -> bytes:
    groups = ledger.groups.append_column("", pa.array(ledger.position))
    slots = pa.table(
        {"group": ledger.slot_group, "origin": ledger.slot_origin, "done": ledger.done}
    )
    kept = (_intervals_table(ledger.missing), _intervals_table(ledger.settled))
    return _packed(form, ledger.timer_ms, [groups, slots, *kept])


def write_held(held: Held, form: Form) -> bytes:
    return _packed(form, -1, [held.rows.append_column(_ARRIVED, pa.array(held.arrived_ms))])


def read_counts(content: bytes, form: Form) -> Ledger:
    timer_ms, (groups, slots, missing, settled) = _unpacked(content, form)
    last = groups.num_columns - 1
    return Ledger(
        groups=groups.remove_column(last),
        position=_ints(groups.column(last)),
        slot_group=_ints(slots.column("group")),
        slot_origin=_whole(slots.column("origin")),
        done=_ints(slots.column("done")),
        missing=Intervals(*map(_ints, missing.columns)),
        settled=Intervals(*map(_ints, settled.columns)),
        timer_ms=timer_ms,
    )


def read_held(content: bytes, form: Form) -> Held:
    _, (rows,) = _unpacked(content, form)
    return Held(rows.drop_columns([_ARRIVED]), _ints(rows.column(_ARRIVED)))


def write_form(form: Form) -> bytes:
    """For a bucket that no message has come to: `counts` without any."""
    return _packed(form, -1, [])


def require_form(content: bytes, form: Form) -> None:
    """Refuses what was made for another form, or by another version."""
    _, made_for, _ = _head(content)
    if made_for != _identity(form):
        raise CheckpointError(_difference(json.loads(made_for), form.identity))


def read_form(content: bytes) -> Form:
    """The form that a state was made for."""
    _, form, _ = _head(content)
    known = json.loads(form)
    for name in ("group", "origins"):
        known[name] = None if known[name] is None else tuple(known[name])
    return Form(**known)


def _packed(form: Form, timer_ms: int, tables: list[pa.Table]) -> bytes:
    identity = _identity(form)
    parts = [_HEAD.pack(_MARK, VERSION, timer_ms, len(identity)), identity]
    for table in tables:
        content = table_bytes(table)
        parts += (_PART.pack(len(content)), content)
    return b"".join(parts)


def _unpacked(content: bytes, form: Form) -> tuple[int, list[pa.Table]]:
    require_form(content, form)
    timer_ms, _, rest = _head(content)
    tables = []
    while rest:
        (length,) = _PART.unpack_from(rest)
        tables.append(read_table(rest[_PART.size : _PART.size + length]))
        rest = rest[_PART.size + length :]
    return timer_ms, tables


def _head(content: bytes) -> tuple[int, bytes, memoryview]:
    view = memoryview(content)
    if len(view) < _HEAD.size:
        raise CheckpointError("the state in this checkpoint is not of ordercast: give another one")
    mark, version, timer_ms, length = _HEAD.unpack_from(view)
    if mark != _MARK:
        raise CheckpointError("the state in this checkpoint is not of ordercast: give another one")
    if version != VERSION:
        raise CheckpointError(
            f"this checkpoint has state of version {version}, and this ordercast has {VERSION}: go "
            "on with the ordercast that made it, or begin with a new checkpoint"
        )
    end = _HEAD.size + length
    return timer_ms, bytes(view[_HEAD.size : end]), view[end:]


def _identity(form: Form) -> bytes:
    return json.dumps(form.identity, sort_keys=True).encode()


def _difference(before: dict[str, object], now: dict[str, object]) -> str:
    name = next(name for name in sorted(now) if before.get(name) != now[name])
    return (
        f"this checkpoint was made with {name} = {json.dumps(before.get(name))}, and now {name} is "
        f"{json.dumps(now[name])}: go on with what it was made with, or begin with a new checkpoint"
    )


def _intervals_table(intervals: Intervals) -> pa.Table:
    return pa.table([pa.array(column) for column in intervals], ["slot", "low", "high"])


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _ints(column: pa.ChunkedArray) -> Ints:
    return np.asarray(_whole(column)).astype(np.int64, copy=False)
