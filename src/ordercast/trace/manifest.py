"""One line per run: who took part, what was promised, and whether the log is whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from ordercast.errors import TraceError
from ordercast.trace.jsonl import MARK, UNREADABLE

__all__ = ["SCHEMA", "Manifest"]

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Manifest:
    run: str
    processes: tuple[str, ...]
    """Names, in index order."""
    quiesced: bool = False
    """Did the run come to rest?"""
    complete: bool = True
    """Has the log no holes?"""
    order: str | None = None
    dissemination: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    """Whatever else the line says: seed, fault plan, the command that replays it, …"""
    silent: bool = False
    """The line does not say whether the run came to rest."""

    def to_json(self) -> bytes:
        known = {
            "run": self.run,
            "processes": self.processes,
            "quiesced": None if self.silent else self.quiesced,
            "complete": self.complete,
            "order": self.order,
            "dissemination": self.dissemination,
            "schema": SCHEMA,
        }
        return msgspec.json.encode(known | self.extra)

    @classmethod
    def from_json(cls, line: bytes | str, *, where: str) -> Manifest:
        if isinstance(line, bytes):
            line = line.removeprefix(MARK)
        try:
            row = msgspec.json.decode(line, type=dict[str, Any])
            known = msgspec.convert(row, _Known)
        except UNREADABLE as error:
            raise TraceError(f"{where}: not a manifest line: {error}") from None
        if known.schema not in (None, SCHEMA):
            raise TraceError(
                f"{where}: the trace has schema {known.schema} and this ordercast reads "
                f"schema {SCHEMA}: use the version of ordercast that wrote it, or a newer one"
            )
        return cls(
            run=known.run,
            processes=known.processes,
            quiesced=known.quiesced is True,
            complete=known.complete is not False,
            order=known.order,
            dissemination=known.dissemination,
            extra={key: value for key, value in row.items() if key not in _KNOWN_KEYS},
            silent=known.quiesced is None,
        )


class _Known(msgspec.Struct):
    run: str
    processes: tuple[str, ...]
    quiesced: bool | None = None
    complete: bool | None = None
    order: str | None = None
    dissemination: str | None = None
    schema: int | None = None


_KNOWN_KEYS = frozenset(_Known.__struct_fields__)
