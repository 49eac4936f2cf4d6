"""What a member knows, as it stands: what a snapshot holds, and what is attached to it anew.

How it changes is the core's matter.

A state and its parts have slots: in Python 3.11, an object whose `__dict__` was looked at, as
pickling does, is slower to use ever after.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Self

from ordercast.protocols.messages import MessageId
from ordercast.protocols.stack import Codec, Stack
from ordercast.runtime.bundle import Bundle, Opened
from ordercast.runtime.link import Link
from ordercast.runtime.snapshot import dump, load
from ordercast.runtime.standing import Report, Standing
from ordercast.trace.spans import Span

__all__ = ["State"]

_KEPT = (
    *("stack", "life", "lives", "links", "sent", "delivered", "last", "arrivals", "queue"),
    *("taken", "timers", "standing", "session", "left", "rows", "_arrivals_max"),
    "unreported",
)
"""What a snapshot holds."""
_ATTACHED = (
    *("spans", "started", "clock_us", "recording", "excerpt_chars", "carry", "codec"),
    *("_at_hand", "_own", "come"),
)


class State:
    __slots__ = (*_KEPT, *_ATTACHED)

    def __init__(self, stack: Stack, *, life: str) -> None:
        self.stack = stack
        self.life = life
        self.session = ""
        """Which start of this life it is: a name, and another one each time."""
        self.lives: dict[int, str] = {}
        """Who of the others we have met."""
        self.links = {index: Link() for index in stack.ordering.all_but(stack.me)}
        self.sent = 0
        """Messages of the user here."""
        self.delivered = 0
        """Messages delivered to the user here: the last position."""
        self.last = [0] * stack.size
        """The highest number delivered here of each origin's messages."""
        self.arrivals: dict[MessageId, tuple[int, int, int]] = {}
        """First message, count and time of bundles that came and were not delivered at once."""
        self.queue: deque[Bundle] = deque()
        """Delivered, and not taken by the application yet."""
        self.taken = [0] * stack.size
        """Bytes of each origin that the application has taken."""
        self.timers: dict[str, int] = {}
        """Running timers of the protocol, and after how many microseconds they end."""
        self.standing = Standing(stack.me, stack.size)
        self.left = False
        """Whether this member has said goodbye."""
        self.rows = 0
        """Rows of the trace so far."""
        self._arrivals_max = 256
        self.unreported: list[list[int]] = [[] for _ in range(stack.size)]
        """By origin, the ranges of bundles delivered and not reported yet."""
        self.attach()

    def attach(
        self,
        *,
        clock_us: Callable[[], int] = lambda: 0,
        recording: bool = False,
        excerpt_chars: int = 0,
        carry: Callable[[int, bytes, bool], None] | None = None,
    ) -> None:
        """Connect to what is not part of the state. `carry` takes packets instead of the links."""
        self.spans: list[Span] = []
        self.started = list(self.timers)
        """Timers that the host has to start."""
        self.clock_us = clock_us
        self.recording = recording
        self.excerpt_chars = excerpt_chars
        self.carry = carry
        self.codec = Codec(self.stack.packets | Report)
        self._at_hand: Opened | None = None
        """The bundle that was looked into last."""
        self._own: dict[MessageId, Opened] = {}
        """Those of our own that are not delivered yet."""
        self.come = [0] * self.stack.size
        """By origin, the last bundle that has come here since this member started."""

    def snapshot(self) -> bytes:
        """The whole state. Only ever read back by `restore`, from a file of this member's own."""
        return dump({name: getattr(self, name) for name in _KEPT})

    @classmethod
    def restore(cls, snapshot: bytes) -> Self:
        state = cls.__new__(cls)
        for name, value in load(snapshot).items():
            setattr(state, name, value)
        for link in state.links.values():
            link.cut()
        state.attach()
        return state

    # What the host asks.

    def take_up_to(self, position: int) -> None:
        """The application has taken everything up to this position."""
        while self.queue and self.queue[0].end <= position:
            self.took(self.queue.popleft())
        if self.queue and self.queue[0].position <= position:
            self.queue[0] = self.queue[0].after(position)

    def took(self, bundle: Bundle) -> None:
        self.taken[bundle.origin] += bundle.cost
        if bundle.origin == self.stack.me:
            self.standing.took(self.stack.me, self.taken[self.stack.me])
