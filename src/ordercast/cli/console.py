"""What verbs share in front of a person: progress, and the table of verdicts."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from ordercast.trace.verdicts import ORDERS, Judgement, Outcome, Summary, Verdict

__all__ = [
    "LOOKS",
    "Steps",
    "duration",
    "print_judgement",
    "print_skipped",
    "print_summary",
    "steps",
]

TELL_S = 10.0
"""Where nothing can move, a line tells how far it is once in so many seconds."""
LOOKS = {"holds": ("✔", "green"), "violated": ("✘", "bold red"), "unknown": ("?", "yellow")}


class Steps:
    """Says what is going on: a moving bar on a terminal, one line per step elsewhere."""

    def __init__(self, bar: Progress | None) -> None:
        self._bar = bar
        self._task = None if bar is None else bar.add_task("", total=None)
        self._told_at = time.monotonic()

    def begin(self, what: str, *, total: int | None = None) -> None:
        if self._bar is None or self._task is None:
            print(f"{what} …", file=sys.stderr, flush=True)
        else:
            self._bar.reset(self._task, description=what, total=total)

    def advance_to(self, done: int) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done)

    def measure(self, done: int, total: int) -> None:
        """So much of so much, both of which may change; elsewhere a line now and then."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, total=total)
        elif time.monotonic() - self._told_at > TELL_S:
            self._told_at = time.monotonic()
            print(f"… {done} of {total} tasks", file=sys.stderr, flush=True)

    def note(self, what: str) -> None:
        """Something has happened meanwhile."""
        if self._bar is None:
            print(what, file=sys.stderr, flush=True)
        else:
            self._bar.console.print(Text(what))


@contextmanager
def steps() -> Iterator[Steps]:
    if not sys.stderr.isatty():
        yield Steps(None)
        return
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        yield Steps(bar)


def print_judgement(judgement: Judgement) -> None:
    """The verdicts on one run, in full."""
    console = _console()
    console.print(_one_run(judgement))
    judged = {verdict.property for verdict in judgement.verdicts}
    promised = any(judgement.promises.values())
    held = judgement.order_held
    console.print(_headline(held, judgement.outcome, judged=judged, promised=promised))


def print_summary(summary: Summary) -> None:
    """The verdicts on many runs, summed up."""
    console = _console()
    console.print(_many_runs(summary))
    _print_worst(summary, console)
    judged = {tally.property for tally in summary.tallies}
    held = f"{summary.order_held} in every one of {summary.runs} runs"
    promised = summary.promises > 0
    console.print(_headline(held, summary.outcome, judged=judged, promised=promised))


def print_skipped(summary: Summary, *, to_stderr: bool) -> None:
    """What could not be used, if anything was left out."""
    if not summary.skipped:
        return
    console = _console(to_stderr=to_stderr)
    what = "1 row or file" if summary.skipped == 1 else f"{summary.skipped} rows or files"
    console.print(f"Left out as unusable: {what}. The verdicts cover the rest, as logs with holes.")
    for place in summary.places:
        console.print(Text(f"  {place}"), soft_wrap=True)
    if summary.skipped > len(summary.places):
        console.print(f"  … and {summary.skipped - len(summary.places)} more")


def _console(*, to_stderr: bool = False) -> Console:
    stream = sys.stderr if to_stderr else sys.stdout
    width = None if stream.isatty() else 140
    return Console(highlight=False, width=width, stderr=to_stderr)


def _headline(held: str, outcome: Outcome, *, judged: Collection[str], promised: bool) -> Text:
    """Without the order that held, if not all orders were judged; and likewise."""
    order = Text.assemble("Order held: ", (held, "bold"), ". ")
    if not promised:
        verdict = Text("Nothing of what was judged was promised.")
    else:
        verdict = Text.assemble("What was promised: ", _verdict(outcome), ".")
    return order + verdict if set(ORDERS[1:]) <= set(judged) else verdict


def _one_run(judgement: Judgement) -> Table:
    run = judgement.verdicts[0].run if judgement.verdicts else ""
    table = Table(title=f"{run}: {judgement.events} events", title_justify="left")
    table.add_column("property", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("checked", justify="right")
    table.add_column("violations", justify="right")
    table.add_column("why")
    for verdict in judgement.verdicts:
        promised = verdict.property in judgement.promises[verdict.run]
        table.add_row(
            Text(verdict.property, style="" if promised else "dim"),
            _verdict(verdict.verdict),
            f"{verdict.checked}",
            f"{verdict.violations}",
            Text(" ".join(filter(None, [_why(verdict), "" if promised else "(not promised)"]))),
        )
    return table


def _many_runs(summary: Summary) -> Table:
    title = f"{summary.runs} runs, {summary.events} events"
    table = Table(title=title, title_justify="left")
    table.add_column("property", no_wrap=True)
    for outcome in LOOKS:
        table.add_column(f"runs: {outcome}", justify="right")
    table.add_column("checked", justify="right")
    table.add_column("violations", justify="right")
    for tally in summary.tallies:
        counts = (tally.holds, tally.violated, tally.unknown)
        cells = [
            Text(str(count), style=style if count else "dim")
            for count, (_, style) in zip(counts, LOOKS.values(), strict=True)
        ]
        table.add_row(tally.property, *cells, str(tally.checked), str(tally.violations))
    return table


def _print_worst(summary: Summary, console: Console) -> None:
    for verdict in summary.worst:
        console.print(
            Text.assemble(
                f"{verdict.run}: {verdict.property} ",
                _verdict(verdict.verdict),
                f": {_why(verdict)}",
            )
        )
    if summary.broken > len(summary.worst):
        console.print(f"… and {summary.broken - len(summary.worst)} more (all of them with --json)")


def _verdict(outcome: str) -> Text:
    icon, style = LOOKS[outcome]
    return Text(f"{icon} {outcome}", style=style)


def _why(verdict: Verdict) -> str:
    if verdict.witness is not None:
        return verdict.witness.sentence
    return "nothing to check" if verdict.checked == 0 else ""


def duration(us: float) -> str:
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if us >= size:
            return f"{us / size:.1f} {unit}"
    return f"{us:.0f} µs"
