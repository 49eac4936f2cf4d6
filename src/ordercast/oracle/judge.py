"""Each property as its definition states it, with loops over all messages and processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations

from ordercast.oracle.cycles import (
    knots,
    shortest_cycle,
    succession,
    synchronous_chains,
    total_chains,
)
from ordercast.oracle.run import Id, Run, text
from ordercast.trace.directory import Trace
from ordercast.trace.verdicts import PROPERTIES, Outcome, Verdict, Witness

__all__ = ["judge", "told"]

Finding = tuple[Outcome, int, int, Witness | None]
"""Verdict, facts checked, violations, witness."""


def judge(trace: Trace, properties: Iterable[str] = PROPERTIES) -> list[Verdict]:
    run = Run(trace)
    return [Verdict(run.manifest.run, name, *_JUDGES[name](run)) for name in properties]


def told(trace: Trace) -> Iterator[str]:
    """Every verdict as a line, for stories."""
    for verdict in judge(trace):
        why = "" if verdict.witness is None else f": {verdict.witness.sentence}"
        yield f"{verdict.property} {verdict.verdict} ({verdict.checked} checked){why}"


def no_duplication(run: Run) -> Finding:
    pairs = [(p, m) for p in run.members for m in run.deliveries[p]]
    twice = [
        (p, sorted(run.deliveries[p][m])[1], m) for p, m in pairs if len(run.deliveries[p][m]) > 1
    ]
    if not twice:
        return "holds", len(pairs), 0, None
    p, _, m = min(twice)
    return (
        "violated",
        len(pairs),
        len(twice),
        Witness(p, (text(m),), f"p{p} delivered {text(m)} twice"),
    )


def no_creation(run: Run) -> Finding:
    pairs = [(p, m) for p in run.members for m in run.deliveries[p]]
    forged, orphans = [], []
    for p, m in pairs:
        found = (p, run.first(p, m) or 0, m)
        if m in run.sends:
            if not run.addressed(m, p):
                forged.append(found)
        elif run.manifest.complete and _must_show(run, m[0]):
            forged.append(found)
        else:
            orphans.append(found)
    if forged:
        p, _, m = min(forged)
        sentence = f"p{p} delivered {text(m)}, which was never sent to it"
        return "violated", len(pairs), len(forged), Witness(p, (text(m),), sentence)
    if orphans:
        p, _, m = min(orphans)
        sentence = f"p{p} delivered {text(m)}, and the log that would show its send is missing"
        return "unknown", len(pairs), 0, Witness(p, (text(m),), sentence)
    return "holds", len(pairs), 0, None


def _must_show(run: Run, origin: int) -> bool:
    """Would the log show the sends of this process, if there were any?"""
    return origin in run.logged or (run.described and origin not in run.members)


def validity(run: Run) -> Finding:
    owed = []
    for m in run.sends:
        if m[0] in run.correct:
            itself = run.addressed(m, m[0])
            owed += [(m[0], m)] if itself else [(q, m) for q in _correct_addressees(run, m)]
    return _owed(run, owed)


def agreement(run: Run) -> Finding:
    return _agreement(run, run.correct)


def uniform_agreement(run: Run) -> Finding:
    return _agreement(run, set(run.members))


def _agreement(run: Run, deliverers: set[int]) -> Finding:
    owed = []
    for m in run.sends:
        if any(run.first(p, m) is not None for p in deliverers):
            owed += [(q, m) for q in _correct_addressees(run, m)]
    return _owed(run, owed)


def _correct_addressees(run: Run, m: Id) -> list[int]:
    return [q for q in run.addressees(m) if q in run.correct]


def _owed(run: Run, owed: list[tuple[int, Id]]) -> Finding:
    unmet = sorted((q, m) for q, m in owed if run.first(q, m) is None)
    if not unmet:
        return "holds", len(owed), 0, None
    q, m = unmet[0]
    witness = Witness(q, (text(m),), f"p{q} never delivered {text(m)}")
    if run.manifest.quiesced and run.manifest.complete:
        return "violated", len(owed), len(unmet), witness
    return "unknown", len(owed), 0, witness


def fifo(run: Run) -> Finding:
    def before(m: Id, n: Id) -> bool:
        return m[0] == n[0] and run.sends[m].position < run.sends[n].position

    return _precedence(run, before, lambda m, n: (run.sends[m].position,))


def causal(run: Run) -> Finding:
    def nearest(m: Id, n: Id) -> tuple[int, ...]:
        sent = run.sends[n].position
        own = m[0] == n[0] and run.sends[m].position < sent
        return (not (own or run.delivered_before(n[0], m, sent)), *m)

    return _precedence(run, lambda m, n: m in run.past[n], nearest)


def _precedence(
    run: Run, before: Callable[[Id, Id], bool], preference: Callable[[Id, Id], tuple[int, ...]]
) -> Finding:
    """No p delivers n without having delivered every m that comes before it and is meant for p."""
    facts, inverted, omitted = 0, [], []
    for p in run.members:
        for n in run.deliveries[p]:
            if n not in run.sends or not run.addressed(n, p):
                continue
            facts += 1
            position = run.first(p, n) or 0
            lacking = [
                m
                for m in run.sends
                if m != n
                and before(m, n)
                and run.addressed(m, p)
                and not run.delivered_before(p, m, position)
            ]
            late = [m for m in lacking if run.first(p, m) is not None]
            if run.manifest.complete and lacking:
                inverted.append((p, position, n, lacking))
            elif late:
                inverted.append((p, position, n, late))
            elif lacking:
                omitted.append((p, position, n, lacking))
    if not inverted and not omitted:
        return "holds", facts, 0, None
    p, _, n, lacking = min(inverted or omitted)
    m = min(lacking, key=lambda m: preference(m, n))
    sentence = f"{text(m)} came before {text(n)}, but p{p} delivered {text(n)} without it"
    witness = Witness(p, (text(m), text(n)), sentence)
    return ("violated" if inverted else "unknown"), facts, len(inverted), witness


def total_pairwise(run: Run) -> Finding:
    """Facts are neighbours in one process's order, of messages that others delivered as well;
    violations are pairs of messages."""
    messages = sorted({m for p in run.members for m in run.deliveries[p]})
    by = {m: [p for p in run.members if run.first(p, m) is not None] for m in messages}
    shared = [sum(p in by[m] and len(by[m]) >= 2 for m in messages) for p in run.members]
    facts = sum(max(count - 1, 0) for count in shared)
    crossed = []
    for m, n in combinations(messages, 2):
        orders = {p: run.delivered_before(p, m, run.first(p, n) or 0) for p in by[m] if p in by[n]}
        against = [p for p in orders if orders[p] != orders[min(orders)]]
        if against:
            crossed.append((m, n, min(against)))
    if not crossed:
        return "holds", facts, 0, None
    m, n, p = min(crossed)
    sentence = f"p{p} delivered {text(m)} and {text(n)} in another order than others did"
    return "violated", facts, len(crossed), Witness(p, (text(m), text(n)), sentence)


def total_gap_free(run: Run) -> Finding:
    """Facts are deliveries: (q, n) is a gap if q lacks an m that someone delivered before n."""
    facts, gaps, doubts = 0, [], []
    for q in run.members:
        for n in run.deliveries[q]:
            facts += 1
            position = run.first(q, n) or 0
            lacking = [
                m
                for m in run.sends
                if m != n
                and run.addressed(m, q)
                and not run.delivered_before(q, m, position)
                and any(
                    run.first(p, n) is not None and run.delivered_before(p, m, run.first(p, n) or 0)
                    for p in run.members
                )
            ]
            late = [m for m in lacking if run.first(q, m) is not None]
            certain = lacking if run.manifest.complete else late
            if certain:
                gaps.append((q, position, n, min(certain)))
            elif lacking:
                doubts.append((q, position, n, min(lacking)))
    if not gaps and not doubts:
        return "holds", facts, 0, None
    q, _, n, m = min(gaps or doubts)
    sentence = f"p{q} delivered {text(n)} without {text(m)}, which others delivered before it"
    witness = Witness(q, (text(m), text(n)), sentence)
    return ("violated" if gaps else "unknown"), facts, len(gaps), witness


def total_acyclic(run: Run) -> Finding:
    return _acyclic(run, total_chains(run))


def synchronous(run: Run) -> Finding:
    return _acyclic(run, synchronous_chains(run))


def _acyclic(run: Run, chains: list[list[Id]]) -> Finding:
    """Facts are neighbours in a chain; violations are knots."""
    edges = sum(max(len(chain) - 1, 0) for chain in chains)
    after = succession(chains)
    found = knots(after)
    if found == 0:
        return "holds", edges, 0, None
    cycle = shortest_cycle(after)
    m, n = cycle[:2]
    shows = next(
        p
        for p, chain in zip(run.members, chains, strict=True)
        if n in succession([chain]).get(m, ())
    )
    messages = tuple(map(text, cycle))
    sentence = f"{', '.join(messages)}: each before the next, and the last before the first"
    return "violated", edges, found, Witness(shows, messages, sentence)


_JUDGES: dict[str, Callable[[Run], Finding]] = {
    "no_duplication": no_duplication,
    "no_creation": no_creation,
    "validity": validity,
    "agreement": agreement,
    "uniform_agreement": uniform_agreement,
    "fifo": fifo,
    "causal": causal,
    "total_pairwise": total_pairwise,
    "total_acyclic": total_acyclic,
    "total_gap_free": total_gap_free,
    "synchronous": synchronous,
}
