"""Starts a group of real processes on this machine, lets them exchange messages, waits until the
group is at rest, ends everything, and leaves one trace.

However this ends (rest, timeout, cancellation, an error), no process, port or temporary file is
left, and what happened so far is in the trace. If the launcher itself is killed, so are the
members, also those that stand still (see `leash`); their logs stay in `members/`.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import shutil
import time
from collections import ChainMap
from collections.abc import Callable, Iterator
from pathlib import Path

from ordercast.errors import OrdercastError, UsageError
from ordercast.protocols import catalog
from ordercast.runtime.child import Child
from ordercast.runtime.collect import Tally, collect, manifest_of
from ordercast.runtime.crew import Crew
from ordercast.runtime.looks import Audience
from ordercast.runtime.plan import MemberOutcome, Outcome, Plan, Progress
from ordercast.trace import Manifest, TraceWriter
from ordercast.trace.directory import MANIFEST

__all__ = ["launch"]

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)

logger = logging.getLogger(__name__)


async def launch(
    plan: Plan,
    *,
    directory: Path,
    progress: Callable[[Progress], None] | None = None,
    audience: Audience | None = None,
    reader: Callable[[Manifest, set[int]], None] | None = None,
) -> Outcome:
    """Run the plan. Cancelling ends the members and still writes the trace, as not at rest.

    A live run needs an audience: it goes on until there, somebody says that it is enough.
    `reader` is told how the run ended and who crashed, before the members' logs are removed.
    """
    plan.check()
    started = time.monotonic()
    logs = directory / "members"
    with _full_disks_told(directory):
        trace = _writer(directory)
    with _full_disks_told(directory), _kept_until_written(logs), trace as writer:
        logs.mkdir()
        crew = Crew(plan, logs, progress or (lambda step: None), audience)
        obstacle: str | None = "it was interrupted"
        try:
            obstacle = await _run(plan, crew)
        finally:
            try:
                await crew.dismiss()
            finally:  # a second Ctrl-C may have cut the dismissal short; not the trace
                tallies = [
                    collect(
                        logs,
                        writer,
                        run=plan.run,
                        process=me,
                        crashed=child.crashed,
                        ends_us=child.ends_us,
                    )
                    for me, child in enumerate(crew.children)
                ]
                crashed = crew.crashed
                who = {crash.process for crash in crashed}
                undelivered = _undelivered(plan, crew, who) if obstacle is None else None
                manifest = manifest_of(
                    plan,
                    quiesced=obstacle is None,
                    crashed=who,
                    happened=crew.happened,
                    undelivered=undelivered,
                    partings=crew.network.partings if crew.network is not None else (),
                    payloads=dict(ChainMap(*(tally.payloads for tally in tallies))),
                )
                writer.add_manifest(manifest)
                duration_s = time.monotonic() - started
                if reader is not None:
                    reader(manifest, who)
    return Outcome(
        directory=directory,
        quiesced=obstacle is None,
        obstacle=obstacle,
        members=tuple(map(_outcome, crew.children, tallies)),
        undelivered=undelivered,
        crashed=crashed,
        killed=frozenset(crew.killed & who),
        happened=crew.happened,
        traffic=crew.network.traffic if crew.network is not None else None,
        duration_s=duration_s,
    )


def _writer(directory: Path) -> TraceWriter:
    """Nothing has happened yet: what is in the way is told as such."""
    try:
        return TraceWriter(directory)
    except (FileExistsError, NotADirectoryError):
        file = next((p for p in (directory, *directory.parents) if p.is_file()), directory)
        raise UsageError(
            f"no trace can be written to {directory}: {file} is a file: name a directory"
        ) from None
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise
        raise UsageError(
            f"no trace can be written to {directory}: {error.strerror}: name another directory"
        ) from None


@contextlib.contextmanager
def _kept_until_written(logs: Path) -> Iterator[None]:
    """Members' logs go when the trace is whole; before that, they are all there is."""
    try:
        yield
    finally:
        if (logs.parent / MANIFEST).exists():
            shutil.rmtree(logs)


@contextlib.contextmanager
def _full_disks_told(directory: Path) -> Iterator[None]:
    """Where the trace cannot be written, the members' logs stay: nobody has removed them then."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        words = (
            f"{directory}: the trace cannot be written: {os.strerror(error.errno)}; what members "
            f"wrote is in {directory / 'members'}"
        )
        task = asyncio.current_task()
        if task is not None and task.cancelling():  # nobody is there to catch it
            logger.error(words)
            raise asyncio.CancelledError from None
        raise OrdercastError(words) from None


def _outcome(child: Child, tally: Tally) -> MemberOutcome:
    held_max = child.counters.held_max if child.counters is not None else 0
    return MemberOutcome(tally.sent, tally.delivered, held_max)


def _undelivered(plan: Plan, crew: Crew, gone: set[int]) -> str | None:
    """Where nothing moves any more, whatever is held is held for good."""
    living = (child.counters for child in crew.children if child.index not in gone)
    why = catalog.forsaken(plan.ordering, gone)
    if why is None or not any(counters is not None and counters.held for counters in living):
        return None
    return f"{why}: what the others still held was never delivered"


async def _run(plan: Plan, crew: Crew) -> str | None:
    """Until the group is at rest, or the reason why it is not."""
    try:
        async with asyncio.timeout(plan.timeout_s) as patience:
            if not await crew.assemble():
                return "a member ended before the group was whole"
            await crew.come_to_rest(patience)
    except TimeoutError:
        return f"its time of {plan.timeout_s:g} s was up"
    left = plan.processes - len(crew.crashed)
    return catalog.too_few(plan.ordering, plan.dissemination, plan.processes, left)
