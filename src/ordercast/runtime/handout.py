"""What was delivered, on its way to the application, which takes it when it likes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordercast.runtime.bundle import Bundle

if TYPE_CHECKING:
    from ordercast.runtime.node import Node

__all__ = ["Handout"]


class Handout:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._core = node.core
        self._journal = node.journal
        self.visible = 0
        """The position up to which deliveries may be handed to the application."""
        self.bundles_taken = 0

    def next_bundle(self) -> Bundle | None:
        """What the application may take now; it stays here until it `took` all of it. Nothing once
        a member that remembers has left: that is for its next life."""
        queue = self._core.queue
        if not queue or queue[0].end > self.visible:
            return None
        return None if self._journal is not None and self._node.closed else queue[0]

    def took(self, bundle: Bundle) -> None:
        """The application has taken the last message of the bundle."""
        taken = self._core.queue.popleft()
        assert taken is bundle
        self._core.took(bundle)
        self.bundles_taken += 1
        if bundle.origin == self._node.me:
            self._node.wake()
            self._node.outgoing.came_back()
        else:
            self._node.turn.took(bundle.origin)

    def give(self, bundle: Bundle) -> None:
        """The application gets all of a bundle now, and is never handed it again."""
        self.took(bundle)
        if self._journal is not None:
            self._journal.mark(bundle.end)

    def ticks(self, bundle: Bundle) -> memoryview | None:
        """Where it is remembered that messages of a bundle are taken one by one: store a 1 at the
        place of each. None if nobody remembers it."""
        if self._journal is None:
            return None
        return self._journal.ticks(bundle.position - 1, len(bundle.payloads))
