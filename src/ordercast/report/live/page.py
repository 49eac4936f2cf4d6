"""The page of a live run, and the block that ends it."""

from __future__ import annotations

from collections.abc import Sequence

from ordercast.report.digest import digest_of
from ordercast.report.script import assembled
from ordercast.report.sheet import template
from ordercast.report.summary import headline, ladder, rows
from ordercast.trace.verdicts import Judgement

__all__ = ["live_page", "verdict_block"]

_FILES = ("flow", "waits", "troubles", "members", "talk", "start")


def live_page(*, algorithm: str, processes: Sequence[str], run: str) -> str:
    return template("live.html").render(
        title=f"ordercast live: {algorithm}",
        algorithm=algorithm,
        processes=processes,
        run=run,
        script=assembled("scripts/elements", *(f"live/scripts/{name}" for name in _FILES)),
    )


def verdict_block(judgement: Judgement) -> str:
    """What was promised, and what of it held: put on top of the page when the run is judged."""
    digest = digest_of(judgement, lines=1)
    return template("verdict.html").render(
        headline=headline(digest), ladder=ladder(digest), rows=rows(digest), several=False
    )
