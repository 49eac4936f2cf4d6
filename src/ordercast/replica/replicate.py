"""`ordercast.replicate`: from a few words to a replica of a program's state."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from ordercast.errors import UsageError
from ordercast.replica.checkpoint import Checkpoint
from ordercast.replica.generation import House
from ordercast.replica.keeping import Keeping, Kept
from ordercast.replica.life import Life
from ordercast.replica.machine import Machine, saved
from ordercast.replica.replica import Replica
from ordercast.replica.rolls import first
from ordercast.replica.seeking import Entry
from ordercast.runtime.discovery import (
    Address,
    DiscoveryError,
    Peers,
    Presence,
    check_reachable,
)
from ordercast.runtime.entrance import Entrance
from ordercast.runtime.settings import Settings
from ordercast.runtime.surroundings import surroundings
from ordercast.runtime.wishes import check_wishes

__all__ = ["replicate"]

logger = logging.getLogger(__name__)

KNOCK_S_MIN, KNOCK_S_MAX = 0.1, 1.0
"""How long to wait before knocking again: longer each time."""
WINDOW_BYTES = 64 * 2**20
"""A replica that has more to catch up with than that gets the state instead."""


@contextlib.asynccontextmanager
async def replicate(
    group: str,
    machine: Machine,
    *,
    me: str,
    peers: Peers | None = None,
    via: str | Iterable[str] | None = None,
    listen: str | None = None,
    keys: Path | str | None = None,
    insecure: bool = False,
    journal: Path | str | None = None,
    sync: Literal["write", "disk"] = "write",
    trace: Path | str | None = None,
    timeout_s: float = 60.0,
    on_progress: Callable[[Presence], None] | None = None,
    on_change: Callable[[tuple[str, ...]], object] | None = None,
    settings: Settings | None = None,
) -> AsyncIterator[Replica]:
    """Keep a program's state in step with that on other machines, for as long as the block lasts.

    Any minority of the members may crash at any time, and the others go on. Members may come and
    go: whoever finds a running group becomes a member of it, and gets the state.

    group, me     the group's name, and this member's
    machine       the state: an object with `apply`, `save` and `load`
    peers         who begins, as in `join`: the members of the first generation, this one included
    via           to join a group that runs: "host:port" of any of its members, or several. With
                  `peers` as well, it is joined if it runs there, and else begun
    listen        "host:port" or a host, if not where `peers` says
    keys          the directory of this member's certificates: mutual TLS. Whoever has one of this
                  group may become a member
    insecure      plain TCP between hosts, on purpose, so without keys; on one machine it is plain
                  without a word
    journal       a directory that brings the replica back after a kill. Without one it comes back
                  as a newcomer, and gets the state from the others
    sync          what the journal outlives: "write" a kill, "disk" a power loss too
    trace         a directory for logs that `ordercast verify` judges, one for each generation
    timeout_s     how long to wait for the others, or to be let in
    on_progress   called with a `Presence` whenever somebody has come, at the very first start
    on_change     called with the members' names when they have changed, at the same place in the
                  order of commands everywhere
    settings      what may be tuned: `ordercast.Settings`
    """
    check_wishes(
        listen=listen,
        keys=keys,
        insecure=insecure,
        journal=journal,
        sync=sync,
        replay_from=None,
        trace=trace,
        timeout_s=timeout_s,
        on_progress=on_progress,
        settings=settings,
    )
    seeds = _seeds(via)
    _check_what_only_replicas_wish(peers, seeds, on_change)
    _check_machine(machine)
    async with contextlib.AsyncExitStack() as stack:
        keeping = _opened(stack, journal, sync) if journal is not None else None
        found = keeping.newest(group=group, me=me) if keeping is not None else None
        if found is None and peers is not None:
            _check_save(machine)
        token = _token(keeping)
        where = peers if peers is not None else f"via:{','.join(map(str, seeds))}?size=1"
        entrance = Entrance(group, me, where, listen=listen, keys=keys, insecure=insecure)
        stack.push_async_callback(entrance.shut)
        house = House(
            entrance.door,
            life=token,
            keeping=keeping,
            settings=settings or Settings(window_bytes=WINDOW_BYTES),
            trace=Path(trace) if trace is not None else None,
            check_private=entrance.check_private,
        )
        life = Life(house, machine, on_change=on_change)
        life.seeker.seeds |= dict.fromkeys(seeds)
        house.listed = dict(entrance.finder.known)
        if found is not None:
            entry = await _back(life, entrance, *found, timeout_s)
            found = None  # the state in it may be large, and is needed only once
        elif peers is None:
            check_reachable(await entrance.open_door())
            entry = await _let_in(life, timeout_s)
        else:
            entry = await _founded(life, entrance, timeout_s, on_progress)
        entrance.check_private(Address.parse(seat.address) for seat in entry.roll.seats.values())
        await _begun(stack, life, entry)
        await life.founded(timeout_s, on_progress)
        yield Replica(life)


# Where a replica begins.


async def _back(
    life: Life, entrance: Entrance, kept: Kept, checkpoint: Checkpoint | None, timeout_s: float
) -> Entry:
    """Where it was, as its journal has it."""
    others = [where for name, where in entrance.finder.known.items() if name != life.me]
    await entrance.open_door()
    life.seeker.seeds |= dict.fromkeys(others)
    entry = Entry(kept.roll, checkpoint, kept=True)
    if checkpoint is None and kept.roll.generation > 1:  # it could not be saved
        return await _completed(life, entry, timeout_s)
    return entry


async def _founded(
    life: Life,
    entrance: Entrance,
    timeout_s: float,
    on_progress: Callable[[Presence], None] | None,
) -> Entry:
    """The first generation; a later one, if the group has been running without us."""
    told = on_progress if entrance.finder.names is None else None
    membership = await entrance.open(timeout_s=timeout_s, on_progress=told)
    others = [where for name, where in membership.addresses.items() if name != life.me]
    life.seeker.seeds |= dict.fromkeys(others)
    if await life.seeker.newest(life.seeker.seeds, wants=False) is not None:
        return await _let_in(life, timeout_s)
    return Entry(first(membership.addresses))


async def _let_in(life: Life, timeout_s: float) -> Entry:
    """Knock until there is a seat for us. From when the state was tried there is as much time anew:
    it has to come again, and who gives up then has a seat already."""
    pause_s, told, tried = KNOCK_S_MIN, "", False
    try:
        async with asyncio.timeout(timeout_s) as limit:
            while True:
                entry = await life.seeker.enter(life.seeker.seeds, wants=True)
                if entry is not None:
                    return entry
                if life.seeker.tried is not None and not tried:
                    tried = True
                    limit.reschedule(life.loop.time() + timeout_s)
                if pause_s >= KNOCK_S_MAX and life.seeker.trouble != told:
                    told = life.seeker.trouble
                    logger.warning("%s is not let in yet: %s", life.me, told)
                await asyncio.sleep(pause_s)
                pause_s = min(1.5 * pause_s, KNOCK_S_MAX)
    except TimeoutError:
        where = ", ".join(map(str, life.seeker.seeds))
        raise DiscoveryError(
            f"after {timeout_s:g} s {life.me} has not been let in at {where}: {life.seeker.trouble}"
        ) from None


async def _completed(life: Life, entry: Entry, timeout_s: float) -> Entry:
    """With the state, which somebody else may have."""
    places = [Address.parse(seat.address) for seat in entry.roll.seats.values()]
    try:
        async with asyncio.timeout(timeout_s):
            while True:
                given = await life.seeker.fetch(entry.roll.generation, places)
                if given is not None:
                    return replace(entry, checkpoint=given.checkpoint)
                await asyncio.sleep(KNOCK_S_MAX)
    except TimeoutError:
        raise DiscoveryError(
            f"after {timeout_s:g} s {life.me} has not got the state: {life.seeker.trouble}"
        ) from None


# What `replicate` begins with, and what it looks at before.


def _opened(
    stack: contextlib.AsyncExitStack, journal: Path | str, sync: Literal["write", "disk"]
) -> Keeping:
    """Until the stack is closed, or this process is killed."""
    keeping = Keeping(Path(journal), sync=sync if surroundings().threads else "write")
    surroundings().on_kill(keeping.close)
    stack.callback(keeping.close)
    return keeping


def _token(keeping: Keeping | None) -> str:
    """Of this replica's life: whoever has kept nothing begins another one."""
    fresh = surroundings().token()
    return fresh if keeping is None else keeping.life(fresh)


async def _begun(stack: contextlib.AsyncExitStack, life: Life, entry: Entry) -> None:
    """Returns when it takes part; it goes on until the stack is closed."""
    ready = asyncio.get_running_loop().create_future()
    running = asyncio.create_task(life.run(entry, ready))
    stack.push_async_callback(life.close)
    stack.push_async_callback(_stop, running)
    await ready


async def _stop(running: asyncio.Task[None]) -> None:
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def _check_what_only_replicas_wish(
    peers: Peers | None, seeds: list[Address], on_change: object
) -> None:
    """Whatever `join` is asked for as well has been looked at."""
    if peers is None and not seeds:
        raise UsageError("say who begins, with peers=, or where a group runs, with via=")
    if on_change is not None and not callable(on_change):
        raise UsageError(f"on_change={on_change!r}: give a function, which gets the members' names")


def _check_machine(machine: object) -> None:
    """A slip would otherwise show late, and on every replica at once."""
    if isinstance(machine, type):
        raise UsageError(f"{machine.__name__} is a class: give an object of it")
    for name in ("apply", "save", "load"):
        method = getattr(machine, name, None)
        if not callable(method):
            raise UsageError(f"{machine!r} has no {name}(): a machine has apply, save and load")
        if inspect.iscoroutinefunction(method):
            raise UsageError(f"{name}() of {machine!r} is a coroutine: it has to be a function")


def _check_save(machine: Machine) -> None:
    """Of one who begins: it would otherwise show when somebody else needs the state."""
    try:
        saved(machine)
    except Exception as error:
        raise UsageError(
            f"the state of {machine!r} cannot be saved ({type(error).__name__}: {error}): save() "
            "has to give it as bytes, from the beginning"
        ) from error


def _seeds(via: str | Iterable[str] | None) -> list[Address]:
    if via is None:
        return []
    texts = via.split(",") if isinstance(via, str) else via
    if not isinstance(texts, Iterable) or not all(isinstance(text, str) for text in texts):
        raise UsageError(f"via={via!r}: give 'host:port', or several of them")
    return [Address.parse(text) for text in texts]
