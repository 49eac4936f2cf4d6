"""What a simulated run is to be: the network's habits, the faults, the traffic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ordercast.errors import UsageError

__all__ = ["Crash", "Network", "Partition", "Plan", "Traffic", "check_size"]

MEMBERS_MOST = 10_000
MESSAGES_MOST = 10**9
PAYLOAD_MOST = 1 << 30
"""Beyond these, nothing would ever come to an end."""


@dataclass(frozen=True, slots=True)
class Partition:
    """From `start_us` on, for `length_us`, nothing passes between processes of different sides.
    Whoever is on no side is cut off from all."""

    start_us: int
    length_us: int
    sides: tuple[tuple[int, ...], ...]

    def cuts(self, source: int, to: int, now_us: int) -> bool:
        if not self.start_us <= now_us < self.start_us + self.length_us:
            return False
        return not any(source in side and to in side for side in self.sides)


@dataclass(frozen=True, slots=True)
class Network:
    """Links that lose and repeat packets, made perfect by retransmission while both ends are up."""

    delay_us: tuple[int, int] = (1_000, 20_000)
    fifo: bool = False
    """Do links keep their order, as TCP does? Otherwise packets overtake each other."""
    loss: float = 0.0
    duplication: float = 0.0
    retransmit_us: int = 30_000
    partitions: tuple[Partition, ...] = ()

    def __post_init__(self) -> None:
        low, high = self.delay_us
        if not 0 <= low <= high:
            raise UsageError(f"a delay from {low} to {high} µs makes no sense: give low..high")
        if not 0 <= self.loss < 1:
            raise UsageError(f"a loss of {self.loss:.0%} lets nothing through: stay below 100%")
        if not 0 <= self.duplication <= 1:
            raise UsageError(f"a duplication of {self.duplication:.0%} is not between 0% and 100%")


@dataclass(frozen=True, slots=True)
class Crash:
    """A process stops for good, at a time or right after so many copies have left it."""

    process: int
    at_us: int | None = None
    after_copies: int | None = None


@dataclass(frozen=True, slots=True)
class Traffic:
    """Every process sends `messages`, one after the other, at random moments."""

    messages: int = 10
    payload_bytes: int = 16
    interval_us: int = 5_000
    """Mean time between two sends of one process."""
    destinations: Literal["everyone", "one", "some"] = "everyone"

    def __post_init__(self) -> None:
        if not 0 <= self.messages <= MESSAGES_MOST:
            raise UsageError(
                f"{self.messages} messages of each process: choose from 0 to {MESSAGES_MOST:,}"
            )
        if not 0 <= self.payload_bytes <= PAYLOAD_MOST:
            raise UsageError(
                f"a payload of {self.payload_bytes} bytes: choose from 0 to {PAYLOAD_MOST:,}"
            )


def check_size(size: int) -> None:
    if size < 1:
        raise UsageError(f"a group of {size} has no members: use at least one process")
    if size > MEMBERS_MOST:
        raise UsageError(f"a group of {size} is too large to simulate: up to {MEMBERS_MOST:,} fit")


@dataclass(frozen=True, slots=True)
class Plan:
    size: int
    seed: int = 0
    network: Network = Network()
    crashes: tuple[Crash, ...] = ()
    traffic: Traffic = Traffic()
    detect_us: int = 150_000
    """How long after a crash the others suspect it."""
    until_us: int = 600_000_000
    """Virtual time at which a run that has not come to rest is cut off."""

    def __post_init__(self) -> None:
        check_size(self.size)
        named = [crash.process for crash in self.crashes]
        named += [p for cut in self.network.partitions for side in cut.sides for p in side]
        for process in named:
            if not 0 <= process < self.size:
                raise UsageError(
                    f"the fault plan names process {process} in a group of {self.size}"
                )
