"""Orders that every process could agree on: the union of all chains must have no cycle."""

from __future__ import annotations

from itertools import pairwise

from ordercast.oracle.run import Id, Run

__all__ = ["knots", "synchronous_chains", "total_chains"]


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


def knots(chains: list[list[Id]]) -> list[list[Id]]:
    """For each set of messages that all come before themselves, its shortest cycle."""
    after: dict[Id, set[Id]] = {message: set() for chain in chains for message in chain}
    for chain in chains:
        for m, n in pairwise(chain):
            after[m].add(n)
    cycles = {message: _cycle(message, after) for message in sorted(after)}
    reach = {message: _reach(message, after) for message in after}
    found: list[list[Id]] = []
    settled: set[Id] = set()
    for message in sorted(after):
        if cycles[message] and message not in settled:
            knot = sorted(other for other in reach[message] if message in reach[other])
            settled.update(knot)
            found.append(min((cycles[other] for other in knot), key=lambda c: (len(c), c)))
    return found


def _reach(start: Id, after: dict[Id, set[Id]]) -> set[Id]:
    seen: set[Id] = set()
    frontier = list(after[start])
    while frontier:
        message = frontier.pop()
        if message not in seen:
            seen.add(message)
            frontier.extend(after[message])
    return seen


def _cycle(start: Id, after: dict[Id, set[Id]]) -> list[Id]:
    """The shortest way from a message back to itself; empty if there is none."""
    came_from: dict[Id, Id] = {}
    level = [start]
    while level and start not in came_from:
        following = []
        for message in level:
            for other in sorted(after[message]):
                if other not in came_from:
                    came_from[other] = message
                    following.append(other)
        level = following
    if start not in came_from:
        return []
    way = [came_from[start]]
    while way[-1] != start:
        way.append(came_from[way[-1]])
    return way[::-1]
