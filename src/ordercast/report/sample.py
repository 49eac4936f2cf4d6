"""A run as far as the page needs it: all of its events, or of a huge one some."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ordercast.report.costs import Cost
from ordercast.report.digest import outcome_of
from ordercast.trace import Event, Trace
from ordercast.trace.verdicts import Judgement, Outcome, Verdict

__all__ = ["Judged", "Sample", "judged_in"]


@dataclass(frozen=True, slots=True)
class Judged:
    """What is known about a run before its events are read."""

    run: str
    verdicts: Sequence[Verdict]
    promises: Sequence[str]


def judged_in(judgement: Judgement, runs: Iterable[str]) -> list[Judged]:
    verdicts: dict[str, list[Verdict]] = {run: [] for run in runs}
    for verdict in judgement.verdicts:
        if verdict.run in verdicts:
            verdicts[verdict.run].append(verdict)
    return [Judged(run, own, judgement.promises.get(run, ())) for run, own in verdicts.items()]


@dataclass(frozen=True, slots=True)
class Sample:
    trace: Trace
    """Of a huge run, every row about the first messages and about those of the witnesses."""
    events: int
    """How many the run has."""
    judged: Judged
    around: Sequence[Event] = ()
    """Of a huge run, the rows beside those of the witnesses."""
    costs: Sequence[Cost] | None = None
    """From the result tables, if they are at hand."""
    source: str = ""
    """Where it was read, as the reader of the page knows it."""
    own_ids: Mapping[str, str] = field(default_factory=dict)
    """What an imported log calls the messages of the witnesses."""

    @property
    def outcome(self) -> Outcome:
        """Of what was promised."""
        judged = self.judged
        return outcome_of(v.verdict for v in judged.verdicts if v.property in judged.promises)

    @property
    def partial(self) -> bool:
        return len(self.trace.events) < self.events
