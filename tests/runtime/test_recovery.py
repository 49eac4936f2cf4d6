"""Members that are killed and come back with their journals, as real processes."""

from __future__ import annotations

import random
import time
from itertools import pairwise
from pathlib import Path

import pytest

from ordercast.oracle import judge
from ordercast.protocols import catalog
from ordercast.trace import Event, Manifest, Trace
from ordercast.trace.spans import log_files, read_log, rows_of

from .applications import Application, running, wait_until
from .test_join import addresses

pytestmark = pytest.mark.timeout(120)

NAMES = ("a", "b", "c")


def group(directory: Path, **options: object) -> list[Application]:
    peers = addresses(*NAMES)
    return [
        Application(
            me=name,
            peers=peers,
            journal=str(directory / "journals" / name),
            trace=str(directory / "trace"),
            **options,
        )
        for name in NAMES
    ]


def trace_of(directory: Path) -> Trace:
    events: list[Event] = []
    for process, name in enumerate(NAMES):
        position = 0
        for file in log_files(directory / "trace", name):
            for span in read_log(file)[1]:
                events += rows_of(span, run="g", process=process, position=position)
                position += span.count
    return Trace.of(Manifest("g", NAMES, quiesced=True), events)


def broken_promises(trace: Trace, ordering: str, dissemination: str) -> list[str]:
    promises = catalog.promises(ordering, dissemination, crashes=False)
    return [
        f"{v.property} {v.verdict} ({v.violations} of {v.checked}): {v.witness}"
        for v in judge(trace, promises)
        if v.verdict != "holds" or not v.checked
    ]


@pytest.mark.parametrize(
    ("sync", "order", "dissemination"),
    [
        ("write", "causal_vector", "majority_acks"),
        ("disk", "causal_vector", "majority_acks"),
        ("write", "causal_history", "majority"),
        ("disk", "fifo", "gossip"),
        ("write", "total_coordinator", "direct"),
        ("disk", "total_lamport", "direct"),
        ("write", "total_skeen", "direct"),
        ("write", "total_consensus", "direct"),
        ("disk", "total_consensus", "direct"),
    ],
)
def test_killed_at_any_moment_and_back_as_if_nothing_had_happened(
    tmp_path: Path, order: str, dissemination: str, sync: str
) -> None:
    messages = 150
    chance = random.Random(f"{order} {sync}")
    members = group(
        tmp_path, order=order, reliability=dissemination, sync=sync, send=messages, pause_s=0.004
    )
    with running(*members):
        for member in members:
            member.start()
        wait_until(lambda: all(member.said("joined") for member in members))
        for _ in range(4):
            time.sleep(chance.uniform(0.05, 0.3))
            victim = chance.choice(members)
            victim.kill()
            time.sleep(chance.uniform(0, 0.2))
            # After the last kill something is sent to everyone: of what came before, a kill may
            # have hidden the very last message, and nobody would see that all are at rest.
            victim.start(send=1)
            if chance.random() < 0.7:  # otherwise it may be killed before it is back
                lives = len(victim.lives)
                wait_until(lambda: "joined" in victim.lives[lives - 1])  # noqa: B023
        # Whoever was not killed sends all of it; those that were have sent a part.
        wait_until(lambda: all_at_rest(members))
        for member in members:
            member.stop()

    # A kill in the middle of a commit leaves a torn one, which is worth a line in the log.
    errors = [line for member in members for line in member.errors if "cut off" not in line]
    assert errors == []
    for member in members:
        positions = [position for position, _, _ in member.got()]
        # What was handed out is not handed out again; a kill may hide the very last one.
        assert all(1 <= after - before <= 2 for before, after in pairwise(positions))
        skipped = positions[-1] - len(positions)
        assert 0 <= skipped < len(member.lives)
    trace = trace_of(tmp_path)
    assert broken_promises(trace, order, dissemination) == []
    kinds = [event.kind for event in trace.events]
    assert kinds.count("crash") == kinds.count("recover") >= 2
    sent = {event.message for event in trace.events if event.kind == "send"}
    for process, member in enumerate(members):
        for (number,) in member.said("stable"):
            assert (process, int(number)) in sent, "what was stable is still there"


def all_at_rest(members: list[Application]) -> bool:
    """Everyone has been handed as much, and nothing more comes."""
    counts = [max((p for p, _, _ in member.got()), default=0) for member in members]
    if len(set(counts)) > 1 or not all(len(m.lives) > 1 or m.said("sent") for m in members):
        return False
    time.sleep(2)  # longer than anyone waits before it dials again
    return counts == [max(p for p, _, _ in member.got()) for member in members]
