"""What a program asks of `ordercast.join`, looked at before anything is opened.

A typing slip would otherwise show late, or never: a misspelt `sync` is a promise that nobody keeps.
"""

from __future__ import annotations

from pathlib import Path

from ordercast.errors import UsageError
from ordercast.runtime.keys import KeyFiles
from ordercast.runtime.settings import Settings

__all__ = ["check_wishes"]

SYNCS = ("write", "disk")


def check_wishes(
    *,
    listen: object,
    keys: object,
    insecure: object,
    journal: object,
    sync: object,
    replay_from: object,
    trace: object,
    timeout_s: object,
    on_progress: object,
    settings: object,
) -> None:
    """Raises a sentence for the first wish that makes no sense."""
    for name, place in {"keys": keys, "journal": journal, "trace": trace}.items():
        if not isinstance(place, str | Path | KeyFiles | None):
            raise UsageError(f"{name}={place!r}: give a directory, as a str or a Path")
    if not isinstance(insecure, bool):
        raise UsageError(f"insecure={insecure!r}: give True or False")
    if insecure and keys is not None:
        raise UsageError(
            "keys are for TLS, and insecure=True is for going without: leave one of them out"
        )
    if not isinstance(listen, str | None):
        raise UsageError(f"listen={listen!r}: give 'host:port' or a host")
    if on_progress is not None and not callable(on_progress):
        raise UsageError(f"on_progress={on_progress!r}: give a function, which gets a Presence")
    if sync not in SYNCS:
        raise UsageError(f"sync={sync!r}: choose one of 'write' and 'disk'")
    if sync == "disk" and journal is None:
        raise UsageError("without a journal nothing is kept on disk: give journal=DIR as well")
    if replay_from is not None:
        if journal is None:
            raise UsageError(
                "without a journal there is nothing to replay: give journal=DIR as well"
            )
        if type(replay_from) is not int or replay_from < 1:
            raise UsageError(f"replay_from={replay_from!r}: give a position, from 1 on")
    if not isinstance(timeout_s, int | float) or not timeout_s > 0:
        raise UsageError(f"timeout_s={timeout_s!r}: give a number of seconds, more than 0")
    if settings is not None and not isinstance(settings, Settings):
        raise UsageError(
            f"settings={settings!r}: give an ordercast.Settings, such as "
            "ordercast.Settings(window_bytes=65536)"
        )
