"""One peer in a process of its own: prints a line of JSON each time it has checked the trace."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from time import perf_counter

from benchmarks.pipeline.peers import PEERS
from benchmarks.pipeline.workers import peak_mib


def main() -> None:
    name, trace, scratch, repeat = sys.argv[1:]
    check = PEERS[name].load(Path(scratch))
    for _ in range(int(repeat)):
        start = perf_counter()
        found = check(Path(trace))
        seconds = perf_counter() - start
        # Not getrusage: it would count what the parent had when it made us.
        figures = {"seconds": seconds, "found": found, "peak_mib": peak_mib(os.getpid())}
        print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
