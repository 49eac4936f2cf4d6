"""The operator by its definition, literal and slow: one list, searched every time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Message(NamedTuple):
    group: str
    origin: int
    number: int
    needs: tuple[tuple[int, int], ...] = ()
    """Origins and numbers, in the order in which they are looked at."""
    label: int = 0
    """Tells copies apart."""

    @property
    def id(self) -> tuple[str, int, int]:
        return self[:3]


@dataclass
class Oracle:
    policy: str = "keep"
    wait: int = 0
    held: list[tuple[Message, int]] = field(default_factory=list)
    """With the time of arrival."""
    done: set[tuple[str, int, int]] = field(default_factory=set)
    """Released, set aside or given up."""
    missing: set[tuple[str, int, int]] = field(default_factory=set)
    out: list[tuple[Message, str]] = field(default_factory=list)

    def reached(self, group: str, origin: int, number: int) -> bool:
        return all((group, origin, below) in self.done for below in range(1, number + 1))

    def needs(self, m: Message) -> list[tuple[int, int]]:
        return [(m.origin, m.number - 1), *m.needs]

    def lacks(self, m: Message) -> list[tuple[int, int]]:
        return [need for need in self.needs(m) if not self.reached(m.group, *need)]

    def arrive(self, m: Message, now: int) -> None:
        if m.id in self.missing:
            self.missing.remove(m.id)
            self.out.append((m, "late"))
        elif m.id not in self.done and all(m.id != other.id for other, _ in self.held):
            self.held.append((m, now))
            self.go_on()

    def go_on(self) -> None:
        while ready := [m for m, _ in self.held if not self.lacks(m)]:
            self.leave(ready[0], "released")

    def leave(self, m: Message, outcome: str) -> None:
        self.held = [pair for pair in self.held if pair[0] != m]
        self.done.add(m.id)
        self.out.append((m, outcome))

    def expire(self, now: int) -> None:
        for m, came in list(self.held):
            if came + self.wait <= now and any(m == other for other, _ in self.held):
                if self.policy == "aside":
                    self.leave(m, "expired")
                else:
                    self.force(m, ())
                self.go_on()

    def force(self, m: Message, above: tuple[Message, ...]) -> None:
        outcome = "released"
        for origin, number in self.needs(m):
            while not self.reached(m.group, origin, number):
                same = [o for o, _ in self.held if (o.group, o.origin) == (m.group, origin)]
                past = min(same, key=lambda o: o.number, default=None)
                if past is None or past.number > number:
                    absent = {
                        (m.group, origin, below) for below in range(1, number + 1)
                    } - self.done
                    self.missing |= absent
                    self.done |= absent
                    outcome = "gap"
                elif past in (*above, m):
                    outcome = "gap"
                    break
                else:
                    self.force(past, (*above, m))
        self.leave(m, outcome)
