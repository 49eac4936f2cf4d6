"""What exists. Everything that lists algorithms (command line, README, tests) reads it here.

The entries themselves are in `orderings/table.py` and `disseminations/table.py`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeVar

from ordercast.errors import UsageError
from ordercast.protocols.disseminations.table import DISSEMINATIONS
from ordercast.protocols.entries import Amount, Cost, DisseminationEntry, OrderingEntry
from ordercast.protocols.orderings.table import ORDERINGS
from ordercast.protocols.stack import Stack
from ordercast.spelling import did_you_mean

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
    "forsaken",
    "promises",
    "refusal",
    "too_few",
    "uniform",
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
        raise UsageError(_no_threshold(upper, lower))
    given = {"threshold": threshold, "seed": seed}
    options: dict[str, Any] = {
        name: given[name] for name in lower.options if given[name] is not None
    }
    return Stack(upper.layer(me, size), lower.layer(me, size, **options))


def _no_threshold(ordering: OrderingEntry, dissemination: DisseminationEntry) -> str:
    if ordering.reliability == "uniform":
        return (
            f"{ordering.name} waits for more than half of the processes, and only that keeps its "
            "promises: leave out the threshold"
        )
    able = [
        entry.name
        for entry in DISSEMINATIONS.values()
        if "threshold" in entry.options and refusal(ordering, entry) is None
    ]
    instead = f"choose the dissemination {' or '.join(able)}" if able else "leave it out"
    return f"{dissemination.name} waits for no majority, so it takes no threshold: {instead}"


def choose(order: str, reliability: str | None = "best_effort") -> tuple[str, str]:
    """The names of the ordering and dissemination that best give what people know by two words.

    The catalog's own names are taken as they are. Without a reliability, the strongest that goes
    with the order.
    """
    named = [entry for entry in ORDERINGS.values() if order in (entry.name, entry.order)]
    if not named:
        words = sorted({entry.order for entry in ORDERINGS.values()} | set(ORDERINGS))
        raise _unknown("order", order, words)
    if reliability in DISSEMINATIONS and reliability not in RELIABILITIES:
        lower = DISSEMINATIONS[reliability]
        ordering = next((e for e in named if refusal(e, lower) is None), named[0])
        build(ordering.name, reliability, 0, 1)  # says why, if they do not go together
        return ordering.name, reliability
    if reliability not in (None, *RELIABILITIES):
        words = list(dict.fromkeys((*RELIABILITIES, *DISSEMINATIONS)))
        raise _unknown("reliability", reliability, words)
    for level in reversed(RELIABILITIES) if reliability is None else (reliability,):
        for ordering in named:
            names = [e.name for e in DISSEMINATIONS.values() if _gives(ordering, e, level)]
            if names:
                simple = "best_effort" if ordering.destinations == "everyone" else "direct"
                return ordering.name, next(n for n in (simple, *_PREFERRED) if n in names)
    raise UsageError(
        f"{named[0].name} talks to chosen processes, so that no message outlives a crash of "
        f"those: it cannot be {reliability}, only best_effort"
    )


def _gives(ordering: OrderingEntry, dissemination: DisseminationEntry, reliability: str) -> bool:
    """Do the two give this together? What is reliable by itself is more than enough for less."""
    if refusal(ordering, dissemination) is not None:
        return False
    if ordering.reliability is None:
        return dissemination.reliability == reliability
    return RELIABILITIES.index(ordering.reliability) >= RELIABILITIES.index(reliability)


def uniform(ordering: str, dissemination: str) -> bool:
    """Does a process that delivers its own message know that a majority holds it?"""
    upper, lower = _find(ORDERINGS, ordering), _find(DISSEMINATIONS, dissemination)
    return "uniform" in (upper.reliability, lower.reliability)


def too_few(
    ordering: str, dissemination: str, size: int, left: int, *, threshold: int | None = None
) -> str | None:
    """Why a group of which only so many are left owes nobody a delivery any more; None if it does.

    Whoever waits for a majority promises something only while fewer than half crash.
    """
    if not uniform(ordering, dissemination) or left >= (threshold or size // 2 + 1):
        return None
    by_itself = ORDERINGS[ordering].reliability == "uniform"
    many = "more than half" if threshold is None else threshold
    rest = f"only {left} {'is' if left == 1 else 'are'}" if left else "none is"
    return (
        f"{ordering if by_itself else dissemination} waits for {many} of the {size} members, and "
        f"{rest} left"
    )


def forsaken(ordering: str, gone: Collection[int]) -> str | None:
    """Why the others wait for ever once these processes are gone for good; None if they do not."""
    relies_on = _find(ORDERINGS, ordering).relies_on
    missed = {"nobody": (), "process 0": {0}.intersection(gone), "everyone": gone}[relies_on]
    if not missed:
        return None
    who = ", ".join(f"p{process}" for process in sorted(missed))
    on_whom = "everyone" if relies_on == "everyone" else "it"
    return f"{who} {'is' if len(missed) == 1 else 'are'} gone, and {ordering} relies on {on_whom}"


def promises(ordering: str, dissemination: str, *, crashes: bool) -> tuple[str, ...]:
    """The properties that this combination promises, by the names of the verdicts.

    Without a crash everyone delivers everything. With one, an ordering that talks to chosen
    processes may wait for the dead for ever, unless it sees to that itself, and only a
    dissemination that outlives its senders keeps its word.
    """
    upper, lower = _find(ORDERINGS, ordering), _find(DISSEMINATIONS, dissemination)
    if not crashes or upper.reliability == "uniform":
        return upper.promises + _LIVE
    return upper.promises + lower.promises


def cost(ordering: str, dissemination: str) -> Cost:
    """What a message costs in this combination, as formulas in the size of the group."""
    upper, lower = _find(ORDERINGS, ordering), _find(DISSEMINATIONS, dissemination)
    return upper.own or lower.carriage


def _find(entries: dict[str, Entry], name: str) -> Entry:
    if name not in entries:
        near = did_you_mean(name, entries)
        raise UsageError(
            f"there is no {name!r} in the catalog{near}: choose one of {', '.join(entries)}"
        )
    return entries[name]


def _unknown(what: str, word: object, known: list[str]) -> UsageError:
    near = did_you_mean(word, known)
    return UsageError(f"there is no {what} {word!r}{near}: choose one of {', '.join(known)}")
