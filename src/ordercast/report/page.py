"""The page: one file that needs nothing else and asks nothing of any network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from ordercast.errors import UsageError
from ordercast.report.facts import facts_of_all
from ordercast.report.runs import Limits, Proof, RunView, view_of_run
from ordercast.report.summary import by_run, headline, kept, ladder, outcome_of, rows
from ordercast.report.words import count
from ordercast.trace import Trace
from ordercast.trace.verdicts import Judgement, Outcome, Verdict, order_held

__all__ = ["Limits", "render", "write"]

_SEVERITY: dict[Outcome, int] = {"violated": 0, "unknown": 1, "holds": 2}


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run in the table of runs."""

    name: str
    anchor: str
    outcome: Outcome
    order_held: str
    events: str


def render(
    judgement: Judgement,
    traces: Sequence[Trace],
    *,
    title: str | None = None,
    limits: Limits | None = None,
) -> str:
    """`traces` may be fewer than the judged runs: those are told in words and not drawn."""
    limits = limits or Limits()
    judged = by_run(judgement)
    ordered = _worst_first(judgement, judged, traces)
    views = [
        view_of_run(
            trace,
            judged.get(trace.manifest.run, []),
            judgement.promises.get(trace.manifest.run, ()),
            name=f"run-{number}",
            limits=limits,
        )
        for number, trace in enumerate(ordered[: limits.runs], start=1)
    ]
    lines = _run_lines(judgement, judged, ordered, views)
    top = headline(judgement)
    return _template().render(
        title=title or top.text,
        eyebrow=title or "",
        headline=top,
        facts=facts_of_all(judgement, traces),
        ladder=ladder(judgement),
        rows=rows(judgement),
        several=judgement.runs > 1,
        views=views,
        lead=_lead(views),
        lines=lines[: limits.run_lines],
        omissions=list(_omissions(judgement, ordered, lines, limits)),
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
    page = render(judgement, traces, title=title, limits=limits)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8", errors="replace", newline="\n")
    except OSError as error:
        raise UsageError(f"{path}: the report cannot be written: {error.strerror}") from None
    return path


def _lead(views: Sequence[RunView]) -> Proof | None:
    """The witness that the headline rests on: a reader should not have to look for it."""
    first = views[0].proofs[0] if views and views[0].proofs else None
    return first if first is not None and first.promised else None


def _worst_first(
    judgement: Judgement, judged: dict[str, list[Verdict]], traces: Sequence[Trace]
) -> list[Trace]:
    def severity(trace: Trace) -> int:
        return _SEVERITY[outcome_of(kept(judgement, judged.get(trace.manifest.run, [])))]

    return sorted(traces, key=severity)


def _run_lines(
    judgement: Judgement,
    judged: dict[str, list[Verdict]],
    ordered: Sequence[Trace],
    views: Sequence[RunView],
) -> list[RunLine]:
    anchors = {view.run: view.name for view in views}
    sizes = {trace.manifest.run: len(trace.events) for trace in ordered}
    found = [
        RunLine(
            name=run,
            anchor=anchors.get(run, ""),
            outcome=outcome_of(kept(judgement, verdicts)),
            order_held=order_held(verdicts),
            events=f"{sizes[run]:,}" if run in sizes else "",
        )
        for run, verdicts in judged.items()
    ]
    return sorted(found, key=lambda line: _SEVERITY[line.outcome])


def _omissions(
    judgement: Judgement, traces: Sequence[Trace], lines: Sequence[RunLine], limits: Limits
) -> Iterator[str]:
    if judgement.runs > len(traces):
        absent = count(judgement.runs - len(traces), "judged run")
        yield f"The events of {absent} were not given to the report, so they are not drawn."
    if len(traces) > limits.runs:
        yield (
            f"{limits.runs:,} of {count(len(traces), 'run')} are drawn, violated ones first; "
            f"{len(traces) - limits.runs:,} are left out."
        )
    if len(lines) > limits.run_lines:
        yield (
            f"The table lists {limits.run_lines:,} of {count(len(lines), 'run')}, violated ones "
            f"first; {len(lines) - limits.run_lines:,} are left out."
        )


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("ordercast.report", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )


def _template() -> Template:
    return _environment().get_template("page.html")
