"""How many files a process may have open: too few are told before anything is begun with them."""

from __future__ import annotations

import os
import resource
from contextlib import ExitStack

__all__ = ["require_open_files", "too_few_files"]


def require_open_files(count: int) -> None:
    """Raises the system's error if so many more cannot be opened. What is half begun then, an event
    loop or a process, complains at length."""
    with ExitStack() as opened:
        for _ in range(count):
            opened.enter_context(open(os.devnull, "rb", buffering=0))


def too_few_files() -> str:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return (
        f"too many open files: this process may have {limit} (ulimit -n): allow more, such as "
        f"with ulimit -n {max(1024, 2 * limit)}, and start it again"
    )
