"""How many records a second a member's journal takes, by records in a commit.

Records of 100 bytes, on the file system of the given directory. "write" commits one after the
other; "disk" waits for each commit, and, as "disk, not waiting", lets 64 be under way, which share
syncs. The last column is how fast a segment is read back.

example:
  python -m benchmarks.journal
  python -m benchmarks.journal --only disk --directory /var/tmp
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Literal

from benchmarks.show import Row, options, progress, show
from ordercast.runtime.journal import Journal

RECORD = bytes(range(100))
BATCHES = (1, 64, 1024)
POLICIES: dict[str, tuple[Literal["write", "disk"], int]] = {
    "write": ("write", 1),
    "disk": ("disk", 1),
    "disk, not waiting": ("disk", 64),
}


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, metavar="S", help="for each figure")
    parser.add_argument("--directory", type=Path, metavar="DIR", help="where to write")
    chosen = parser.parse_args()
    names = [name for name in POLICIES if chosen.only in name]
    rows = []
    for name in progress(names):
        row: Row = {"policy": name}
        for batch in BATCHES:
            with tempfile.TemporaryDirectory(dir=chosen.directory) as place:
                speed = asyncio.run(_write(Path(place), *POLICIES[name], batch, chosen.seconds))
                row[f"batches of {batch}_records/s"] = round(speed)
                row["read back_records/s"] = round(_read(Path(place)))
        rows.append(row)
    show("records of 100 bytes", rows, as_json=chosen.json)


async def _write(
    place: Path, policy: Literal["write", "disk"], under_way: int, batch: int, seconds: float
) -> float:
    journal = Journal(place, identity={}, sync=policy, segment_bytes=256 << 20, keep_bytes=0)
    journal.start(b"")
    room = asyncio.Semaphore(under_way)
    records = 0
    start = perf_counter()
    while perf_counter() - start < seconds:
        for _ in range(batch):
            journal.append(RECORD)
        await room.acquire()
        journal.commit(room.release)
        records += batch
        if journal.full:
            journal.cut(b"")
    for _ in range(under_way):
        await room.acquire()
    speed = records / (perf_counter() - start)
    journal.close()
    return speed


def _read(place: Path) -> float:
    start = perf_counter()
    journal = Journal(place, identity={})
    assert journal.recovered is not None
    records = sum(1 for _ in journal.recovered.records())
    speed = records / (perf_counter() - start)
    journal.close()
    return speed


if __name__ == "__main__":
    main()
