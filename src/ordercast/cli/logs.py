"""Logs that members of a group wrote while they ran: put together before anything is judged."""

from __future__ import annotations

import sys
from pathlib import Path

from ordercast.cli.words import counted
from ordercast.trace.gather import gather, is_to_be_gathered

__all__ = ["gather_logs"]


def gather_logs(trace: Path) -> None:
    """If there are members' logs in this directory, make it a trace."""
    if is_to_be_gathered(trace):
        gathered = gather(trace)
        print(
            f"{trace}: {counted(gathered.events, 'event')} in the logs of "
            f"{counted(gathered.logs, 'member')} gathered",
            file=sys.stderr,
        )
