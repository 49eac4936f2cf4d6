"""What verbs share in front of a person: progress, and the table of verdicts."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from ordercast.trace.verdicts import PROPERTIES, Judgement, Verdict

__all__ = ["Steps", "duration", "print_judgement", "steps"]

WITNESSES_SHOWN = 5
_LOOKS = {"holds": ("✔", "green"), "violated": ("✘", "bold red"), "unknown": ("?", "yellow")}


class Steps:
    """Says what is going on: a moving bar on a terminal, one line per step elsewhere."""

    def __init__(self, bar: Progress | None) -> None:
        self._bar = bar
        self._task = None if bar is None else bar.add_task("", total=None)

    def begin(self, what: str, *, total: int | None = None) -> None:
        if self._bar is None or self._task is None:
            print(f"{what} …", file=sys.stderr, flush=True)
        else:
            self._bar.reset(self._task, description=what, total=total)

    def advance_to(self, done: int) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done)


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
    """The verdicts as a table: one run in full, many runs summed up."""
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)
    if judgement.runs == 1:
        console.print(_one_run(judgement))
    else:
        console.print(_many_runs(judgement))
        _print_witnesses(judgement, console)
    console.print(_headline(judgement))


def _headline(judgement: Judgement) -> Text:
    runs = "" if judgement.runs == 1 else f" in every one of {judgement.runs} runs"
    return Text.assemble(
        "Order held: ",
        (f"{judgement.order_held}{runs}", "bold"),
        ". What was promised: ",
        _verdict(judgement.outcome),
        ".",
    )


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


def _many_runs(judgement: Judgement) -> Table:
    title = f"{judgement.runs} runs, {judgement.events} events"
    table = Table(title=title, title_justify="left")
    table.add_column("property", no_wrap=True)
    for outcome in _LOOKS:
        table.add_column(f"runs: {outcome}", justify="right")
    table.add_column("checked", justify="right")
    table.add_column("violations", justify="right")
    for name in PROPERTIES:
        found = [verdict for verdict in judgement.verdicts if verdict.property == name]
        if not found:
            continue
        counts: Counter[str] = Counter(verdict.verdict for verdict in found)
        cells = [
            Text(str(counts[outcome]), style=look[1] if counts[outcome] else "dim")
            for outcome, look in _LOOKS.items()
        ]
        checked = sum(verdict.checked for verdict in found)
        table.add_row(name, *cells, str(checked), str(sum(v.violations for v in found)))
    return table


def _print_witnesses(judgement: Judgement, console: Console) -> None:
    broken = [
        verdict
        for verdict in judgement.verdicts
        if verdict.verdict != "holds" and verdict.property in judgement.promises[verdict.run]
    ]
    broken.sort(key=lambda verdict: verdict.verdict == "unknown")
    for verdict in broken[:WITNESSES_SHOWN]:
        console.print(
            Text.assemble(
                f"{verdict.run}: {verdict.property} ",
                _verdict(verdict.verdict),
                f": {_why(verdict)}",
            )
        )
    if len(broken) > WITNESSES_SHOWN:
        console.print(f"… and {len(broken) - WITNESSES_SHOWN} more (all of them with --json)")


def _verdict(outcome: str) -> Text:
    icon, style = _LOOKS[outcome]
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
