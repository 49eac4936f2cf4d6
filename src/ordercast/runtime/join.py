"""`ordercast.join`: from a few words to a running member of a group."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Literal

from ordercast.protocols import catalog
from ordercast.runtime.dialling import look_up
from ordercast.runtime.discovery import DiscoveryError, Membership, Peers, Presence, withdraw
from ordercast.runtime.entrance import Entrance
from ordercast.runtime.group import Group
from ordercast.runtime.living import living
from ordercast.runtime.logs import about
from ordercast.runtime.node import Node
from ordercast.runtime.recording import open_log
from ordercast.runtime.settings import Settings
from ordercast.runtime.wishes import check_wishes

__all__ = ["join", "why_not"]

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

    Returns when all members are there; a member that comes back with its `journal` does not wait
    for anyone. By default a member without a journal is given up when it has been away for half a
    minute, since it could not come back, and one with a journal is waited for.

    group, me     the group's name, and this member's
    peers         who the others are, as {name: "host:port"} with this member in it, or a TOML file;
                  or how to find them, such as "registry:DIR?size=3"
    order         a word people know (`fifo`, `causal`, `total`, …) or an ordering of the catalog
    reliability   `best_effort`, `reliable`, `uniform`, or a dissemination of the catalog; by
                  default the strongest that goes with the order
    listen        "host:port" or a host, if not where `peers` says
    keys          the directory of this member's certificates: mutual TLS
    insecure      plain TCP between hosts, on purpose, so without keys; on one machine it is plain
                  without a word
    journal       a directory that brings the member back after a kill
    sync          what the journal outlives: "write" a kill, "disk" a power loss too
    replay_from   deliver again from this position on, out of the journal
    trace         a directory for logs that `ordercast verify` judges; all members may share it. One
                  trace is one life of the group: a member that is not back from its journal, and
                  finds rows of its own there, is refused
    timeout_s     how long to wait for the others
    on_progress   called with a `Presence` whenever somebody has come
    settings      what may be tuned: `ordercast.Settings`
    """
    check_wishes(
        listen=listen,
        keys=keys,
        insecure=insecure,
        journal=journal,
        sync=sync,
        replay_from=replay_from,
        trace=trace,
        timeout_s=timeout_s,
        on_progress=on_progress,
        settings=settings,
    )
    algorithm = catalog.choose(order, reliability)
    entrance = Entrance(group, me, peers, listen=listen, keys=keys, insecure=insecure)
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(entrance.shut)
        # Who is in a list is not there for that.
        found = on_progress if entrance.finder.names is None else None
        membership = await entrance.open(
            timeout_s=timeout_s,
            on_progress=found,
            journal=Path(journal) if journal is not None else None,
        )
        stack.push_async_callback(withdraw, entrance.finder)
        entrance.check_private(membership.addresses.values())
        member = _member(
            *(entrance, membership, algorithm, settings or Settings(), trace),
            journal=journal,
            sync=sync,
            replay_from=replay_from,
        )
        node, recovered = await stack.enter_async_context(member)
        if not recovered:
            await _until_all_are_there(node, timeout_s, None if found else on_progress)
        async with _group(node, group, *algorithm) as joined:
            yield joined


@contextlib.asynccontextmanager
async def _member(
    entrance: Entrance,
    membership: Membership,
    algorithm: tuple[str, str],
    settings: Settings,
    trace: Path | str | None,
    *,
    journal: Path | str | None,
    sync: Literal["write", "disk"],
    replay_from: int | None,
) -> AsyncIterator[tuple[Node, bool]]:
    """A node that dials the others, and whether it goes on where its journal ends."""
    group, me, names = entrance.door.group, entrance.door.name, membership.names
    index = names.index(me)
    with contextlib.ExitStack() as stack:
        log = None
        if trace is not None:
            log = stack.enter_context(open_log(Path(trace), me, names, algorithm, run=group))
        async with living(
            lambda: catalog.build(*algorithm, index, len(names)),
            door=entrance.door,
            names=names,
            charter=_charter(*algorithm, membership),
            settings=settings,
            log=log,
            journal=Path(journal) if journal is not None else None,
            sync=sync,
            replay_from=replay_from,
        ) as (node, recovered):
            if journal is not None:
                entrance.keep(membership, Path(journal))
            addresses = {place: membership.addresses[name] for place, name in enumerate(names)}
            node.dial(addresses, entrance.locate)
            yield node, recovered


def _group(node: Node, name: str, ordering: str, dissemination: str) -> Group:
    algorithm = f"{ordering} over {dissemination}"
    logger.info(
        "%s: joined %r: %s",
        node.name,
        name,
        algorithm,
        extra=about("joined", node.name, group=name),
    )
    uniform = catalog.uniform(ordering, dissemination)
    return Group(node, name=name, algorithm=algorithm, uniform=uniform)


def _charter(ordering: str, dissemination: str, membership: Membership) -> str:
    """What all members have to agree on, in a few words and a digest."""
    names = "\n".join(membership.names).encode()
    digest = hashlib.sha256(names).hexdigest()[:8]
    return f"{ordering} over {dissemination}, {len(membership.names)} members ({digest})"


async def _until_all_are_there(
    node: Node, timeout_s: float, on_progress: Callable[[Presence], None] | None
) -> None:
    """Connected, that is: until now they are only known."""
    told: Presence | None = None

    def presence() -> Presence:
        here = tuple(node.names[index] for index in sorted((node.me, *node.company.present)))
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
                if refusals := node.company.refusals:
                    name, reason = next(iter(refusals.items()))
                    raise DiscoveryError(f"{name} does not let {node.name} in: {reason}")
                await node.wait()
    except TimeoutError:
        missing = ", ".join(presence().missing)
        why = await why_not(node)
        raise DiscoveryError(
            f"after {timeout_s:g} s there is no connection with {missing}: {why}"
        ) from None


async def why_not(node: Node) -> str:
    """What stood in the way, as far as it was seen from here."""
    door = node.reception.door
    found: list[str] = []
    if door.last_refused is not None:
        found.append(f"the last one was turned away, since {door.last_refused}")
    elif door.handshakes.last is not None:
        found.append(f"the last one did not become secure: {door.handshakes.last}")
    absent = [peer for peer in node.company if not peer.link.open]
    await asyncio.gather(*map(look_up, absent))
    found += (peer.trouble for peer in absent if peer.trouble is not None)
    return "; ".join(found) or "check that they are running and can reach this member"
