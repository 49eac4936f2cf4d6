"""What a program asks of `ordercast.join`, looked at before anything is opened.

A typing slip would otherwise show late, or never: a misspelt `sync` is a promise that nobody keeps.
"""

from __future__ import annotations

from pathlib import Path

from ordercast.errors import UsageError
from ordercast.runtime.settings import Settings

__all__ = ["check_wishes"]

SYNCS = ("write", "disk")


def check_wishes(
    *,
    sync: object,
    journal: Path | str | None,
    replay_from: object,
    timeout_s: object,
    settings: object,
) -> None:
    """Raises a sentence for the first wish that makes no sense."""
    if sync not in SYNCS:
        raise UsageError(f"sync={sync!r}: choose one of 'write' and 'disk'")
    if sync == "disk" and journal is None:
        raise UsageError("without a journal nothing is kept on disk: give journal=DIR as well")
    if replay_from is not None:
        if journal is None:
            raise UsageError(
                "without a journal there is nothing to replay: give journal=DIR as well"
            )
        if not isinstance(replay_from, int) or replay_from < 1:
            raise UsageError(f"replay_from={replay_from!r}: give a position, from 1 on")
    if not isinstance(timeout_s, int | float) or not timeout_s > 0:
        raise UsageError(f"timeout_s={timeout_s!r}: give more than 0 seconds")
    if settings is not None and not isinstance(settings, Settings):
        raise UsageError(
            f"settings={settings!r}: give an ordercast.Settings, such as "
            "ordercast.Settings(window_bytes=65536)"
        )
