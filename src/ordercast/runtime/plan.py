"""What is to be run, how far it is, and how it ended."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from msgspec import Struct

from ordercast.errors import UsageError
from ordercast.protocols import catalog
from ordercast.runtime.faults import Faults, Happening
from ordercast.runtime.faults.kinds import Delay, Loss
from ordercast.runtime.faults.network import Traffic, check_room
from ordercast.runtime.frames import PAYLOAD_BYTES_MAX
from ordercast.runtime.weather import Weather

__all__ = ["Crash", "MemberOutcome", "Outcome", "Phase", "Plan", "Progress"]

PROCESSES_MAX = 64
"""All on one machine, each with a connection to every other."""


class Plan(Struct, frozen=True, kw_only=True):
    run: str
    ordering: str = "causal_vector"
    dissemination: str = "best_effort"
    processes: int = 3
    messages: int | None = 8
    """Sent by each process: to everyone, or each to one other if the ordering allows no more. None:
    until whoever has the group in hand says that it is enough."""
    payload_bytes: int = 64
    interval_ms: float = 10.0
    """Between two messages of a process, give or take half."""
    seed: int = 0
    weather: Weather = Weather()
    faults: Faults = Faults()
    live: bool = False
    """Somebody looks on, and may do to the members what faults do."""
    timeout_s: float = 60.0
    """In a live run, from when the group is to come to rest."""
    command: str | None = None
    """What a person types to run this again; goes into the manifest."""

    @property
    def sends(self) -> int | None:
        """How many there are in the end if nobody crashes; None if that is open."""
        return None if self.messages is None else self.processes * self.messages

    @property
    def deliveries(self) -> int | None:
        """Likewise."""
        one = catalog.ORDERINGS[self.ordering].destinations == "one"
        return None if self.sends is None else self.sends * (1 if one else self.processes)

    @property
    def restarts(self) -> bool:
        """Whether members may come back, for which they need journals and ports of their own."""
        return self.live or self.faults.restarts

    @property
    def proxied(self) -> bool:
        """Whether the members talk through proxies."""
        return self.live or self.faults.of_the_network

    def check(self) -> None:
        """Say what is wrong before any process is started."""
        if not 1 <= self.processes <= PROCESSES_MAX:
            raise UsageError(f"{self.processes} processes: choose from 1 to {PROCESSES_MAX}")
        if self.messages is None and not self.live:
            raise UsageError("a run that nobody looks after needs a number of messages: choose one")
        if self.messages is not None and self.messages < 0:
            raise UsageError(f"{self.messages} messages a process: choose 0 or more")
        if not 0 <= self.payload_bytes <= PAYLOAD_BYTES_MAX:
            raise UsageError(
                f"a payload of {self.payload_bytes} bytes: choose from 0 to {PAYLOAD_BYTES_MAX}"
            )
        if not 0 <= self.interval_ms < 3_600_000:
            raise UsageError(f"{self.interval_ms:g} ms between messages: choose 0 to an hour")
        if not self.timeout_s > 0:
            raise UsageError(f"a timeout of {self.timeout_s:g} s: choose more than 0")
        if not 1 <= len(self.run) <= 200:
            raise UsageError("a run needs a name of 1 to 200 characters")
        stack = catalog.build(self.ordering, self.dissemination, 0, self.processes)
        if self.weather.swap_pairs and stack.ordering.needs_fifo:
            raise UsageError(
                f"{self.ordering} needs links that keep their order: do not swap pairs"
            )
        self.faults.check(self.processes)
        self._check_live()
        if self.proxied:
            check_room(self.processes)
        if not self.live and self.faults.end_us >= self.timeout_s * 1e6:
            raise UsageError(
                f"the last fault is over after {self.faults.end_us / 1e6:g} s, and the run is "
                f"given up after {self.timeout_s:g} s: give it more time"
            )
        if self.restarts and self.weather != Weather():
            raise UsageError(
                "a member that comes back from a kill remembers the order in which its packets "
                "left, which this weather changes: write delay:15ms±15ms among the faults instead"
            )

    def _check_live(self) -> None:
        by_hand = [fault for fault in self.faults.faults if not isinstance(fault, Delay | Loss)]
        if self.live and by_hand:
            raise UsageError(
                f"the fault {str(by_hand[0])!r}: in a live run people kill, pause and cut off; "
                "plan only delays and losses"
            )


Phase = Literal["gathering", "connecting", "running", "stopping"]


class Progress(Struct, frozen=True):
    phase: Phase
    present: int
    """Members that are there: 2 of 3 present."""
    processes: int
    sent: int = 0
    to_send: int | None = 0
    delivered: int = 0
    to_deliver: int | None = 0
    """None: nobody knows yet."""
    held: int = 0
    crashed: int = 0
    happened: tuple[Happening, ...] = ()
    """Faults so far, and what the members made of them."""


class Crash(Struct, frozen=True):
    """A member that ended by itself."""

    process: int
    cause: str
    """The signal that killed it, or the last thing it said."""


class MemberOutcome(Struct, frozen=True):
    sent: int
    delivered: int
    held_max: int


class Outcome(Struct, frozen=True):
    directory: Path
    quiesced: bool
    """Did the living come to rest before the time was up?"""
    obstacle: str | None
    """Why not, if they did not."""
    members: tuple[MemberOutcome, ...]
    undelivered: str | None
    """Why a part of what was sent never will be, though the living came to rest."""
    crashed: tuple[Crash, ...]
    """Who is dead for good, by plan or not."""
    killed: frozenset[int]
    """Those of them who are so by plan or by hand."""
    happened: tuple[Happening, ...]
    traffic: Traffic | None
    """Through the proxies, if there were any."""
    duration_s: float
