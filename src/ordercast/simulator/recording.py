"""A simulated run as a trace in memory: for a notebook, for a test, for a question."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ordercast.protocols import catalog
from ordercast.simulator.plan import Plan
from ordercast.simulator.run import Ending, simulate
from ordercast.simulator.world import Narrator
from ordercast.trace.directory import Trace
from ordercast.trace.event import Event
from ordercast.trace.manifest import Manifest
from ordercast.trace.waits import write_waits

__all__ = ["manifest_of", "record", "simulate_named"]


def record(
    plan: Plan,
    *,
    order: str = "causal",
    reliability: str | None = "best_effort",
    threshold: int | None = None,
    run: str = "simulated",
) -> Trace:
    """Run a plan to its end. `order` and `reliability` are those of `ordercast.join`.

    The same plan gives the same trace. It is small enough for memory; `simulate` hands over the
    events of a larger run one by one.
    """
    ordering, dissemination = catalog.choose(order, reliability)
    events: list[Event] = []
    ending = simulate_named(
        *(plan, ordering, dissemination), threshold=threshold, run=run, write=events.append
    )
    return Trace.of(manifest_of(plan, ending, run, ordering, dissemination), events)


def simulate_named(
    plan: Plan,
    ordering: str,
    dissemination: str,
    *,
    threshold: int | None = None,
    run: str,
    write: Callable[[Event], None],
    narrate: Narrator | None = None,
) -> Ending:
    """`simulate` two algorithms of the catalog, of which it is known how many processes they need:
    a run that has lost its majority has not come to rest, here as between real processes."""
    ending = simulate(
        plan,
        build=lambda me, size: catalog.build(
            ordering, dissemination, me, size, threshold=threshold, seed=plan.seed
        ),
        run=run,
        write=write,
        narrate=narrate,
    )
    obstacle = catalog.too_few(
        *(ordering, dissemination, plan.size, ending.left), threshold=threshold
    )
    return ending if obstacle is None else replace(ending, quiesced=False, obstacle=obstacle)


def manifest_of(
    plan: Plan, ending: Ending, run: str, ordering: str, dissemination: str, **told: str
) -> Manifest:
    """What is known of a run when it is over; `told` is what else a person wants to know, such as
    the command that replays it."""
    promises = catalog.promises(ordering, dissemination, crashes=bool(plan.crashes))
    return Manifest(
        run=run,
        processes=tuple(f"p{process}" for process in range(plan.size)),
        quiesced=ending.quiesced,
        order=ordering,
        dissemination=dissemination,
        extra={
            "seed": plan.seed,
            **told,
            "promises": list(promises),
            "clock": "virtual",
            "waiting": write_waits(ending.waiting),
            "held": write_waits(ending.held),
        },
    )
