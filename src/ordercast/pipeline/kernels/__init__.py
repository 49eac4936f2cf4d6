"""The checks themselves: plain loops over arrays, compiled when there is much to check.

No Spark and no Arrow here. A kernel takes one run's rows in order (by process, then position) and
fills in what it found; see `run` for how they fit together.
"""
