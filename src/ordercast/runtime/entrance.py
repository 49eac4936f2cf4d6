"""How a member comes to its group: an open door, and word of who the others are and where."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from ordercast.errors import OrdercastError, UsageError
from ordercast.runtime.discovery import (
    Address,
    Membership,
    Peers,
    Presence,
    assemble,
    looked,
    parse_peers,
)
from ordercast.runtime.discovery.remembered import recall, remember
from ordercast.runtime.door import Door
from ordercast.runtime.keys import Credentials, check_name
from ordercast.runtime.node import HOST

__all__ = ["Entrance"]

_PORTLESS = re.compile(r"[0-9]+\.[0-9.]+|[A-Za-z][A-Za-z0-9.-]*")


class Entrance:
    def __init__(
        self,
        group: str,
        me: str,
        peers: Peers,
        *,
        listen: str | None,
        keys: Path | str | None,
        insecure: bool,
    ) -> None:
        """Nothing is opened yet; whatever can be said to be wrong by now is."""
        check_name(group, "group")
        credentials = Credentials.load(keys, group=group, me=me) if keys is not None else None
        self.door = Door(group, me, credentials=credentials)
        self.finder = self.door.finder = parse_peers(peers, ask=self.door.ask)
        self._me = me
        self._own = _listen_at(listen, self.finder.known.get(me), self.finder.port)
        self._private = credentials is not None or insecure
        self.check_private([self._own])

    async def open(
        self,
        *,
        timeout_s: float,
        on_progress: Callable[[Presence], None] | None,
        journal: Path | None = None,
    ) -> Membership:
        """Returns when it is known who the members are; a `journal` may remember that."""
        return await assemble(
            self.finder,
            me=self._me,
            address=await self.open_door(),
            timeout_s=timeout_s,
            on_progress=on_progress,
            remembered=recall(journal, self.finder.size) if journal is not None else None,
        )

    async def open_door(self) -> Address:
        """Where others reach us from now on."""
        bound = await self.door.open(*self._own)
        self.door.address = self.finder.known.get(self._me, bound)
        return self.door.address

    def keep(self, membership: Membership, journal: Path) -> None:
        """For the next life. Who is in a list need not be remembered."""
        if self.finder.names is None:
            remember(journal, membership.addresses)

    async def locate(self, name: str) -> Address | None:
        """Where a member is by now, if it can be found out; dialling goes on in any case."""
        with contextlib.suppress(OrdercastError, OSError):
            return (await looked(self.finder)).get(name)
        return None

    async def shut(self) -> None:
        self.door.close()
        await self.door.wait_closed()

    def check_private(self, addresses: Iterable[Address]) -> None:
        """Plain TCP is for one machine; whatever leaves it is encrypted, or it was asked for."""
        for address in addresses:
            if not (self._private or address.is_loopback):
                raise UsageError(
                    f"{address if address.port else address.host} is not on this machine, and "
                    "without keys everything would travel in the clear: make keys with 'ordercast "
                    "keys' and give their directory as keys, or set insecure to go without"
                )


def _listen_at(listen: str | None, listed: Address | None, port: int | None) -> Address:
    """Where to open the door: as told, or as listed, or anywhere on this machine alone, where the
    others do not look for all members on one `port`."""
    if listen is None and listed is None and port is not None:
        raise UsageError(
            f"behind a DNS name all members listen on one port, here {port}, each at an address of "
            "its own: give listen, the one of this member behind that name, such as '10.0.0.1'"
        )
    if listen is None:
        return listed or Address(HOST, 0)
    if _PORTLESS.fullmatch(listen):
        return Address.parse(f"{listen}:1")._replace(port=port or 0)
    return Address.parse(listen)
