"""`ordercast.join`: from a few words to a running member of a group."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Literal

from ordercast.errors import OrdercastError, UsageError
from ordercast.protocols import catalog
from ordercast.runtime.discovery import (
    Address,
    DiscoveryError,
    Finder,
    Membership,
    Peers,
    Presence,
    assemble,
    parse_peers,
)
from ordercast.runtime.door import Door
from ordercast.runtime.group import Group
from ordercast.runtime.keys import Credentials, check_name
from ordercast.runtime.living import living
from ordercast.runtime.logs import about
from ordercast.runtime.node import HOST, Node
from ordercast.runtime.settings import Settings
from ordercast.trace import Manifest
from ordercast.trace.spans import SpanLog

__all__ = ["join"]

_PORTLESS = re.compile(r"[0-9.]+|[A-Za-z][A-Za-z0-9.-]*")

logger = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def join(
    group: str,
    *,
    me: str,
    peers: Peers,
    order: str = "causal",
    reliability: str | None = None,
    listen: str | None = None,
    keys: Path | str | None = None,
    insecure: bool = False,
    journal: Path | str | None = None,
    sync: Literal["write", "disk"] = "write",
    replay_from: int | None = None,
    trace: Path | str | None = None,
    timeout_s: float = 60.0,
    on_progress: Callable[[Presence], None] | None = None,
    settings: Settings | None = None,
) -> AsyncIterator[Group]:
    """Be a member of a group for as long as the block lasts.

    `order` is a word people know (`fifo`, `causal`, `total`, …) or an ordering of the catalog;
    `reliability` is `best_effort`, `reliable`, `uniform` or a dissemination of the catalog, and by
    default the strongest that goes with the order. `peers` says who the others are or how to find
    them. Returns when all members are there; a member that comes back with its `journal` does not
    wait for anyone. By default a member without a journal is given up when it has been away for
    half a minute, since it could not come back, and one with a journal is waited for.
    """
    if replay_from is not None and journal is None:
        raise UsageError("without a journal there is nothing to replay: give journal=DIR as well")
    ordering, dissemination = catalog.choose(order, reliability)
    check_name(group, "group")
    credentials = Credentials.load(keys, group=group, me=me) if keys is not None else None
    door = Door(group, me, credentials=credentials)
    finder = door.finder = parse_peers(peers, ask=door.ask)
    settings = settings or Settings()
    own = _listen_at(listen, finder.known.get(me))
    _check_private([own], credentials, insecure=insecure)
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(_shut, door)
        bound = await door.open(*own)
        door.address = finder.known.get(me, bound)
        # Who is in a list is not there for that.
        found = on_progress if finder.names is None else None
        membership = await assemble(
            finder, me=me, address=door.address, timeout_s=timeout_s, on_progress=found
        )
        stack.push_async_callback(finder.withdraw)
        _check_private(membership.addresses.values(), credentials, insecure=insecure)
        charter = _charter(ordering, dissemination, membership)
        index = membership.names.index(me)
        log = None
        if trace is not None:
            manifest = _manifest(group, membership, ordering, dissemination)
            log = stack.enter_context(
                SpanLog(Path(trace), me, run=group, process=index, manifest=manifest)
            )
        node, recovered = await stack.enter_async_context(
            living(
                lambda: catalog.build(ordering, dissemination, index, len(membership.names)),
                door=door,
                names=membership.names,
                charter=charter,
                settings=settings,
                log=log,
                journal=Path(journal) if journal is not None else None,
                sync=sync,
                replay_from=replay_from,
            )
        )
        addresses = {i: membership.addresses[name] for i, name in enumerate(membership.names)}
        node.dial(addresses, partial(_locate, finder))
        if not recovered:
            await _until_all_are_there(node, timeout_s, None if found else on_progress)
        algorithm = f"{ordering} over {dissemination}"
        logger.info("%s: joined %r: %s", me, group, algorithm, extra=about("joined", me))
        uniform = catalog.DISSEMINATIONS[dissemination].reliability == "uniform"
        async with Group(node, name=group, algorithm=algorithm, uniform=uniform) as joined:
            yield joined


async def _shut(door: Door) -> None:
    door.close()
    await door.wait_closed()


async def _locate(finder: Finder, name: str) -> Address | None:
    """Where a member is by now, if it can be found out; dialling goes on in any case."""
    with contextlib.suppress(OrdercastError, OSError):
        return (await finder.look()).get(name)
    return None


def _listen_at(listen: str | None, listed: Address | None) -> Address:
    """Where to open the door: as told, or as listed, or anywhere on this machine alone."""
    if listen is None:
        return listed or Address(HOST, 0)
    return Address(listen, 0) if _PORTLESS.fullmatch(listen) else Address.parse(listen)


def _check_private(
    addresses: Iterable[Address], credentials: Credentials | None, *, insecure: bool
) -> None:
    """Plain TCP is for one machine; whatever leaves it is encrypted, or it was asked for."""
    if credentials is not None or insecure:
        return
    for address in addresses:
        if not address.is_loopback:
            raise UsageError(
                f"{address} is not on this machine, and without keys everything would travel in "
                "the clear: make keys with 'ordercast keys' and give keys=DIR, or insecure=True"
            )


def _charter(ordering: str, dissemination: str, membership: Membership) -> str:
    """What all members have to agree on, in a few words and a digest."""
    names = "\n".join(membership.names).encode()
    digest = hashlib.sha256(names).hexdigest()[:8]
    return f"{ordering} over {dissemination}, {len(membership.names)} members ({digest})"


def _manifest(group: str, membership: Membership, ordering: str, dissemination: str) -> Manifest:
    promises = catalog.promises(ordering, dissemination, crashes=True)
    return Manifest(
        group,
        membership.names,
        order=ordering,
        dissemination=dissemination,
        extra={"promises": list(promises)},
    )


async def _until_all_are_there(
    node: Node, timeout_s: float, on_progress: Callable[[Presence], None] | None
) -> None:
    """Connected, that is: until now they are only known."""
    told: Presence | None = None

    def presence() -> Presence:
        here = tuple(node.names[index] for index in sorted((node.me, *node.present)))
        missing = tuple(name for name in node.names if name not in here)
        return Presence(here, len(node.names), missing)

    try:
        async with asyncio.timeout(timeout_s):
            while True:
                now = presence()
                if now != told and on_progress is not None:
                    on_progress(now)
                told = now
                if not now.missing:
                    return
                node.check_alive()
                for name, reason in node.refusals.items():
                    raise DiscoveryError(f"{name} does not let {node.name} in: {reason}")
                await node.wait()
    except TimeoutError:
        raise DiscoveryError(
            f"after {timeout_s:g} s there is no connection with {', '.join(presence().missing)}: "
            "is it running, and is it at the address that it was found at?"
        ) from None
