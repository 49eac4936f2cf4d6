"""Logs that members of a group wrote while they ran: put together before anything is judged."""

from __future__ import annotations

import sys
from pathlib import Path

from ordercast.cli.words import counted
from ordercast.trace.gather import Gathered, gathered

__all__ = ["gather_logs"]


def gather_logs(trace: Path) -> Path:
    """Where the trace is, if there are members' logs in this directory: here, or elsewhere."""

    def tell(found: Gathered) -> None:
        print(
            f"{trace}: {counted(found.events, 'event')} in the logs of "
            f"{counted(found.logs, 'member')} gathered",
            file=sys.stderr,
        )

    return gathered(trace, tell)
