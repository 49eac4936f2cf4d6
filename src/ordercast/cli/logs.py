"""Logs that members of a group wrote while they ran: put together before anything is judged."""

from __future__ import annotations

import sys
from pathlib import Path

from ordercast.trace.gather import gather, is_to_be_gathered

__all__ = ["gather_logs"]


def gather_logs(trace: Path) -> None:
    """If there are members' logs in this directory, make it a trace."""
    if is_to_be_gathered(trace):
        gathered = gather(trace)
        print(
            f"{trace}: {gathered.events} events in the logs of {gathered.logs} members gathered",
            file=sys.stderr,
        )
