"""Orders that every process could agree on: the union of all chains must have no cycle."""

from __future__ import annotations

from itertools import combinations

from ordercast.oracle.run import Id, Run

__all__ = ["knots", "shortest_cycle", "succession", "synchronous_chains", "total_chains"]


def total_chains(run: Run) -> list[list[Id]]:
    """Each process's messages in the order of their first deliveries."""
    firsts = [{m: min(at) for m, at in run.deliveries[p].items()} for p in run.members]
    return [sorted(first, key=first.__getitem__) for first in firsts]


def synchronous_chains(run: Run) -> list[list[Id]]:
    """Each process's messages in the order it sent or first delivered them. A message is one
    point, so its own send and delivery at one process do not count as two."""
    chains = []
    for process in run.members:
        chain: list[Id] = []
        for event in run.events:
            if event.process != process or event.kind not in ("send", "deliver"):
                continue
            repeated = event.kind == "deliver" and (
                run.first(process, event.message) != event.position
            )
            if not repeated and (not chain or chain[-1] != event.message):
                chain.append(event.message)
        chains.append(chain)
    return chains


def succession(chains: list[list[Id]]) -> dict[Id, set[Id]]:
    """For each message, all that come after it in some chain."""
    after: dict[Id, set[Id]] = {message: set() for chain in chains for message in chain}
    for chain in chains:
        for m, n in combinations(chain, 2):
            if m != n:
                after[m].add(n)
    return after


def knots(after: dict[Id, set[Id]]) -> int:
    """How many sets of messages there are that all come before each other."""
    reach = {message: _reach(message, after) for message in after}
    together = {
        frozenset(other for other in reach[message] if message in reach[other])
        for message in after
        if message in reach[message]
    }
    return len(together)


def _reach(start: Id, after: dict[Id, set[Id]]) -> set[Id]:
    seen: set[Id] = set()
    frontier = list(after[start])
    while frontier:
        message = frontier.pop()
        if message not in seen:
            seen.add(message)
            frontier.extend(after[message])
    return seen


def shortest_cycle(after: dict[Id, set[Id]]) -> list[Id]:
    """The cycle with the fewest messages; of several, the one with the smallest names. There must
    be one."""
    before: dict[Id, set[Id]] = {message: set() for message in after}
    for message, later in after.items():
        for one in later:
            before[one].add(message)
    ways = {start: _distances(start, before) for start in sorted(after)}
    lengths = {start: far[start] for start, far in ways.items() if start in far}
    start = min(lengths, key=lambda message: (lengths[message], message))
    cycle = [start]
    for left in range(lengths[start] - 1, 0, -1):
        nearer = (one for one in after[cycle[-1]] if ways[start].get(one) == left)
        cycle.append(min(nearer))
    return cycle


def _distances(end: Id, before: dict[Id, set[Id]]) -> dict[Id, int]:
    """How many steps lead from each message to the end: at least one, also from the end itself."""
    found: dict[Id, int] = {}
    frontier, steps = {end}, 0
    while frontier:
        steps += 1
        frontier = {one for message in frontier for one in before[message]} - found.keys()
        found.update(dict.fromkeys(frontier, steps))
    return found
