"""A member's log while it runs: one record for what happened to messages in a row.

A runtime that moves a million messages a second cannot write a row for each. It writes spans: the
same kind of event, the same origin, numbers one after the other. Whoever reads the log gets rows.

A log is one or more files; each begins with a `Head` and goes on with spans, each record a u32
length and a msgpack array. What a killed writer left unfinished at the end has not happened yet,
because a member writes down what it does before anyone else can know of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Self

import msgspec
from msgspec import Struct

from ordercast.errors import TraceError
from ordercast.trace.event import Event, Kind
from ordercast.trace.manifest import Manifest

__all__ = [
    "Head",
    "Span",
    "SpanLog",
    "excerpts_in",
    "log_files",
    "read_log",
    "rows_of",
    "sizes_of",
    "whole_records",
]

LENGTH = 4
SUFFIX = ".spans"
ROTATE_BYTES = 256 * 2**20
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


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Head | Span).decode


class SpanLog:
    """Writes one process's log, `NAME-0001.spans` and so on; goes on where an old one ends."""

    def __init__(
        self,
        directory: Path,
        name: str,
        *,
        run: str,
        process: int,
        manifest: Manifest | None = None,
        rotate_bytes: int = ROTATE_BYTES,
    ) -> None:
        self._run = run
        self._manifest = manifest.to_json().decode() if manifest is not None else None
        self._process = process
        self._rotate_bytes = rotate_bytes
        self.directory = directory
        self._name = name
        self._file = -1
        self.position = 0
        """Of the next row."""
        directory.mkdir(parents=True, exist_ok=True)
        files = log_files(directory, name)
        if files:
            self._go_on(files)
        else:
            self._begin(1)

    def write(self, spans: Iterable[Span]) -> None:
        """All in one go: in the kernel when this returns, so that nobody can unwrite it."""
        records: list[bytes] = []
        rows = 0
        for span in spans:
            body = _encode(span)
            records += len(body).to_bytes(LENGTH, "big"), body
            rows += span.count
        self.position += rows
        data = b"".join(records)
        self._bytes += len(data)
        try:
            self._put(data)
            if self._bytes > self._rotate_bytes:
                self.close()
                self._begin(self._number + 1)
        except OSError as error:
            raise self._trouble(error) from error

    def close(self) -> None:
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self, number: int) -> None:
        self._number = number
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        self._file = os.open(self._path, flags, 0o644)
        self._bytes = 0
        body = _encode(Head(self._run, self._process, self.position, self._manifest))
        try:
            self._put(len(body).to_bytes(LENGTH, "big") + body)
        except OSError as error:
            self.close()
            self._path.unlink(missing_ok=True)  # nobody could say whose it is
            raise self._trouble(error) from error

    @property
    def _path(self) -> Path:
        """Of the file that is being written."""
        return self.directory / f"{self._name}-{self._number:04}{SUFFIX}"

    def _put(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._file, data) :]

    def _trouble(self, error: OSError) -> TraceError:
        return TraceError(
            f"the trace cannot be written: {self._path}: {error.strerror}; make sure that the disk "
            "is well and has room, then start the member again, with its journal or with another "
            "trace directory"
        )

    def _go_on(self, files: list[Path]) -> None:
        head, spans, end = _read(files[-1])
        if (head.run, head.process) != (self._run, self._process):
            raise TraceError(
                f"{files[-1]}: the log of process {head.process} in run {head.run!r} is here "
                "already: choose another directory"
            )
        self.position = head.position + sum(span.count for span in spans)
        self._number, self._bytes = len(files), end
        self._file = os.open(files[-1], os.O_WRONLY | os.O_APPEND)
        os.ftruncate(self._file, end)


def log_files(directory: Path, name: str = "*") -> list[Path]:
    return sorted(directory.glob(f"{name}-[0-9][0-9][0-9][0-9]{SUFFIX}"))


def read_log(path: Path) -> tuple[Head, list[Span]]:
    """Everything whole in one file of a log."""
    head, spans, _ = _read(path)
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


def _read(path: Path) -> tuple[Head, list[Span], int]:
    """The head, the spans, and where the last whole record ends."""
    head: Head | None = None
    spans: list[Span] = []
    end = 0
    for record, end in whole_records(path.read_bytes(), where=str(path)):  # noqa: B007
        if isinstance(record, Span):
            spans.append(record)
        else:
            head = record
    if head is None:
        raise TraceError(f"{path}: not a log of spans: it does not say whose it is")
    return head, spans, end


def _share(total: int | None, count: int, place: int) -> int | None:
    """One message's part of what a bundle cost, so that the parts add up to it."""
    if total is None:
        return None
    return total // count + (place < total % count)
