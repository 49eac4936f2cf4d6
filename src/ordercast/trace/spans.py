"""A member's log while it runs: one record for what happened to messages in a row.

A runtime that moves a million messages a second cannot write a row for each. It writes spans: the
same kind of event, the same origin, numbers one after the other. Whoever reads the log gets rows.

A log is one or more files; each begins with a `Head` and goes on with spans, each record a u32
length and a msgpack array. What a killed writer left unfinished at the end has not happened yet,
because a member writes down what it does before anyone else can know of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from ordercast.errors import TraceError
from ordercast.trace.event import Event, Kind

__all__ = [
    "SUFFIX",
    "Found",
    "Head",
    "Span",
    "encode",
    "excerpts_in",
    "log_files",
    "read_file",
    "read_log",
    "rows_of",
    "sizes_of",
    "whole_records",
]

LENGTH = 4
SUFFIX = ".spans"
EXCERPTS_MAX = 200
"""Of how many messages of a process a manifest shows how they begin."""


class Head(Struct, frozen=True, array_like=True, tag="ordercast spans 1"):
    """Whose log this is, and where in it this file begins."""

    run: str
    process: int
    position: int
    manifest: str | None = None
    """The line that the run's manifest should have, as far as this member knows."""


class Span(Struct, array_like=True, tag="span", gc=False):
    """What one process did with messages `first`, `first + 1`, … of `origin`."""

    kind: Kind
    time_us: int
    origin: int | None = None
    first: int | None = None
    count: int = 1
    sizes: int | list[int] | None = None
    """Payload bytes: of each message, or one number for all."""
    control_bytes: int | None = None
    """Of all of them together."""
    destinations: tuple[int, ...] | None = None
    excerpts: list[str] | None = None
    """How each payload begins, where somebody wants to see it."""


_pack = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Head | Span).decode


def encode(record: Head | Span) -> tuple[bytes, bytes]:
    """How a record is written, in two parts."""
    body = _pack(record)
    return len(body).to_bytes(LENGTH, "big"), body


def log_files(directory: Path, name: str = "*") -> list[Path]:
    return sorted(directory.glob(f"{name}-[0-9][0-9][0-9][0-9]{SUFFIX}"))


def read_log(path: Path, *, size: int = -1) -> tuple[Head, list[Span]]:
    """Everything whole in one file of a log, or in its first bytes."""
    head, spans, _, damage = read_file(path, size=size)
    if damage is not None:
        raise damage
    assert head is not None
    return head, spans


def rows_of(span: Span, *, run: str, process: int, position: int) -> Iterator[Event]:
    """The rows of a span whose first one has this position."""
    if span.first is None:
        yield Event(run, process, position, span.kind, time_us=span.time_us)
        return
    sizes = span.sizes if isinstance(span.sizes, list) else [span.sizes] * span.count
    for place in range(span.count):
        yield Event(
            run,
            process,
            position + place,
            span.kind,
            span.origin,
            span.first + place,
            span.destinations,
            span.time_us,
            sizes[place],
            _share(span.control_bytes, span.count, place),
        )


def excerpts_in(spans: Iterable[Span], *, at_most: int = EXCERPTS_MAX) -> dict[str, str]:
    """By message, such as 0:3, how payloads begin: the first ones that there are."""
    found: dict[str, str] = {}
    for span in spans:
        if span.excerpts is not None and span.first is not None:
            for number, text in enumerate(span.excerpts[: at_most - len(found)], span.first):
                found[f"{span.origin}:{number}"] = text
    return found


def sizes_of(payloads: Sequence[bytes]) -> int | list[int]:
    """As a span has it."""
    sizes = list(map(len, payloads))
    return sizes[0] if sizes.count(sizes[0]) == len(sizes) else sizes


def whole_records(data: bytes, *, where: str, start: int = 0) -> Iterator[tuple[Head | Span, int]]:
    """The records of a piece of a file that begins at byte `start` of it, each with the byte at
    which it ends; what is not whole at the end is not there yet."""
    at = 0
    while (body := at + LENGTH) <= len(data):
        end = body + int.from_bytes(data[at:body], "big")
        if end > len(data):
            break
        try:
            record = _decode(data[body:end])
        except msgspec.DecodeError as error:
            raise TraceError(f"{where}, byte {start + at}: not a span of events: {error}") from None
        yield record, start + end
        at = end


class Found(NamedTuple):
    """In one file of a log."""

    head: Head | None
    spans: list[Span]
    end: int
    """Of the last whole record."""
    damage: TraceError | None
    """What is wrong with what follows; or there is no head."""


def read_file(path: Path, *, size: int = -1) -> Found:
    head: Head | None = None
    spans: list[Span] = []
    end = 0
    damage: TraceError | None = None
    with path.open("rb") as file:
        data = file.read(size)
    try:
        for record, end in whole_records(data, where=str(path)):  # noqa: B007
            if isinstance(record, Span):
                spans.append(record)
            else:
                head = record
    except TraceError as error:
        damage = error
    if head is None:
        damage = damage or TraceError(f"{path}: not a log of spans: it does not say whose it is")
        return Found(None, [], 0, damage)
    return Found(head, spans, end, damage)


def _share(total: int | None, count: int, place: int) -> int | None:
    """One message's part of what a bundle cost, so that the parts add up to it."""
    if total is None:
        return None
    return total // count + (place < total % count)
