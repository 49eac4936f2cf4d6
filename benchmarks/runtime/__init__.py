"""Groups of real processes, next to the limit and to peers: `python -m benchmarks.runtime`."""
