"""Best-effort broadcast: one copy to each.

Guarantees  everyone receives what a sender that stays up has sent; each message once.
Assumes     perfect links.
Costs       n-1 copies, one network delay.
Permits     a sender that crashes in the middle reaches some and not the others.

    on spread(m):           transmit m to everyone else; m arrives here
    on receive(m) from j:   m arrives
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ordercast.protocols.effects import Arrive, Effect, Transmit
from ordercast.protocols.interface import Dissemination

__all__ = ["BestEffort"]


class BestEffort(Dissemination):
    destinations = "everyone"

    @staticmethod
    def packets(items: Any) -> Any:
        return items

    def spread(self, item: Any, to: tuple[int, ...] | None) -> Iterable[Effect]:
        assert to is None
        return [Transmit(self.all_but(self.me), item), Arrive(self.me, item)]

    def receive(self, source: int, packet: Any) -> Iterable[Effect]:
        return [Arrive(source, packet)]
