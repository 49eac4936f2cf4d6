"""A process that ends with the one that started it, even while it is stopped.

The end of a pipe tells a process that its parent is gone, if it runs. One that a SIGSTOP holds
would stay for ever, so on Linux the kernel is asked to kill it; elsewhere the pipe has to do.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

__all__ = ["end_with"]

_PR_SET_PDEATHSIG = 1


def end_with(parent: int) -> bool:
    """From now on this process is killed when the thread that started it ends. False if the
    parent ended before that could be arranged: then nobody will be told any more."""
    if sys.platform == "linux":
        # Where a sandbox forbids it, the pipe remains, as on other systems.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL))
    return os.getppid() == parent
