"""Does it cost more to hold a message when many others are held already? It must not.

The same 100,000 messages are held by 100 receivers with 1,000 each, by 10 with 10,000, and by one
with all of them; each gets its own from 15 processes in the worst order, so that hardly any is
delivered before the last has come. The receivers take turns, so that memory is used alike, and what
differs is only how much each one holds. Printed are µs of processor time per message, and the ratio
to 1,000 held; a ratio above 1.5 means a path that is not linear, and the exit code tells.

example:
  python -m benchmarks.holding
  python -m benchmarks.holding --only causal --messages 30000
"""

from __future__ import annotations

import gc
import sys
from time import process_time
from typing import Any

from benchmarks.arrivals import SIZE, SUBJECTS, TIMER, Subject
from benchmarks.show import Row, options, progress, show
from ordercast.protocols import catalog
from ordercast.protocols.effects import Deliver

LIMIT = 1.5


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--messages", type=int, default=100_000, metavar="M", help="in each row")
    parser.add_argument("--repeat", type=int, default=3, metavar="R", help="and keep the fastest")
    chosen = parser.parse_args()
    subjects = {subject.name: subject for subject in SUBJECTS if chosen.only in subject.name}
    held = [chosen.messages // 100, chosen.messages // 10, chosen.messages]
    rows = [_row(subjects[name], held, chosen.repeat) for name in progress(subjects)]
    show("µs per message, by how many one receiver holds", rows, as_json=chosen.json)
    sys.exit(any(row["worst_ratio"] > LIMIT for row in rows))


def _row(subject: Subject, sizes: list[int], repeat: int) -> Row:
    fastest = dict.fromkeys(sizes, float("inf"))
    for _ in range(repeat):
        for held in sizes:
            fastest[held] = min(fastest[held], _us_per_message(subject, held, sizes[-1] // held))
    ratios = {held: fastest[held] / fastest[sizes[0]] for held in sizes[1:]}
    return {
        "subject": subject.name,
        **{f"{held:,}": us for held, us in fastest.items()},
        **{f"ratio_{held:,}": ratio for held, ratio in ratios.items()},
        "worst_ratio": max(ratios.values()),
    }


def _us_per_message(subject: Subject, held: int, receivers: int) -> float:
    turns = zip(*(_calls(subject, held) for _ in range(receivers)), strict=True)
    calls = [call for turn in turns for call in turn]
    delivered = 0
    gc.collect()
    gc.disable()  # The collector's passes over what is held are linear too, but come in leaps.
    try:
        start = process_time()
        for call, arguments in calls:
            for effect in call(*arguments):
                delivered += isinstance(effect, Deliver)
        seconds = process_time() - start
    finally:
        gc.enable()
    assert delivered == held * receivers, f"{subject.name}: {delivered} deliveries"
    return seconds / delivered * 1e6


def _calls(subject: Subject, count: int) -> list[tuple[Any, tuple[Any, ...]]]:
    """What is to happen to a fresh receiver."""
    stack = catalog.build(subject.ordering, subject.dissemination, subject.receiver, SIZE)
    return [
        (stack.timer, (packet,)) if source == TIMER else (stack.receive, (source, packet))
        for source, packet in subject.arrivals(count)
    ]


if __name__ == "__main__":
    main()
