"""The lines between the launcher and a member: JSON, commands on stdin and reports on stdout.

    launcher                                member
       │ ── Assignment ─────────────────────▶ │
       │ ◀─────────────── Listening(port) ─── │
       │ ── Meet(ports) ────────────────────▶ │
       │ ◀──── Present(others, suspected) ─── │    each time it changes
       │ ── Go ─────────────────────────────▶ │
       │ ── Read(on) ───────────────────────▶ │    when its application is to be a slow one
       │ ── Ask(round) ─────────────────────▶ │    again and again
       │ ◀────── Answer(round, counters) ──── │
       │ ◀──────────────────────── Sample ─── │    several times a second, in a live run
       │ ── Finish ─────────────────────────▶ │    when it has sent enough
       │ ── Stop ───────────────────────────▶ │    or the end of stdin, if the launcher died

A member exits by itself after a Stop, and whenever its stdin ends.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from ordercast.runtime.holds import Hold
from ordercast.runtime.plan import Plan
from ordercast.runtime.rest import Counters
from ordercast.runtime.weather import Weather
from ordercast.trace.event import Kind

__all__ = [
    "Answer",
    "Ask",
    "Assignment",
    "Command",
    "Finish",
    "Go",
    "Listening",
    "Meet",
    "Moment",
    "Present",
    "Read",
    "Report",
    "Sample",
    "Stop",
    "assign",
    "decode_command",
    "decode_report",
    "encode_line",
]


PATIENCE_S = 20.0
"""How much longer than planned a member may be away before the others give it up."""


class Assignment(Struct, frozen=True, kw_only=True, tag="assignment"):
    """What a member is told first: who it is and what to do."""

    run: str
    me: int
    processes: int
    ordering: str
    dissemination: str
    messages: int | None
    payload_bytes: int
    interval_ms: float
    seed: int
    weather: Weather
    log: str
    """The directory for its own part of the trace."""
    port: int = 0
    """Where to listen; anywhere, if 0."""
    journal: str | None = None
    """The directory of what it has to remember, if it is to come back from a kill."""
    dead_after_s: float | None = None
    """When to give up a member that is away."""
    live: bool = False
    """Somebody looks on."""


class Meet(Struct, frozen=True, tag="meet"):
    ports: tuple[int, ...]
    """By process."""


class Go(Struct, frozen=True, tag="go"):
    pass


class Ask(Struct, frozen=True, tag="ask"):
    round: int


class Read(Struct, frozen=True, tag="read"):
    on: bool


class Finish(Struct, frozen=True, tag="finish"):
    pass


class Stop(Struct, frozen=True, tag="stop"):
    pass


class Listening(Struct, frozen=True, tag="listening"):
    port: int


class Present(Struct, frozen=True, tag="present"):
    others: tuple[int, ...]
    suspected: tuple[int, ...]


class Answer(Struct, frozen=True, tag="answer"):
    round: int
    counters: Counters


class Moment(Struct, frozen=True, array_like=True):
    """A row of the trace, as far as a picture needs it."""

    kind: Kind
    time_us: int
    origin: int
    number: int


class Sample(Struct, frozen=True, kw_only=True, tag="sample"):
    """How a member is doing, and what it did since it last said so."""

    sent: int
    delivered: int
    held: int
    bundles: int
    """Of its own; what is sent in a row is one."""
    stable: int
    """Of these, how many a majority holds."""
    finished: bool
    holds: tuple[Hold, ...]
    """Some of what is held, the oldest first."""
    moments: tuple[Moment, ...]
    every: int
    """There are only those of messages whose number is a multiple of this."""


Command = Assignment | Meet | Go | Read | Ask | Finish | Stop
Report = Listening | Present | Answer | Sample

_encoder = msgspec.json.Encoder()
_commands: msgspec.json.Decoder[Command] = msgspec.json.Decoder(Command)
_reports: msgspec.json.Decoder[Report] = msgspec.json.Decoder(Report)


def assign(plan: Plan, me: int, *, logs: Path, port: int) -> Assignment:
    """One member's part in the plan. Only who is to come back from a kill has to remember; and
    only where someone dies for good is anyone given up."""
    faults, logs = plan.faults, logs.absolute()
    return Assignment(
        run=plan.run,
        me=me,
        processes=plan.processes,
        ordering=plan.ordering,
        dissemination=plan.dissemination,
        messages=plan.messages,
        payload_bytes=plan.payload_bytes,
        interval_ms=plan.interval_ms,
        seed=plan.seed,
        weather=plan.weather,
        log=str(logs),
        port=port,
        journal=str(logs / f"journal-{me}") if plan.restarts else None,
        dead_after_s=faults.absence_us / 1e6 + PATIENCE_S if faults.fatal else None,
        live=plan.live,
    )


def encode_line(line: Command | Report) -> bytes:
    return _encoder.encode(line) + b"\n"


def decode_command(line: bytes) -> Command:
    return _commands.decode(line)


def decode_report(line: bytes) -> Report:
    return _reports.decode(line)
