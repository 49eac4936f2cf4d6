"""All verdicts summed up: a page costs the same for a hundred runs and a hundred thousand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ordercast.trace.verdicts import Judgement, Outcome, Verdict, order_held

__all__ = ["SEVERITY", "Digest", "RunLine", "Share", "digest_of", "outcome_of"]

SEVERITY: dict[Outcome, int] = {"violated": 0, "unknown": 1, "holds": 2}


@dataclass(frozen=True, slots=True)
class Share:
    """The verdicts on one property that came out the same."""

    property: str
    outcome: Outcome
    promised: bool
    runs: int
    checked: int
    violations: int


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run in the table of runs."""

    name: str
    outcome: Outcome
    """Of what was promised."""
    order_held: str
    events: int | None
    """None if only those that read the events can tell."""


@dataclass(frozen=True, slots=True)
class Digest:
    runs: int
    events: int
    order_held: str
    shares: tuple[Share, ...]
    told: dict[str, Verdict]
    """For each property the first witness of its worst outcome."""
    outcomes: dict[Outcome, int]
    """In how many runs the promises came out how."""
    promises: dict[frozenset[str], int]
    """What was promised, in how many runs."""
    lines: tuple[RunLine, ...]
    """The worst runs first; perhaps not all of them."""

    def on(self, name: str) -> list[Share]:
        return [share for share in self.shares if share.property == name]

    @property
    def kept(self) -> list[Share]:
        """What there is on promises."""
        return [share for share in self.shares if share.promised]

    def promised_in(self, name: str) -> int:
        return sum(runs for names, runs in self.promises.items() if name in names)


def outcome_of(outcomes: Iterable[Outcome]) -> Outcome:
    """The worst of them."""
    return min(outcomes, key=SEVERITY.__getitem__, default="holds")


def digest_of(judgement: Judgement, *, lines: int) -> Digest:
    """`lines` is how many runs the page lists."""
    by_run: dict[str, list[Verdict]] = {run: [] for run in judgement.promises}
    for verdict in judgement.verdicts:
        by_run.setdefault(verdict.run, []).append(verdict)
    found = [
        RunLine(
            name=run,
            outcome=outcome_of(
                v.verdict for v in verdicts if v.property in judgement.promises.get(run, ())
            ),
            order_held=order_held(verdicts),
            events=None,
        )
        for run, verdicts in sorted(by_run.items())
    ]
    worst_first = sorted(found, key=lambda line: SEVERITY[line.outcome])
    return Digest(
        runs=judgement.runs,
        events=judgement.events,
        order_held=judgement.order_held,
        shares=tuple(_shares(judgement)),
        told=_told(judgement.verdicts),
        outcomes=dict(Counter(line.outcome for line in found)),
        promises=dict(Counter(frozenset(names) for names in judgement.promises.values())),
        lines=tuple(worst_first[:lines]),
    )


def _shares(judgement: Judgement) -> Iterator[Share]:
    groups: dict[tuple[str, Outcome, bool], list[Verdict]] = {}
    for verdict in judgement.verdicts:
        promised = verdict.property in judgement.promises.get(verdict.run, ())
        groups.setdefault((verdict.property, verdict.verdict, promised), []).append(verdict)
    for (name, outcome, promised), verdicts in groups.items():
        checked = sum(verdict.checked for verdict in verdicts)
        violations = sum(verdict.violations for verdict in verdicts)
        yield Share(name, outcome, promised, len(verdicts), checked, violations)


def _told(verdicts: Iterable[Verdict]) -> dict[str, Verdict]:
    told: dict[str, Verdict] = {}
    for verdict in verdicts:
        if verdict.witness is None or verdict.verdict == "holds":
            continue
        known = told.get(verdict.property)
        if known is None or SEVERITY[verdict.verdict] < SEVERITY[known.verdict]:
            told[verdict.property] = verdict
    return told
