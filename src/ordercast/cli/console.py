"""What verbs share in front of a person: a terminal of some width, and the table of verdicts."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import NoReturn

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ordercast.cli.words import counted
from ordercast.readable import readable
from ordercast.trace.verdicts import ORDERS, TOTAL, Judgement, Outcome, Summary, Verdict

__all__ = [
    "LOOKS",
    "console",
    "print_asked_too",
    "print_judgement",
    "print_skipped",
    "print_summary",
]

PIPED_COLUMNS = 140
NARROW_COLUMNS = 90
"""In fewer, sentences do not fit beside a table and stand below it."""
LOOKS = {"holds": ("✔", "green"), "violated": ("✘", "bold red"), "unknown": ("?", "yellow")}


class _Console(Console):
    def on_broken_pipe(self) -> NoReturn:
        """rich itself would end with exit code 1, which means violated."""
        raise BrokenPipeError


def console(*, to_stderr: bool = False, piped_columns: int = PIPED_COLUMNS) -> Console:
    """As wide as the terminal, or as COLUMNS says, or wide enough for sentences."""
    stream = sys.stderr if to_stderr else sys.stdout
    known = stream.isatty() or os.environ.get("COLUMNS", "").isdecimal()
    return _Console(highlight=False, width=None if known else piped_columns, stderr=to_stderr)


def print_judgement(judgement: Judgement, *, asked: bool = False) -> None:
    """The verdicts on one run, in full. `asked`: what must hold was asked for, not promised."""
    out = console()
    narrow = out.width < NARROW_COLUMNS
    run = judgement.verdicts[0].run if judgement.verdicts else ""
    # A title of the table itself would be filled up with blanks, to its width.
    title = f"{readable(run)}: {counted(judgement.events, 'event')}"
    out.print(Text(title, style="italic"), soft_wrap=True)
    out.print(_one_run(judgement, narrow=narrow))
    if narrow:
        _print_reasons(judgement, out)
    outcomes = {verdict.property: verdict.verdict for verdict in judgement.verdicts}
    promised = any(judgement.promises.values())
    held = (name for name, outcome in outcomes.items() if outcome == "holds")
    words = _held_in_words(judgement.order_held, held)
    out.print(_headline(words, judgement.outcome, outcomes, promised=promised, asked=asked))


def print_summary(summary: Summary, *, asked: bool = False) -> None:
    """The verdicts on many runs, summed up. `asked` as above."""
    out = console()
    title = f"{counted(summary.runs, 'run')}, {counted(summary.events, 'event')}"
    out.print(Text(title, style="italic"), soft_wrap=True)
    out.print(_many_runs(summary))
    _print_worst(summary, out)
    judged = {tally.property for tally in summary.tallies}
    held = (tally.property for tally in summary.tallies if tally.holds == summary.runs)
    words = f"{_held_in_words(summary.order_held, held)} in every one of {summary.runs} runs"
    promised = summary.promises > 0
    out.print(_headline(words, summary.outcome, judged, promised=promised, asked=asked))


def print_asked_too(verdicts: Iterable[Verdict]) -> None:
    """What was asked for besides, which has no place in the table."""
    for verdict in verdicts:
        told = _verdict(verdict.verdict)
        console().print(Text.assemble(f"Asked for as well, {verdict.property}: ", told, "."))


def _held_in_words(order_held: str, held: Iterable[str]) -> str:
    """The rung of the ladder, and total order, which stands beside it; `held` are properties."""
    return f"{order_held}, and total order" if set(TOTAL) <= set(held) else order_held


def print_skipped(summary: Summary, *, to_stderr: bool) -> None:
    """What could not be used, if anything was left out."""
    if not summary.skipped:
        return
    out = console(to_stderr=to_stderr)
    what = "1 row or file" if summary.skipped == 1 else f"{summary.skipped} rows or files"
    out.print(f"Left out as unusable: {what}. The verdicts cover the rest, as logs with holes.")
    for place in summary.places:
        out.print(Text(f"  {readable(place)}"), soft_wrap=True)
    if summary.skipped > len(summary.places):
        out.print(f"  … and {summary.skipped - len(summary.places)} more")


def _headline(
    held: str, outcome: Outcome, judged: Iterable[str], *, promised: bool, asked: bool
) -> Text:
    """Without the order that held, if not all orders were judged; and likewise."""
    order = Text.assemble("Order held: ", (held, "bold"), ". ")
    if not promised:
        verdict = Text("Nothing of what was judged was promised.")
    else:
        what = "asked for" if asked else "promised"
        verdict = Text.assemble(f"What was {what}: ", _verdict(outcome), ".")
    return order + verdict if set(ORDERS[1:]) <= set(judged) else verdict


def _one_run(judgement: Judgement, *, narrow: bool) -> Table:
    table = Table()
    table.add_column("property", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("checked", justify="right")
    table.add_column("violations", justify="right")
    if not narrow:
        table.add_column("why")
    for verdict in judgement.verdicts:
        promised = verdict.property in judgement.promises[verdict.run]
        reason = Text(" ".join(filter(None, [_why(verdict), "" if promised else _UNPROMISED])))
        table.add_row(
            Text(verdict.property, style="" if promised else "dim"),
            _verdict(verdict.verdict),
            f"{verdict.checked}",
            f"{verdict.violations}",
            *([] if narrow else [reason]),
        )
    return table


_UNPROMISED = "(not promised)"


def _print_reasons(judgement: Judgement, out: Console) -> None:
    """What does not fit into a narrow table."""
    for verdict in judgement.verdicts:
        if reason := _why(verdict):
            out.print(Text.assemble((verdict.property, "bold"), f": {reason}"))
    unpromised = [
        v.property for v in judgement.verdicts if v.property not in judgement.promises[v.run]
    ]
    if unpromised:
        out.print(Text(f"Not promised: {', '.join(unpromised)}."))


def _many_runs(summary: Summary) -> Table:
    table = Table()
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


def _print_worst(summary: Summary, out: Console) -> None:
    for verdict in summary.worst:
        out.print(
            Text.assemble(
                f"{readable(verdict.run)}: {verdict.property} ",
                _verdict(verdict.verdict),
                f": {_why(verdict)}",
            )
        )
    if summary.broken > len(summary.worst):
        out.print(f"… and {summary.broken - len(summary.worst)} more (all of them with --json)")


def _verdict(outcome: str) -> Text:
    icon, style = LOOKS[outcome]
    return Text(f"{icon} {outcome}", style=style)


def _why(verdict: Verdict) -> str:
    if verdict.witness is not None:
        return readable(verdict.witness.sentence)
    return "nothing to check" if verdict.checked == 0 else ""
