"""Does it cost more to hold a message when many others are held already? It must not.

100,000 messages from 15 processes reach one receiver in the worst order, in batches of 1,000,
10,000 and 100,000: nothing of a batch is delivered before nearly all of it is there. Every row
handles the same messages, so that only the number held at once differs. Printed are µs of processor
time per message, and the ratio to batches of 1,000; a ratio above 1.5 is a path that is not linear,
and the exit code tells.

example:
  python -m benchmarks.holding
  python -m benchmarks.holding --only causal --messages 30000
"""

from __future__ import annotations

import gc
import sys
from time import process_time

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
    show("µs per message, by how many are held at once", rows, as_json=chosen.json)
    sys.exit(any(row["worst_ratio"] > LIMIT for row in rows))


def _row(subject: Subject, held: list[int], repeat: int) -> Row:
    fastest = dict.fromkeys(held, float("inf"))
    for _ in range(repeat):
        for batch in held:
            fastest[batch] = min(fastest[batch], _us_per_message(subject, held[-1], batch))
    ratios = [fastest[batch] / fastest[held[0]] for batch in held[1:]]
    return {
        "subject": subject.name,
        **{f"{batch:,}": us for batch, us in fastest.items()},
        **{f"ratio_{batch:,}": ratio for batch, ratio in zip(held[1:], ratios, strict=True)},
        "worst_ratio": max(ratios),
    }


def _us_per_message(subject: Subject, count: int, batch: int) -> float:
    stack = catalog.build(subject.ordering, subject.dissemination, subject.receiver, SIZE)
    batches = list(subject.batches(count, batch))
    delivered = 0
    gc.collect()
    gc.disable()  # The collector's passes over what is held are linear too, but come in leaps.
    try:
        start = process_time()
        for arrivals in batches:
            for source, packet in arrivals:
                effects = stack.timer(packet) if source == TIMER else stack.receive(source, packet)
                for effect in effects:
                    delivered += isinstance(effect, Deliver)
        seconds = process_time() - start
    finally:
        gc.enable()
    assert delivered == count, f"{subject.name}: {delivered} of {count} delivered"
    return seconds / count * 1e6


if __name__ == "__main__":
    main()
