"""What can be measured: something that carries messages between n processes of this machine.

A subject moves *blobs*: a blob is one message, or, where an application would pack them itself,
several of the same length in a row (a *frame*). The harness packs, stamps, paces, counts and
times; a subject only joins, publishes a list of blobs to everyone else, and hands what it receives
to the sink. It is made anew in every process, so what it needs of the others travels in `Setting`.

To add one, write a module with a tuple `SUBJECTS` and name it in `_MODULES`; `raw.py` is the
shortest example.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from benchmarks.runtime.sink import Sink

__all__ = [
    "Form",
    "Led",
    "Member",
    "Servers",
    "Setting",
    "Subject",
    "all_subjects",
    "subject_named",
]

_MODULES = (
    "raw",
    "ours",
    "peers.with_nats",
    "peers.with_jetstream",
    "peers.with_redis",
    "peers.with_pysyncobj",
    "peers.with_corosync",
    "peers.with_jgroups",
)
BURST = 64


class Form(Struct, frozen=True):
    """How an application hands its messages over."""

    name: str
    pack: int = 1
    """Messages in a blob."""
    burst: int = BURST
    """Messages in one call of `publish`."""


ONE = Form("one by one", burst=1)
"""One message, one call, one turn of the loop."""
BURSTS = Form("bursts of 64")
"""64 messages in a call; what travels together is the subject's business."""
FRAMES = Form("frames of 64", pack=BURST)
"""64 messages in one message of the subject's: what an application can do by itself."""


class Servers(Struct):
    """What runs beside the members for one case."""

    pids: list[int] = []
    """Their processor time counts."""
    words: dict[str, str] = {}
    """What members have to know."""
    prefix: list[list[str]] = []
    """By member: what its command line begins with, if anything."""


class Setting(Struct, frozen=True):
    """One process of one case."""

    subject: str
    me: int
    n: int
    payload_bytes: int
    tls: bool
    addresses: tuple[str, ...]
    """`host:port` by member; free when the case began."""
    place: str
    words: dict[str, str]

    @property
    def directory(self) -> Path:
        """For this case; certificates are in `keys` if `tls`."""
        return Path(self.place)

    def host_port(self, member: int) -> tuple[str, int]:
        host, _, port = self.addresses[member].rpartition(":")
        return host, int(port)

    def encode(self) -> str:
        return msgspec.json.encode(self).decode()


class Member(Protocol):
    """One process's end, in the group when `join` returns it."""

    async def publish(self, blobs: Sequence[bytes]) -> None:
        """To everyone else; returns when more may come."""

    async def close(self) -> None: ...


@runtime_checkable
class Led(Protocol):
    """A member of a group that has a leader."""

    def leader(self) -> int | None:
        """Who it is now, as far as is known here."""


class Subject(Protocol):
    name: str
    order: str
    """What it keeps: fifo, causal, total …"""
    remarks: str
    forms: tuple[Form, ...]
    tls: tuple[bool, ...]
    """Whether it can be measured in plain, encrypted, or both."""
    window: int | None
    """Messages that a member may have under way; None if the subject itself slows senders down."""
    warm_s: float
    """How long it must run before its figures mean something, if that is longer than usual."""

    def missing(self) -> str | None:
        """Why it cannot be measured here, if it cannot."""

    def servers(self, setting: Setting) -> ServersContext:
        """Start what runs beside the members (the setting is that of member 0)."""

    def command(self, setting: Setting) -> list[str] | None:
        """The program of a member, if it is not `benchmarks.runtime.member`."""

    async def join(self, setting: Setting, sink: Sink) -> Member:
        """In the member's process: returns when the whole group is there."""


if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    ServersContext = AbstractAsyncContextManager[Servers]


class Alone:
    """For subjects without servers, whose members are Python."""

    tls: tuple[bool, ...] = (False,)
    window: int | None = None
    warm_s = 0.0
    remarks = ""

    def missing(self) -> str | None:
        return None

    @asynccontextmanager
    async def servers(self, setting: Setting) -> AsyncIterator[Servers]:
        yield Servers()

    def command(self, setting: Setting) -> list[str] | None:
        return None


def all_subjects() -> list[Subject]:
    found: list[Subject] = []
    for name in _MODULES:
        found += importlib.import_module(f"benchmarks.runtime.{name}").SUBJECTS
    return found


def subject_named(name: str) -> Subject:
    (found,) = (subject for subject in all_subjects() if subject.name == name)
    return found
