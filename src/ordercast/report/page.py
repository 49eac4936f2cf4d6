"""The page: one file that needs nothing else and asks nothing of any network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ordercast.report.digest import SEVERITY, Digest, digest_of
from ordercast.report.facts import facts_of_all
from ordercast.report.limits import Limits
from ordercast.report.proofs import Proof
from ordercast.report.runs import RunView, view_of_run
from ordercast.report.sample import Sample, judged_in
from ordercast.report.script import script
from ordercast.report.sheet import save, template
from ordercast.report.summary import headline, ladder, rows
from ordercast.report.words import count
from ordercast.trace import Trace
from ordercast.trace.verdicts import Judgement

__all__ = ["Limits", "compose", "render", "write"]


def render(
    judgement: Judgement,
    traces: Sequence[Trace],
    *,
    title: str | None = None,
    limits: Limits | None = None,
) -> str:
    """`traces` may be fewer than the judged runs: those are told in words and not drawn."""
    limits = limits or Limits()
    judged = judged_in(judgement, [trace.manifest.run for trace in traces])
    samples = [
        Sample(trace, len(trace.events), about) for trace, about in zip(traces, judged, strict=True)
    ]
    return compose(
        digest_of(judgement, lines=limits.run_lines), samples, title=title, limits=limits
    )


def write(
    judgement: Judgement,
    traces: Sequence[Trace],
    path: Path,
    *,
    title: str | None = None,
    limits: Limits | None = None,
) -> Path:
    """The same page, into a file."""
    return save(render(judgement, traces, title=title, limits=limits), path)


def compose(
    digest: Digest,
    samples: Sequence[Sample],
    *,
    title: str | None = None,
    limits: Limits,
) -> str:
    """The page of what is known about all runs, and of samples of some of them."""
    ordered = sorted(samples, key=lambda sample: SEVERITY[sample.outcome])
    views = _views(ordered, limits)
    top = headline(digest)
    return template("page.html").render(
        title=title or top.text,
        eyebrow=title or "",
        headline=top,
        facts=facts_of_all(digest, [sample.trace for sample in samples]),
        ladder=ladder(digest),
        rows=rows(digest),
        several=digest.runs > 1,
        views=views,
        lead=_lead(views),
        lines=digest.lines,
        sizes={sample.trace.manifest.run: sample.events for sample in samples},
        anchors={view.run: view.name for view in views},
        omissions=list(_omissions(digest, ordered, limits)),
        script=script() if views else None,
    )


def _views(ordered: Sequence[Sample], limits: Limits) -> list[RunView]:
    """The worst runs, whole while the page has room for it."""
    views = []
    room = limits.page_events
    for number, sample in enumerate(ordered[: limits.runs], start=1):
        most = limits if len(sample.trace.events) <= room else limits.narrow()
        views.append(view_of_run(sample, name=f"run-{number}", limits=most))
        room -= min(len(sample.trace.events), most.events)
    return views


def _lead(views: Sequence[RunView]) -> Proof | None:
    """The witness that the headline rests on: a reader should not have to look for it."""
    first = views[0].proofs[0] if views and views[0].proofs else None
    return first if first is not None and first.promised else None


def _omissions(digest: Digest, samples: Sequence[Sample], limits: Limits) -> Iterator[str]:
    drawn = min(len(samples), limits.runs)
    if digest.runs > drawn:
        yield (
            f"{drawn:,} of {count(digest.runs, 'run')} are drawn, violated ones first; "
            f"{digest.runs - drawn:,} are left out."
        )
    if digest.runs > len(digest.lines):
        yield (
            f"The table lists {len(digest.lines):,} of {count(digest.runs, 'run')}, violated ones "
            f"first; {digest.runs - len(digest.lines):,} are left out."
        )
