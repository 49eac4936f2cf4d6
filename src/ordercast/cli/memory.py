"""Too little memory, here or in a worker of Spark's."""

from __future__ import annotations

import re
import resource

__all__ = ["lacks_memory", "too_little_memory"]

_IN_A_WORKER = re.compile(r"^(?!java)(?:[\w.]+\.)?\w*MemoryError\b", re.MULTILINE)
"""The last line of a worker's traceback, which Spark tells as the words of an error of its own."""


def lacks_memory(error: Exception) -> bool:
    if isinstance(error, MemoryError):
        return True
    return type(error).__module__.startswith("pyspark.") and bool(_IN_A_WORKER.search(str(error)))


def too_little_memory() -> str:
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    more = "let this machine, or the one where Spark's workers are, have more to spare"
    if limit != resource.RLIM_INFINITY:
        more = f"a process may have {limit / 2**30:.1f} GiB here (ulimit -v): allow more"
    return f"there is not enough memory for this: {more}, or give it less to do at once"
