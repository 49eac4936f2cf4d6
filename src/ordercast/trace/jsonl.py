"""Events as JSON lines: for people, for diffs, and for a process that may be killed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from ordercast.errors import TraceError
from ordercast.trace.event import Event, flaw, misfit

__all__ = [
    "MARK",
    "UNREADABLE",
    "decode_event",
    "encode_event",
    "encode_events",
    "read_jsonl",
    "write_jsonl",
]

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What a decoder raises for bytes that are not JSON, not text, or nested too deeply."""

MARK = "\ufeff".encode()
"""What some programs begin a file with, to say that it is UTF-8."""

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Event)


def encode_event(event: Event) -> bytes:
    return _encoder.encode(event) + b"\n"


def encode_events(events: Iterable[Event]) -> bytes:
    return _encoder.encode_lines(list(events))


def decode_event(line: bytes | str, *, where: str) -> Event:
    try:
        event = _decoder.decode(line)
    except UNREADABLE as error:
        if isinstance(line, bytes) and line.startswith(MARK):
            return decode_event(line.removeprefix(MARK), where=where)
        raise TraceError(f"{where}: not an event: {misfit(error)}") from None
    if (reason := flaw(event)) is not None:
        raise TraceError(f"{where}: {reason}")
    return event


def write_jsonl(event: Event, file: BinaryIO) -> None:
    file.write(encode_event(event))


def read_jsonl(path: Path) -> Iterator[Event]:
    with path.open("rb") as file:
        for row, line in enumerate(file, start=1):
            if line.strip():
                yield decode_event(line, where=f"{path}, line {row}")
