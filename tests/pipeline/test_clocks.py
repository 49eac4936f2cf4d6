"""Vector clocks and the causal check within a run, on logs that need not make sense."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from ordercast import oracle
from ordercast.pipeline import clocks
from ordercast.pipeline.causal_run import check_run
from ordercast.trace.directory import Trace
from ordercast.trace.event import Event
from ordercast.trace.manifest import Manifest

SEEDS = range(400)


def wild_trace(seed: int) -> Trace:
    """Subsets, repeats, forged messages, deliveries before their sends, and so cycles."""
    random = Random(seed)
    size = random.randint(1, 5)
    logs: list[list[tuple[str, int, int, tuple[int, ...] | None]]] = [[] for _ in range(size)]
    for origin in range(size):
        for number in random.sample(range(1, 12), random.randint(0, 5)):
            subset = tuple(random.choices(range(size), k=random.randint(0, size)))
            destinations = random.choice([None, subset])
            logs[origin].append(("send", origin, number, destinations))
            for process, log in enumerate(logs):
                addressed = destinations is None or process in destinations
                for _ in range(random.choice([0, 1, 1, 1, 2]) if addressed else seed % 7 == 0):
                    log.append(("deliver", origin, number, None))
    logs[0].append(("deliver", random.randint(0, 6), random.randint(1, 12), None))
    events = []
    for process, log in enumerate(logs):
        random.shuffle(log)
        if seed % 2:  # sends early: fewer cycles, longer chains
            log.sort(key=lambda row: (row[0] != "send") * random.random())
        positions = sorted(random.sample(range(3 * len(log)), len(log)))
        for position, (kind, *message) in zip(positions, log, strict=True):
            events.append(Event("wild", process, position, kind, *message))  # type: ignore[arg-type]
    names = tuple(f"p{process}" for process in range(size))
    return Trace.of(Manifest("wild", names, complete=bool(seed % 3)), events)


def table(trace: Trace) -> pa.Table:
    def addressed(event: Event) -> list[int] | None:
        if event.kind != "send":
            return None
        if event.destinations is None:
            return list(trace.members)
        return [member for member in trace.members if member in event.destinations]

    columns = ("process", "position", "origin", "number")
    return pa.table(
        {name: pa.array([getattr(row, name) for row in trace.events]) for name in columns}
        | {"addressed": pa.array(map(addressed, trace.events), pa.list_(pa.int32()))}
    )


def test_the_check_agrees_with_the_definition() -> None:
    seen: dict[str, int] = {}
    for seed in SEEDS:
        trace = wild_trace(seed)
        (expected,) = oracle.judge(trace, ["causal"])
        found = check_run(table(trace), complete=trace.manifest.complete)
        outcome = "violated" if found["violations"] else "unknown" if found["doubts"] else "holds"
        witness = found["witness"]
        assert (outcome, found["checked"], found["violations"]) == (
            expected.verdict,
            expected.checked,
            expected.violations,
        ), f"seed {seed}"
        if expected.witness is not None:
            m, n = expected.witness.messages
            assert witness["process"] == expected.witness.process, f"seed {seed}"
            assert f"{witness['origin']}:{witness['number']}" == m, f"seed {seed}"
            assert f"{witness['other']}:{witness['later']}" == n, f"seed {seed}"
        seen[outcome] = seen.get(outcome, 0) + 1
    assert min(seen.get(word, 0) for word in ("violated", "unknown", "holds")) > 5, seen


def random_knowledge(seed: int, *, cycles: bool) -> tuple[clocks.Ints, clocks.Ints]:
    """Direct knowledge of a run in which each send follows some deliveries, own ones included."""
    random = np.random.default_rng(seed)
    size = random.integers(1, 7, random.integers(1, 5))
    start = np.concatenate(([0], np.cumsum(size)))
    sent_at = np.concatenate([np.arange(count) * 10 + 5 for count in size])
    when = random.permutation(start[-1])  # a global order of sends, kept unless cycles are wanted
    for k in range(len(size)):
        when[start[k] : start[k + 1]].sort()
    heard = []
    for k, count in enumerate(size):
        message = random.integers(0, start[-1], 12)
        position = random.integers(0, count * 10, 12) * 10 + 1
        position = np.sort(position // 10)
        following = np.searchsorted(sent_at[start[k] : start[k + 1]], position)
        sound = following < count
        at = when[np.minimum(start[k] + following, start[k + 1] - 1)]
        sound &= when[message] < at
        keep = np.ones(12, bool) if cycles else sound
        heard.append((position[keep], message[keep]))
    return clocks.direct_knowledge(start, sent_at, heard), start


def fixpoint(direct: clocks.Ints, start: clocks.Ints) -> clocks.Ints:
    """The definition: learn from every message one knows of, until there is nothing to learn."""
    clock = direct.copy()
    while True:
        before = clock.copy()
        for row in clock:
            for k in range(len(start) - 1):
                for m in range(start[k], start[k] + row[k]):
                    np.maximum(row, before[m], out=row)
        if (clock == before).all():
            return clock


@pytest.mark.parametrize("cycles", [False, True])
def test_clocks_are_the_least_fixpoint(cycles: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    ways = {"_is_closed": 0, "_advance": 0, "_spread": 0}
    for name in ways:
        original = getattr(clocks, name)

        def counted(*args: clocks.Ints, name: str = name, original=original) -> bool:  # type: ignore[no-untyped-def]
            done = bool(original(*args))
            ways[name] += done
            return done

        monkeypatch.setattr(clocks, name, counted)
    for seed in range(150):
        direct, start = random_knowledge(seed, cycles=cycles)
        assert (clocks.closure(direct, start) == fixpoint(direct, start)).all(), f"seed {seed}"
    assert ways["_is_closed"] > 0, "the quick way was never taken"
    assert ways["_spread" if cycles else "_advance"] > 0, "the slow way was never taken"


def test_a_long_chain_of_messages_for_one_each() -> None:
    """0:1 for the last process, then a message goes round and round before it is answered."""
    size, rounds = 4, 300
    rows = [("process", "position", "origin", "number", "addressed")]
    position = [0] * size
    numbers = [0] * size

    def add(process: int, origin: int, number: int, addressed: list[int] | None) -> None:
        rows.append((process, position[process], origin, number, addressed))  # type: ignore[arg-type]
        position[process] += 1

    def send(process: int, to: int) -> tuple[int, int]:
        numbers[process] += 1
        add(process, process, numbers[process], [to])
        return process, numbers[process]

    first = send(0, size)
    for step in range(rounds):
        message = send(step % size, (step + 1) % size)
        add((step + 1) % size, *message, None)
    answer = send(rounds % size, size)
    rows.append((size, 0, *answer, None))  # type: ignore[arg-type]
    rows.append((size, 1, *first, None))  # type: ignore[arg-type]
    header, *body = rows
    columns = {name: [row[i] for row in body] for i, name in enumerate(header)}
    found = check_run(pa.table(columns), complete=True)
    assert (found["checked"], found["violations"]) == (rounds + 2, 1)
    assert found["witness"]["link"] == "indirect" or answer[0] == first[0]
    assert (found["witness"]["origin"], found["witness"]["number"]) == first
