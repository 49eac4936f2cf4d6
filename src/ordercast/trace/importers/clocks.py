"""What vector clocks say about messages, and whether the clocks can be right.

An event's clock says what it knew. If the entry of j grew to t since the process's last event, it
has learned of event t of j, from j itself or from someone who knew. It was from j itself unless
another event that it learned of knew as much: whoever brought the news by another way is itself
new, and knows it. So the events that no other new one knows of are certainly senders:

    new      = { (j, V[j]) : V[j] > last V[j], j not the process itself }
    senders  = { c in new : no other d in new has clock(d)[j of c] >= t of c }

A message whose send was known already brings nothing new, so clocks alone cannot show it: it is one
that came twice, or too late. In a log with holes the clock of an event may be missing; then only
what no missing clock could contradict is said.

A clock is right if it is the maximum of its causes, own entry plus one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

__all__ = ["Clock", "Learned", "Point", "flaws", "learn"]

Clock = dict[str, int]
Point = tuple[str, int]
"""An event: whose, and its own entry."""
Lookup = Callable[[str, int], Clock | None]


@dataclass(frozen=True, slots=True)
class Learned:
    senders: tuple[Point, ...]
    unresolved: int
    """New entries of which it cannot be told who brought them, since events are missing."""


def learn(host: str, last: Clock, clock: Clock, lookup: Lookup) -> Learned:
    """From whom an event heard, by its clock and the one before it at the same host."""
    new = sorted(
        (other, time)
        for other, time in clock.items()
        if other != host and time > last.get(other, 0)
    )
    clocks = {point: lookup(*point) for point in new}
    known = {point: found for point, found in clocks.items() if found is not None}
    free = [
        (other, time)
        for other, time in new
        if not any(
            found.get(other, 0) >= time for point, found in known.items() if point[0] != other
        )
    ]
    missing = [point for point in free if point not in known]
    if not missing:
        return Learned(tuple(free), 0)
    # A missing clock could know of all the others; of a single one, nobody else can know.
    certain = tuple(missing) if len(missing) == 1 else ()
    return Learned(certain, len(free) - len(certain))


def flaws(host: str, last: Clock, clock: Clock, lookup: Lookup) -> Iterator[str]:
    """Why this clock cannot be right, one sentence each."""
    own, before = clock[host], last.get(host, 0)
    if own == before:
        yield f"its own entry is {own} already in the event before"
    for other, time in sorted(last.items()):
        if other != host and clock.get(other, 0) < time:
            forgot = clock.get(other, 0)
            yield f"it knows {other}:{forgot}, and the event before knew {other}:{time}"
    for other, time in sorted(clock.items()):
        if other == host or time <= last.get(other, 0):
            continue
        cause = lookup(other, time)
        for third, known in sorted((cause or {}).items()):
            if third == host and known >= own:
                yield f"it knows {other}:{time}, which knew {host}:{known}: its own future"
            elif third != host and known > clock.get(third, 0):
                yield (
                    f"it knows {other}:{time}, which knew {third}:{known}, "
                    f"but has only {third}:{clock.get(third, 0)}"
                )
