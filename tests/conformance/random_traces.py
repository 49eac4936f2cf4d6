"""Small random traces, most of them wrong in some way: what the judges are tried on."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import msgspec

from ordercast.protocols.disseminations.direct import Direct
from ordercast.protocols.orderings.fifo import Fifo
from ordercast.protocols.orderings.unordered import Unordered
from ordercast.protocols.stack import Stack
from ordercast.trace.directory import Trace
from ordercast.trace.event import Event
from ordercast.trace.manifest import Manifest

from .subjects import run_once

FAULTS = ["", "crash:0@10ms", "crash:1#3", "loss:30%", "fifo, delay:0ms..3ms"]


def random_trace(seed: int, run: str) -> Trace:
    random = Random(seed)
    ordering = random.choice([Unordered, Fifo])
    trace = run_once(
        lambda me, size: Stack(ordering(me, size), Direct(me, size)),
        seed=seed,
        faults=random.choice(FAULTS),
        size=random.randint(2, 5),
        messages=random.randint(1, 4),
        destinations=random.choice(["everyone", "one", "some"]),
        run=run,
    )
    logs = [[e for e in trace.events if e.process == p] for p in trace.members]
    for _ in range(random.randint(0, 3)):
        random.choice(INJURIES)(random.choice(logs), random)
    manifest = replace(
        trace.manifest,
        quiesced=random.random() < 0.7,
        complete=random.random() < 0.7,
    )
    return Trace.of(manifest, [event for log in logs for event in renumbered(log)])


def knotted_trace(seed: int, run: str) -> Trace:
    """Some only send, each message to a few readers, who deliver them in any order: now and then
    three or more readers contradict each other though no two of them do."""
    random = Random(seed)
    readers, senders = random.randint(2, 5), random.randint(1, 3)
    size = readers + senders
    logs: list[list[Event]] = [[] for _ in range(size)]
    inbox: list[list[tuple[int, int]]] = [[] for _ in range(readers)]
    for number in range(1, random.randint(2, 4)):
        for sender in range(readers, size):
            to = tuple(sorted(random.sample(range(readers), random.randint(1, 2))))
            logs[sender].append(Event(run, sender, 0, "send", sender, number, to))
            for reader in to:
                inbox[reader].append((sender, number))
    for reader, messages in enumerate(inbox):
        random.shuffle(messages)
        del messages[random.randint(2, 5) :]
        logs[reader] += [Event(run, reader, 0, "deliver", *message) for message in messages]
    manifest = Manifest(run, tuple(f"p{p}" for p in range(size)), quiesced=True)
    return Trace.of(manifest, [event for log in logs for event in renumbered(log)])


def renumbered(log: list[Event]) -> list[Event]:
    return [msgspec.structs.replace(event, position=row) for row, event in enumerate(log)]


def swap(log: list[Event], random: Random) -> None:
    if len(log) >= 2:
        a, b = random.sample(range(len(log)), 2)
        log[a], log[b] = log[b], log[a]


def omit(log: list[Event], random: Random) -> None:
    if log:
        del log[random.randrange(len(log))]


def repeat(log: list[Event], random: Random) -> None:
    deliveries = [event for event in log if event.kind == "deliver"]
    if deliveries:
        log.insert(random.randint(0, len(log)), random.choice(deliveries))


def forge(log: list[Event], random: Random) -> None:
    if log:
        made_up = (random.randint(0, 6), random.randint(1, 6))
        event = Event(log[0].run, log[0].process, 0, "deliver", *made_up)
        log.insert(random.randint(0, len(log)), event)


def lose_tail(log: list[Event], random: Random) -> None:
    del log[random.randint(0, len(log)) :]


def come_back(log: list[Event], random: Random) -> None:
    if log:
        for kind in ("recover", "crash"):
            event = Event(log[0].run, log[0].process, 0, kind)  # type: ignore[arg-type]
            log.insert(random.randint(0, len(log)), event)


INJURIES = [swap, omit, repeat, forge, lose_tail, come_back]
