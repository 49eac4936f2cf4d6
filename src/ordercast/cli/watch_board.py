"""What a person sees of a watch: each violation as it is found, and one line on how it goes."""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection, Iterable

import msgspec

from ordercast.cli.console import print_judgement, print_summary
from ordercast.cli.say import say
from ordercast.cli.steps import Steps
from ordercast.cli.words import counted, duration
from ordercast.trace.news import Flaw, News, Said, Status
from ordercast.trace.verdicts import (
    ORDERS,
    PROPERTIES,
    Judgement,
    Summary,
    Tally,
    Verdict,
)

__all__ = ["Board"]

_SHOWN = 5


class Board:
    """Hears the news, batch by batch, in the query's own thread."""

    def __init__(
        self, progress: Steps, *, json: bool = False, demanded: Collection[str] | None = None
    ) -> None:
        self._progress = progress
        self._json = json
        self._demanded = demanded
        self._lock = threading.Lock()
        self._statuses: dict[str, Status] = {}

    def hear(self, news: Iterable[News]) -> None:
        with self._lock:
            before = dict(self._statuses)
            news = list(news)
            for one in news:
                if self._json:
                    print(msgspec.json.encode(one).decode(), flush=True)
                if isinstance(one, Status):
                    self._statuses[one.run] = one
            for one in news:
                if isinstance(one, Flaw):
                    self._progress.note(f"{one.run}: {one.flaw}")
                elif isinstance(one, Said) and not self._json:
                    self._say(one.verdict, before.get(one.verdict.run))
            if self._statuses:
                self._progress.begin(self._line())

    def _say(self, verdict: Verdict, before: Status | None) -> None:
        """A violation, the first time."""
        if verdict.verdict != "violated" or verdict.witness is None or _violated(verdict, before):
            return
        promised = verdict.property in self._promised(verdict.run)
        words = (
            f"{verdict.run}: {verdict.property} ✘ violated: {verdict.witness.sentence}"
            f"{'' if promised else ' (not promised)'}"
        )
        if sys.stdout.isatty() and sys.stderr.isatty():
            self._progress.note(words)  # above the line that moves
        else:
            say(words)

    def _promised(self, run: str) -> tuple[str, ...]:
        if self._demanded is not None:
            return tuple(self._demanded)
        return self._statuses[run].promised if run in self._statuses else ()

    def _line(self) -> str:
        """All runs together."""
        statuses = self._statuses.values()
        events = sum(status.events for status in statuses)
        rate = sum(status.events_per_s or 0 for status in statuses if not status.over)
        parts = [f"{len(statuses)} runs" if len(statuses) > 1 else next(iter(statuses)).run]
        parts.append(counted(events, "event") + (f", {rate:.0f}/s" if rate else ""))
        for name, word in (("latency_us", "latency"), ("held_us", "held")):
            known = [found for status in statuses if (found := getattr(status, name)) is not None]
            if known:
                half, most = max(one.p50 for one in known), max(one.p99 for one in known)
                parts.append(f"{word} {duration(half)}, p99 {duration(most)}")
        waiting = sum(status.waiting for status in statuses)
        parts += [f"{waiting} behind a gap"] if waiting else []
        parts.append(f"order held so far: {self.order_held}")
        return "; ".join(parts)

    @property
    def order_held(self) -> str:
        held = (status.order_held for status in self._statuses.values())
        return min(held, key=ORDERS.index, default=ORDERS[0])

    @property
    def at_rest(self) -> bool:
        """Is every run over that was heard of?"""
        with self._lock:
            return bool(self._statuses) and all(one.over for one in self._statuses.values())

    def conclude(self, judgement: Judgement) -> None:
        if self._json:
            told = judgement.to_json() | {"kind": "end"}
            print(msgspec.json.encode(told).decode(), flush=True)
        elif judgement.runs == 1:
            print_judgement(judgement, asked=self._demanded is not None)
        elif judgement.runs:
            print_summary(_summary(judgement), asked=self._demanded is not None)


def _violated(verdict: Verdict, before: Status | None) -> bool:
    return before is not None and any(
        one.property == verdict.property and one.verdict == "violated" for one in before.standing
    )


def _summary(judgement: Judgement) -> Summary:
    promised = [v for v in judgement.verdicts if v.property in judgement.promises[v.run]]
    broken = sorted(
        (v for v in promised if v.verdict != "holds"), key=lambda v: (v.verdict == "unknown", v.run)
    )
    return Summary(
        runs=judgement.runs,
        events=judgement.events,
        order_held=judgement.order_held,
        outcome=judgement.outcome,
        promises=len(promised),
        tallies=tuple(_tallies(judgement)),
        broken=len(broken),
        worst=tuple(broken[:_SHOWN]),
        skipped=0,
        places=(),
    )


def _tallies(judgement: Judgement) -> Iterable[Tally]:
    for name in PROPERTIES:
        mine = [verdict for verdict in judgement.verdicts if verdict.property == name]
        if mine:
            outcomes = [verdict.verdict for verdict in mine]
            yield Tally(
                property=name,
                holds=outcomes.count("holds"),
                violated=outcomes.count("violated"),
                unknown=outcomes.count("unknown"),
                checked=sum(verdict.checked for verdict in mine),
                violations=sum(verdict.violations for verdict in mine),
            )
