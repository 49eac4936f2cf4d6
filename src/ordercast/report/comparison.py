"""The page of two runs side by side, with what differs on top."""

from __future__ import annotations

from ordercast.report.differences import (
    VerdictPair,
    cost_pairs,
    deliveries_that_differ,
    set_up,
    traffic,
    verdict_pairs,
)
from ordercast.report.history import History
from ordercast.report.limits import Limits
from ordercast.report.runs import view_of_run
from ordercast.report.sample import Sample
from ordercast.report.script import script
from ordercast.report.sheet import template
from ordercast.report.summary import Headline
from ordercast.report.words import capital, count, listing

__all__ = ["compare"]

NAMED_MAX = 3


def compare(left: Sample, right: Sample, *, limits: Limits | None = None) -> str:
    limits = limits or Limits()
    verdicts = verdict_pairs(left, right)
    histories = History(left.trace), History(right.trace)
    whole = not (left.partial or right.partial)
    top = _headline(verdicts, left, right)
    return template("compare.html").render(
        title=top.text,
        eyebrow="two runs",
        headline=top,
        sources=[left.source, right.source],
        verdicts=[pair for pair in verdicts if pair.differs],
        same_verdicts=[pair for pair in verdicts if not pair.differs],
        set_up=set_up(left, right),
        traffic=traffic(*histories) if whole else "",
        deliveries=list(deliveries_that_differ(*histories)) if whole else [],
        costs=cost_pairs(*histories) if whole else [],
        views=[
            view_of_run(sample, name=f"run-{letter}", limits=limits, pair="runs")
            for letter, sample in (("a", left), ("b", right))
        ],
        whole=whole,
        script=script(),
    )


def _headline(verdicts: list[VerdictPair], left: Sample, right: Sample) -> Headline:
    """In words what came out differently, of what was promised to either."""
    differing = [pair for pair in verdicts if pair.differs]
    same = len(verdicts) - len(differing)
    detail = f"{count(len(differing), 'verdict')} differ, {same:,} are the same."
    standing = left.outcome if left.outcome == right.outcome else "violated"
    if not differing:
        return Headline("The verdicts on both runs are the same", detail, standing)
    told = []
    for held, broke, pairs in (
        ("A", "B", [p for p in differing if p.left == "holds"]),
        ("B", "A", [p for p in differing if p.right == "holds"]),
    ):
        words = [pair.words for pair in pairs]
        if len(words) > NAMED_MAX:
            words = [*words[:NAMED_MAX], f"{len(words) - NAMED_MAX} more"]
        if words:
            told.append(f"{listing(words)} held in {held} and not in {broke}")
    text = "; ".join(told) or "some verdicts could be settled in one run only"
    return Headline(capital(text), detail, standing)
