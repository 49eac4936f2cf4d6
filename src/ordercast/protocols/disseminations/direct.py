"""Perfect point-to-point links: one copy to each destination, whoever they are.

Guarantees  each destination receives what a sender that stays up has sent; each message once.
Assumes     perfect links.
Costs       one copy per remote destination, one network delay.
Permits     a sender that crashes in the middle reaches some and not the others.

    on spread(m) to Q:      transmit m to every q in Q but oneself; if i is in Q, m arrives here
    on receive(m) from j:   m arrives
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ordercast.protocols.effects import Arrive, Effect, Transmit
from ordercast.protocols.interface import Dissemination

__all__ = ["Direct"]


class Direct(Dissemination):
    @staticmethod
    def packets(items: Any) -> Any:
        return items

    def spread(self, item: Any, to: tuple[int, ...] | None) -> Iterable[Effect]:
        to = tuple(range(self.size)) if to is None else to
        remote = tuple(process for process in to if process != self.me)
        if remote:
            yield Transmit(remote, item)
        if self.me in to:
            yield Arrive(self.me, item)

    def receive(self, source: int, packet: Any) -> Iterable[Effect]:
        return [Arrive(source, packet)]
