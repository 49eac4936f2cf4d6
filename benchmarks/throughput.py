"""How much processor time each combination takes, next to no order over direct links.

A group exchanges messages in memory; then what happened to its members (every send, every packet,
every timer) happens again to fresh ones while the clock runs, so that only the protocols are timed.
Times are per packet and per delivery, as ratios to 'unordered over direct' in a group of the same
size, which is timed in turns with each combination.

example:
  python -m benchmarks.throughput
  python -m benchmarks.throughput --only majority --sizes 16
"""

from __future__ import annotations

import gc
from dataclasses import dataclass
from time import process_time

from benchmarks.group import Group, Input
from benchmarks.show import Row, options, progress, show
from ordercast.protocols import catalog

SIZES = (3, 5, 16)
BASE = "unordered", "direct"


@dataclass(frozen=True)
class Play:
    """What happened in a group, ready to happen again."""

    ordering: str
    dissemination: str
    size: int
    script: list[Input]
    packets: int
    deliveries: int

    @classmethod
    def record(cls, ordering: str, dissemination: str, size: int, packets: int) -> Play:
        # With more members more happens in the same time, and timers should not notice.
        group = Group(ordering, dissemination, size, packet_us=300 // size)
        script: list[Input] = []
        group.script = script
        group.run(packets)
        group.rest()
        return cls(ordering, dissemination, size, script, group.packets, group.delivered)

    def seconds(self) -> float:
        stacks = [
            catalog.build(self.ordering, self.dissemination, me, self.size)
            for me in range(self.size)
        ]
        calls = [(getattr(stacks[i.process], i.method), i.arguments) for i in self.script]
        gc.collect()
        gc.disable()
        try:
            start = process_time()
            for call, arguments in calls:
                call(*arguments)
            return process_time() - start
        finally:
            gc.enable()


def main() -> None:
    parser = options(__doc__, SIZES)
    parser.add_argument("--packets", type=int, default=20_000, metavar="P", help="in each row")
    parser.add_argument("--repeat", type=int, default=5, metavar="R", help="and keep the fastest")
    chosen = parser.parse_args()
    bases = {size: Play.record(*BASE, size, chosen.packets) for size in chosen.sizes}
    names = {
        f"{ordering} over {dissemination}, n = {size}": (ordering, dissemination, size)
        for ordering, dissemination in catalog.combinations()
        for size in chosen.sizes
        if chosen.only in f"{ordering} {dissemination}"
    }
    rows = []
    for name in progress(names):
        play = Play.record(*names[name], chosen.packets)
        rows.append(_row(play, bases[play.size], chosen.repeat))
    show("processor time, as ratios to unordered over direct", rows, as_json=chosen.json)


def _row(play: Play, base: Play, repeat: int) -> Row:
    ours, theirs = float("inf"), float("inf")
    for _ in range(repeat):
        theirs = min(theirs, base.seconds())
        ours = min(ours, play.seconds())
    return {
        "ordering": play.ordering,
        "dissemination": play.dissemination,
        "n": play.size,
        "packet_us": ours / play.packets * 1e6,
        "packet_ratio": (ours / play.packets) / (theirs / base.packets),
        "packets_per_delivery": play.packets / play.deliveries,
        "delivery_ratio": (ours / play.deliveries) / (theirs / base.deliveries),
    }


if __name__ == "__main__":
    main()
