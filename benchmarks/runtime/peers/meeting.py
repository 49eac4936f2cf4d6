"""Members of a peer that has no notion of a group wait for each other by files."""

from __future__ import annotations

import asyncio

from benchmarks.runtime.subject import Setting

__all__ = ["everyone_is_here"]


async def everyone_is_here(setting: Setting) -> None:
    """Call it when this member can receive; returns when all can."""
    (setting.directory / f"here-{setting.me}").touch()
    while len(list(setting.directory.glob("here-*"))) < setting.n:  # noqa: ASYNC110
        await asyncio.sleep(0.02)
