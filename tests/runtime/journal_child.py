"""A process that appends and commits until it is killed: `python -m tests.runtime.journal_child`.

Its state is a count and a checksum over all that was appended; a record is a count and filling.
It says `T count` on stdout for every commit that is safe. Its arguments: directory, policy, seed.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from struct import Struct
from zlib import crc32

from ordercast.runtime.journal import Journal

IDENTITY = {"group": "test", "member": "a"}
STATE = Struct("<QI")
SEGMENT_BYTES = 30_000


class State:
    """What a deterministic machine would be: its state follows from the records alone."""

    def __init__(self, snapshot: bytes = STATE.pack(0, 0)) -> None:
        self.count, self.checksum = STATE.unpack(snapshot)

    def snapshot(self) -> bytes:
        return STATE.pack(self.count, self.checksum)

    def take(self, record: bytes) -> None:
        assert int.from_bytes(record[:8], "little") == self.count + 1
        assert record[8:] == filling(self.count + 1)
        self.count += 1
        self.checksum = crc32(record, self.checksum)


def filling(count: int) -> bytes:
    """Of any length, from none to many pages; zeros at times, to look like holes."""
    random = Random(count)
    length = random.choice((0, 3, random.randrange(100), random.randrange(3000)))
    if random.random() < 0.01:
        length = random.randrange(1_000_000)
    return bytes(length) if random.random() < 0.2 else random.randbytes(length)


def records(state: State, random: Random) -> Iterator[bytes]:
    for _ in range(random.choice((1, 1, 2, random.randrange(1, 40)))):
        record = (state.count + 1).to_bytes(8, "little") + filling(state.count + 1)
        state.take(record)
        yield record


def recover(journal: Journal) -> State:
    if journal.recovered is None:
        return State()
    state = State(journal.recovered.snapshot)
    for record in journal.recovered.records():
        state.take(record)
    return state


def say(count: int) -> None:
    os.write(sys.stdout.fileno(), b"T %d\n" % count)


async def main(directory: Path, policy: str, seed: str) -> None:
    random = Random(seed)
    journal = Journal(
        directory,
        identity=IDENTITY,
        sync=policy,  # type: ignore[arg-type]
        segment_bytes=SEGMENT_BYTES,
        keep_bytes=2 * SEGMENT_BYTES,
    )
    state = recover(journal)
    assert journal.taken <= state.count
    if journal.recovered is None:
        journal.start(state.snapshot())
    say(state.count)
    while True:
        for record in records(state, random):
            middle = len(record) // 2
            journal.append(record[:middle], record[middle:])
        if journal.full:
            journal.cut(state.snapshot())
        journal.commit(partial(safe, journal, state.count))
        if policy == "disk" or random.random() < 0.01:
            await asyncio.sleep(random.choice((0, 0, 0.0005)))


def safe(journal: Journal, count: int) -> None:
    journal.mark(count)
    say(count)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:]))
