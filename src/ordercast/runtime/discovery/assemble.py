"""Wait until every member is known."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct

from ordercast.errors import UsageError
from ordercast.runtime.discovery.address import Address, words
from ordercast.runtime.discovery.finder import DiscoveryError, Finder
from ordercast.runtime.keys import check_name

__all__ = ["Membership", "Presence", "assemble", "looked", "withdraw"]

logger = logging.getLogger(__name__)

POLL_S = 0.2
WITHDRAW_TIMEOUT_S = 2.0


class Presence(Struct, frozen=True):
    """How far it is."""

    names: tuple[str, ...]
    """Who is known."""
    size: int
    missing: tuple[str, ...]
    """Who is not, as far as the names are known beforehand."""

    @property
    def present(self) -> int:
        return len(self.names)

    def __str__(self) -> str:
        return f"{self.present} of {self.size} present"


class Membership(Struct, frozen=True):
    names: tuple[str, ...]
    """Sorted: the index of a process is its place among them."""
    addresses: Mapping[str, Address]


async def assemble(
    finder: Finder,
    *,
    me: str,
    address: Address,
    timeout_s: float,
    poll_s: float = POLL_S,
    on_progress: Callable[[Presence], None] | None = None,
    clock: Callable[[], float] | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    remembered: Mapping[str, Address] | None = None,
) -> Membership:
    """Announce oneself, and look until everyone is known.

    `on_progress` is told whenever somebody has come or gone. Whoever fails withdraws. If all are
    `remembered`, one look is enough, unless it finds somebody else.
    """
    clock = clock or asyncio.get_running_loop().time
    check_name(me)
    if not timeout_s > 0:
        raise UsageError(f"a timeout of {timeout_s} s: choose more than 0")
    deadline = clock() + timeout_s
    now = Presence((me,), finder.size, ())
    told: Presence | None = None
    trouble = ""
    try:
        async with asyncio.timeout(timeout_s) as limit:  # for a finder that hangs
            await finder.announce(me, address)
            while True:
                try:
                    found, trouble = {me: address} | await looked(finder), ""
                except OSError as error:  # it may be there again before long
                    found, trouble = {me: address} | finder.known, words(error)
                now = _presence(finder, found)
                if now != told and on_progress is not None:
                    on_progress(now)
                told = now
                if remembered and found.keys() <= remembered.keys():
                    found = {**remembered, **found}
                if len(found) == finder.size:
                    return Membership(tuple(sorted(found)), found)
                if clock() + poll_s > deadline:
                    raise DiscoveryError(_too_late(now, timeout_s, trouble or finder.trouble))
                await sleep(poll_s)
    except BaseException as error:
        await withdraw(finder)
        if isinstance(error, TimeoutError) and limit.expired():
            raise DiscoveryError(_too_late(now, timeout_s, trouble or finder.trouble)) from None
        raise


async def withdraw(finder: Finder) -> None:
    """Within bounds, and whatever comes of it: it is the last thing that is done."""
    try:
        async with asyncio.timeout(WITHDRAW_TIMEOUT_S):
            await finder.withdraw()
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        logger.warning("%s.withdraw() failed: %s", type(finder).__name__, why)


async def looked(finder: Finder) -> dict[str, Address]:
    """What it has found, if it can be that."""
    found: object = await finder.look()
    if isinstance(found, dict) and all(isinstance(each, Address) for each in found.values()):
        return found
    raise UsageError(f"{type(finder).__name__}.look() gave {found!r}: names with an Address each")


def _presence(finder: Finder, found: Mapping[str, Address]) -> Presence:
    names = tuple(sorted(found))
    if finder.names is not None and (unknown := sorted(set(names) - set(finder.names))):
        raise DiscoveryError(
            f"{', '.join(unknown)}: not among the members {', '.join(finder.names)}"
        )
    if len(names) > finder.size:
        raise DiscoveryError(
            f"the group has {finder.size} members, and these are {len(names)}: {', '.join(names)}"
        )
    owners: dict[Address, str] = {}
    for name in names:
        if (other := owners.setdefault(found[name], name)) != name:
            raise DiscoveryError(f"{other!r} and {name!r} cannot both be at {found[name]}")
    missing = tuple(name for name in finder.names or () if name not in found)
    return Presence(names, finder.size, missing)


def _too_late(now: Presence, timeout_s: float, trouble: str) -> str:
    missing = ", ".join(now.missing) or f"{now.size - now.present} more"
    why = f" ({trouble})" if trouble else ""
    known = ", ".join(now.names)
    return f"{now} after {timeout_s:g} s: {known}; still missing: {missing}{why}"
