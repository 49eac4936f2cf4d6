"""What became of a group that ran, in a few lines, before anything is judged."""

from __future__ import annotations

from ordercast.cli.words import counted
from ordercast.errors import UsageError
from ordercast.protocols import catalog
from ordercast.runtime.plan import Outcome, Plan

__all__ = ["summary_of"]


def summary_of(plan: Plan, outcome: Outcome) -> str:
    sent = sum(member.sent for member in outcome.members)
    delivered = sum(member.delivered for member in outcome.members)
    held = max((member.held_max for member in outcome.members), default=0)
    rest = "came to rest" if outcome.quiesced else "did not come to rest"
    why = "" if outcome.obstacle is None else f": {outcome.obstacle}"
    came = "1 delivery" if delivered == 1 else f"{delivered} deliveries"
    line = (
        f"{counted(plan.processes, 'process')}, {plan.ordering} over {plan.dissemination}: "
        f"{counted(sent, 'message')} sent, {came}, up to {held} held at once; "
        f"{rest} in {outcome.duration_s:.1f} s{why}"
    )
    lines = [line]
    if plan.faults:
        lines.append(f"faults: {plan.faults}")
    if plan.faults or plan.live:
        lines += [f"  {happening}" for happening in outcome.happened]
    if (traffic := outcome.traffic) is not None:
        lines.append(
            f"  {counted(traffic.connections, 'connection')} through the proxies, "
            f"{traffic.lost} broken by losses and {traffic.parted} by partitions"
        )
    unplanned = (crash for crash in outcome.crashed if crash.process not in outcome.killed)
    lines += [f"p{crash.process} crashed: {crash.cause}" for crash in unplanned]
    if outcome.undelivered is not None:
        lines.append(f"{outcome.undelivered}; {_instead(plan.ordering)}")
    return "\n".join(lines)


def _instead(ordering: str) -> str:
    """What goes on without whoever this one relies on, if anything does."""
    order = catalog.ORDERINGS[ordering].order
    try:
        catalog.choose(order, "uniform")
    except UsageError:
        return f"no {order} ordering goes on then"
    return f"--order {order} --reliability uniform goes on while more than half are up"
