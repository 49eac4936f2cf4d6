"""The lines between the launcher and a member: JSON, commands on stdin and reports on stdout.

    launcher                                member
       │ ── Assignment ─────────────────────▶ │
       │ ◀─────────────── Listening(port) ─── │
       │ ── Meet(ports) ────────────────────▶ │
       │ ◀─────────────── Present(others) ─── │    each time it changes
       │ ── Go ─────────────────────────────▶ │
       │ ── Ask(round) ─────────────────────▶ │    again and again
       │ ◀────── Answer(round, counters) ──── │
       │ ── Dead(process) ──────────────────▶ │    when it has seen another member's process end
       │ ── Stop ───────────────────────────▶ │    or the end of stdin, if the launcher died

A member exits by itself after a Stop, and whenever its stdin ends.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from ordercast.runtime.rest import Counters
from ordercast.runtime.weather import Weather

__all__ = [
    "Answer",
    "Ask",
    "Assignment",
    "Command",
    "Dead",
    "Go",
    "Listening",
    "Meet",
    "Present",
    "Report",
    "Stop",
    "decode_command",
    "decode_report",
    "encode_line",
]


class Assignment(Struct, frozen=True, kw_only=True, tag="assignment"):
    """What a member is told first: who it is and what to do."""

    run: str
    me: int
    processes: int
    ordering: str
    dissemination: str
    messages: int
    payload_bytes: int
    interval_ms: float
    seed: int
    weather: Weather
    log: str
    """The directory for its own part of the trace."""


class Meet(Struct, frozen=True, tag="meet"):
    ports: tuple[int, ...]
    """By process."""


class Go(Struct, frozen=True, tag="go"):
    pass


class Ask(Struct, frozen=True, tag="ask"):
    round: int


class Dead(Struct, frozen=True, tag="dead"):
    process: int


class Stop(Struct, frozen=True, tag="stop"):
    pass


class Listening(Struct, frozen=True, tag="listening"):
    port: int


class Present(Struct, frozen=True, tag="present"):
    others: tuple[int, ...]


class Answer(Struct, frozen=True, tag="answer"):
    round: int
    counters: Counters


Command = Assignment | Meet | Go | Ask | Dead | Stop
Report = Listening | Present | Answer

_encoder = msgspec.json.Encoder()
_commands: msgspec.json.Decoder[Command] = msgspec.json.Decoder(Command)
_reports: msgspec.json.Decoder[Report] = msgspec.json.Decoder(Report)


def encode_line(line: Command | Report) -> bytes:
    return _encoder.encode(line) + b"\n"


def decode_command(line: bytes) -> Command:
    return _commands.decode(line)


def decode_report(line: bytes) -> Report:
    return _reports.decode(line)
