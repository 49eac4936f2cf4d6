"""How fast a trace is judged, next to what else could judge it: `python -m benchmarks.pipeline`."""
