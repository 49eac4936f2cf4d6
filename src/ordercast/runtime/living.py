"""A member and what it is made of: memory, core, node. Each ends when and where it should."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Literal

from ordercast.errors import OrdercastError, UsageError
from ordercast.protocols.stack import Stack
from ordercast.runtime.core import Core
from ordercast.runtime.door import Door
from ordercast.runtime.memory import Memory
from ordercast.runtime.node import Node
from ordercast.runtime.settings import Settings
from ordercast.runtime.surroundings import surroundings
from ordercast.runtime.weather import Weather
from ordercast.trace.span_log import SpanLog

__all__ = ["living"]

_TAKEN = (
    "{directory} already has the trace of an earlier {name}, and this one, which comes back from "
    "no journal, would number its messages from 1 again: choose another trace directory"
)


@contextlib.asynccontextmanager
async def living(
    build: Callable[[], Stack],
    *,
    door: Door,
    names: tuple[str, ...],
    charter: str,
    settings: Settings,
    log: SpanLog | None,
    journal: Path | None = None,
    sync: Literal["write", "disk"] = "write",
    replay_from: int | None = None,
    weather: Weather | None = None,
    on_presence: Callable[[tuple[int, ...]], object] | None = None,
    seed: int = 0,
    flush_s: float = 1.0,
    life: str | None = None,
    lives: Mapping[int, str] | None = None,
) -> AsyncIterator[tuple[Node, bool]]:
    """The node, started, and whether it goes on where its journal ends.

    `build` makes the protocol of a member that knows nothing yet; `flush_s` is how long it stays
    at the end for what it has sent. Its `life` and those of the others are given where it has been
    agreed who may come.
    """
    around = surroundings()
    with contextlib.ExitStack() as stack:
        memory, core = None, None
        if journal is not None:
            memory = stack.enter_context(
                Memory(
                    journal,
                    identity={"group": door.group, "member": door.name, "charter": charter},
                    sync=sync if around.threads else "write",
                    segment_bytes=settings.segment_bytes,
                    keep_bytes=settings.keep_bytes,
                )
            )
            around.on_kill(partial(_put_down, memory, log))
            core = await memory.recall(log, replay_from=replay_from)
        recovered = core is not None
        if core is None:
            if log is not None and log.position:
                raise UsageError(_TAKEN.format(directory=log.directory, name=door.name))
            core = Core(build(), life=life or around.token())
            core.lives |= lives or {}
            if memory is not None:
                memory.begin(core)
        node = Node(
            core,
            door=door,
            names=names,
            charter=charter,
            settings=settings,
            journal=memory.journal if memory is not None else None,
            log=log,
            weather=weather,
            on_presence=on_presence,
            seed=seed,
        )
        if memory is not None:
            memory.on_failure = node.fail
        node.pulse.log = log
        around.on_kill(partial(_forget, node, memory, log))
        try:
            node.start(recovered=recovered)
            yield node, recovered
        finally:
            try:
                await node.aclose(flush_s=flush_s)
            finally:
                if memory is not None:
                    await memory.closed()


def _forget(node: Node, memory: Memory | None, log: SpanLog | None) -> None:
    """What is left of a member that was killed does nothing, and has no file open any more."""
    node.fail(OrdercastError("this process was killed"))
    _put_down(memory, log)


def _put_down(memory: Memory | None, log: SpanLog | None) -> None:
    if memory is not None:
        memory.close()
    if log is not None:
        log.close()
