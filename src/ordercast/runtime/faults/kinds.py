"""What may go wrong between real processes. Times count from the moment the members may send."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from msgspec import Struct

from ordercast.errors import UsageError

__all__ = [
    "Delay",
    "Fault",
    "Faults",
    "Habit",
    "Kill",
    "Loss",
    "Partition",
    "Pause",
    "Slow",
    "Span",
    "written",
]


class Span(Struct, frozen=True):
    """From when on, and for how long: None means until the end."""

    start_us: int = 0
    length_us: int | None = None

    @property
    def end_us(self) -> int | None:
        return None if self.length_us is None else self.start_us + self.length_us

    def holds_at(self, now_us: int) -> bool:
        return self.start_us <= now_us and (self.end_us is None or now_us < self.end_us)

    def __str__(self) -> str:
        length = "" if self.length_us is None else f"+{written(self.length_us)}"
        return f"@{written(self.start_us)}{length}"


class Kill(Struct, frozen=True):
    """SIGKILL. With a length the member is started again after it, with its journal."""

    process: int
    span: Span

    def __str__(self) -> str:
        return f"kill:{self.process}{self.span}"


class Pause(Struct, frozen=True):
    """SIGSTOP, and SIGCONT at the end."""

    process: int
    span: Span

    def __str__(self) -> str:
        return f"pause:{self.process}{self.span}"


class Slow(Struct, frozen=True):
    """The application of this member takes nothing that is delivered."""

    process: int
    span: Span

    def __str__(self) -> str:
        return f"slow:{self.process}{self.span}"


class Partition(Struct, frozen=True):
    """Nothing passes between processes of different sides. Who is on none is cut off from all."""

    sides: tuple[tuple[int, ...], ...]
    span: Span

    def cuts(self, source: int, to: int) -> bool:
        return not any(source in side and to in side for side in self.sides)

    @property
    def between(self) -> str:
        return "|".join(",".join(map(str, side)) for side in self.sides)

    def __str__(self) -> str:
        return f"partition:{self.between}{self.span}"


class Delay(Struct, frozen=True):
    """Whatever passes takes a time of its own; nothing overtakes anything on the same link."""

    mean_us: int
    jitter_us: int = 0
    link: tuple[int, int] | None = None
    """Source and destination; None means all links."""
    span: Span = Span()

    def __str__(self) -> str:
        jitter = f"±{written(self.jitter_us)}" if self.jitter_us else ""
        return f"delay:{_place(self)}{written(self.mean_us)}{jitter}{_time(self)}"


class Loss(Struct, frozen=True):
    """That share of what passes is lost. On TCP this means that the connection breaks there."""

    ppm: int
    """Parts per million: a percent is 10,000."""
    link: tuple[int, int] | None = None
    span: Span = Span()

    def __str__(self) -> str:
        percent = f"{self.ppm / 10_000:.4f}".rstrip("0").rstrip(".")
        return f"loss:{_place(self)}{percent}%{_time(self)}"


Habit = Delay | Loss
"""What links do all the time, or for a time."""
Fault = Kill | Pause | Slow | Partition | Habit


class Faults(Struct, frozen=True):
    """A whole plan. Of several delays that fit a link, the last one counts; so with losses."""

    faults: tuple[Fault, ...] = ()

    def __str__(self) -> str:
        return ",".join(map(str, self.faults))

    def __bool__(self) -> bool:
        return bool(self.faults)

    @property
    def on_members(self) -> dict[int, list[Kill | Pause | Slow]]:
        """By process, what happens to it, one after the other."""
        found: dict[int, list[Kill | Pause | Slow]] = {}
        for fault in self.faults:
            if isinstance(fault, Kill | Pause | Slow):
                found.setdefault(fault.process, []).append(fault)
        for own in found.values():
            own.sort(key=lambda fault: fault.span.start_us)
        return found

    @property
    def partitions(self) -> list[Partition]:
        return [fault for fault in self.faults if isinstance(fault, Partition)]

    @property
    def habits(self) -> list[Habit]:
        return [fault for fault in self.faults if isinstance(fault, Delay | Loss)]

    @property
    def of_the_network(self) -> bool:
        """Whether the members have to talk through a proxy."""
        return bool(self.partitions or self.habits)

    @property
    def restarts(self) -> bool:
        """Whether members come back, for which they need journals."""
        return any(isinstance(f, Kill) and f.span.end_us is not None for f in self.faults)

    @property
    def fatal(self) -> set[int]:
        """Who is killed for good."""
        return {f.process for f in self.faults if isinstance(f, Kill) and f.span.end_us is None}

    @property
    def end_us(self) -> int:
        """When the last one that has a time is over."""
        return max((fault.span.end_us or fault.span.start_us for fault in self.faults), default=0)

    @property
    def absence_us(self) -> int:
        """The longest time for which someone who is to come back cannot be heard."""
        away = (f for f in self.faults if not isinstance(f, Delay | Loss))
        return max((fault.span.length_us or 0 for fault in away), default=0)

    def check(self, processes: int) -> None:
        """Say what cannot be in a group of this size."""
        for fault in self.faults:
            for process in _named(fault):
                if process >= processes:
                    raise UsageError(
                        f"the fault {str(fault)!r} names process {process}: in a group of "
                        f"{processes} they are numbered from 0 to {processes - 1}"
                    )
        for own in self.on_members.values():
            for one, next in pairwise(own):
                if one.span.end_us is None:
                    raise UsageError(
                        f"after {str(one)!r} process {one.process} is dead for good, so "
                        f"{str(next)!r} cannot be: write kill:{one.process}@TIME+LENGTH to have it "
                        "started again"
                    )
                if next.span.start_us < one.span.end_us:
                    raise UsageError(
                        f"{str(next)!r} begins before {str(one)!r} is over: a process suffers one "
                        "fault at a time"
                    )


def written(us: int) -> str:
    """A time in the largest unit that needs no fraction."""
    for unit, size in (("s", 1_000_000), ("ms", 1_000)):
        if us and us % size == 0:
            return f"{us // size}{unit}"
    return f"{us}us" if us else "0s"


def _place(habit: Habit) -> str:
    return "" if habit.link is None else f"{habit.link[0]}>{habit.link[1]}="


def _time(habit: Habit) -> str:
    return "" if habit.span == Span() else str(habit.span)


def _named(fault: Fault) -> Iterator[int]:
    if isinstance(fault, Kill | Pause | Slow):
        yield fault.process
    elif isinstance(fault, Partition):
        for side in fault.sides:
            yield from side
    elif fault.link is not None:
        yield from fault.link
