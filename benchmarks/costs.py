"""What a message costs in every combination of the catalog, counted in the simulator, no faults.

'slow': one broadcast (a message to one, for the synchronous ordering) at a time, and rest in
between. 'busy': every process sends two in each network delay. Packets, payload copies and control
bytes are per message, over all links; the delay is the mean from the user's wish to a delivery at
another process, in units of the mean network delay.

example:
  python -m benchmarks.costs --sizes 3 8
  python -m benchmarks.costs --only majority --json
"""

from __future__ import annotations

from statistics import fmean

from benchmarks.meter import Bill, busy, one_by_one
from benchmarks.show import Row, options, progress, show
from ordercast.protocols import catalog
from ordercast.simulator.plan import Network

NETWORK = Network(delay_us=(1_000, 20_000))
SIZES = (3, 5, 8, 16, 32, 64)


def main() -> None:
    chosen = options(__doc__, SIZES).parse_args()
    names = {
        f"{ordering} over {dissemination}, n = {size}": (ordering, dissemination, size)
        for ordering, dissemination in catalog.combinations()
        for size in chosen.sizes
        if chosen.only in f"{ordering} {dissemination}"
    }
    rows = [_row(*names[name]) for name in progress(names)]
    show("what a message costs", rows, as_json=chosen.json)


def _row(ordering: str, dissemination: str, size: int) -> Row:
    # In large groups every message is thousands of packets, and a few of them tell enough.
    few = max(2, 40 // size)
    slow = one_by_one(ordering, dissemination, size, messages=max(few, 4), network=NETWORK)
    crowd = busy(ordering, dissemination, size, messages=few, network=NETWORK)
    return {
        "ordering": ordering,
        "dissemination": dissemination,
        "n": size,
        **{f"{name}_slow": value for name, value in _per_message(slow).items()},
        **{f"{name}_busy": value for name, value in _per_message(crowd).items()},
    }


def _per_message(bill: Bill) -> Row:
    return {
        "packets": bill.packets / bill.messages,
        "copies": bill.payload_copies / bill.messages,
        "bytes": bill.control_bytes / bill.messages,
        "delay": fmean(bill.latencies_us) / fmean(NETWORK.delay_us),
    }


if __name__ == "__main__":
    main()
