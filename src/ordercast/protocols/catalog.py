"""What exists. Everything that lists algorithms (command line, README, tests) reads it here.

The entries themselves are in `orderings/table.py` and `disseminations/table.py`.
"""

from __future__ import annotations

from typing import Any, TypeVar

from ordercast.errors import UsageError
from ordercast.protocols.disseminations.table import DISSEMINATIONS
from ordercast.protocols.entries import Amount, Cost, DisseminationEntry, OrderingEntry
from ordercast.protocols.orderings.table import ORDERINGS
from ordercast.protocols.stack import Stack

__all__ = [
    "DISSEMINATIONS",
    "ORDERINGS",
    "Amount",
    "Cost",
    "DisseminationEntry",
    "OrderingEntry",
    "build",
    "choose",
    "combinations",
    "cost",
    "promises",
    "refusal",
]

Entry = TypeVar("Entry")

RELIABILITIES = ("best_effort", "reliable", "uniform")
"""From the weakest to the strongest."""
_PREFERRED = ("best_effort", "direct", "relay", "majority_acks", "gossip", "majority")

_LIVE = ("validity", "agreement", "uniform_agreement")


def refusal(ordering: OrderingEntry, dissemination: DisseminationEntry) -> str | None:
    """Why the two cannot be combined; None if they can."""
    if ordering.layer.needs_direct and dissemination.destinations == "everyone":
        return (
            f"{ordering.name} talks to chosen processes, and {dissemination.name} carries only "
            "what is for everyone: use it over 'direct'"
        )
    return None


def combinations() -> list[tuple[str, str]]:
    """The names of every ordering and dissemination that go together."""
    return [
        (ordering.name, dissemination.name)
        for ordering in ORDERINGS.values()
        for dissemination in DISSEMINATIONS.values()
        if refusal(ordering, dissemination) is None
    ]


def build(
    ordering: str,
    dissemination: str,
    me: int,
    size: int,
    *,
    threshold: int | None = None,
    seed: int | None = None,
) -> Stack:
    """One member's protocol object. `threshold` is how many must hold a message before a uniform
    dissemination counts on it; `seed` feeds the choices of gossip."""
    upper, lower = _find(ORDERINGS, ordering), _find(DISSEMINATIONS, dissemination)
    if (reason := refusal(upper, lower)) is not None:
        raise UsageError(reason)
    if size < 1 or not 0 <= me < size:
        raise UsageError(f"process {me} cannot be in a group of {size}")
    if threshold is not None and "threshold" not in lower.options:
        raise UsageError(f"{dissemination} waits for no majority, so it takes no threshold")
    given = {"threshold": threshold, "seed": seed}
    options: dict[str, Any] = {
        name: given[name] for name in lower.options if given[name] is not None
    }
    return Stack(upper.layer(me, size), lower.layer(me, size, **options))


def choose(order: str, reliability: str | None = "best_effort") -> tuple[str, str]:
    """The names of the ordering and dissemination that best give what people know by two words.

    The catalog's own names are taken as they are. Without a reliability, the strongest that goes
    with the ordering.
    """
    ordering = next((e for e in ORDERINGS.values() if order in (e.name, e.order)), None)
    if ordering is None:
        words = sorted({entry.order for entry in ORDERINGS.values()} | set(ORDERINGS))
        raise UsageError(f"there is no order {order!r}: choose one of {', '.join(words)}")
    fitting = [e for e in DISSEMINATIONS.values() if refusal(ordering, e) is None]
    if reliability in DISSEMINATIONS and reliability not in RELIABILITIES:
        build(ordering.name, reliability, 0, 1)  # says why, if they do not go together
        return ordering.name, reliability
    if reliability is None:
        reliability = max((entry.reliability for entry in fitting), key=RELIABILITIES.index)
    if reliability not in RELIABILITIES:
        words = list(dict.fromkeys((*RELIABILITIES, *DISSEMINATIONS)))
        raise UsageError(
            f"there is no reliability {reliability!r}: choose one of {', '.join(words)}"
        )
    names = [entry.name for entry in fitting if entry.reliability == reliability]
    if not names:
        raise UsageError(
            f"{ordering.name} talks to chosen processes, so that no message outlives a crash of "
            f"those: it cannot be {reliability}, only best_effort"
        )
    simple = "best_effort" if ordering.destinations == "everyone" else "direct"
    return ordering.name, next(name for name in (simple, *_PREFERRED) if name in names)


def promises(ordering: str, dissemination: str, *, crashes: bool) -> tuple[str, ...]:
    """The properties that this combination promises, by the names of the verdicts.

    Without a crash everyone delivers everything. With one, an ordering that talks to chosen
    processes may wait for the dead for ever, and only a dissemination that outlives its senders
    keeps its word.
    """
    upper, lower = _find(ORDERINGS, ordering), _find(DISSEMINATIONS, dissemination)
    return upper.promises + (lower.promises if crashes else _LIVE)


def cost(ordering: str, dissemination: str) -> Cost:
    """What a message costs in this combination, as formulas in the size of the group."""
    upper, lower = _find(ORDERINGS, ordering), _find(DISSEMINATIONS, dissemination)
    return upper.own or lower.carriage


def _find(entries: dict[str, Entry], name: str) -> Entry:
    if name not in entries:
        raise UsageError(f"there is no {name!r} in the catalog: choose one of {', '.join(entries)}")
    return entries[name]
