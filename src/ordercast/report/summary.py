"""A judgement in words and rows: the headline, the ladder of orders, the table of verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from ordercast.report.words import MEANINGS, capital, count, listing, property_words, rank
from ordercast.trace.verdicts import ORDERS, Judgement, Outcome, Verdict

__all__ = ["Headline", "Row", "Rung", "by_run", "headline", "kept", "ladder", "outcome_of", "rows"]

Standing = Literal["holds", "violated", "unknown", "empty", "unjudged"]
"""How something stands on the page: `empty` is a pass in which nothing was checked."""
_RUNG_WORDS: dict[Standing, str] = {
    "holds": "held",
    "violated": "broke",
    "unknown": "unknown",
    "empty": "nothing to check",
    "unjudged": "not judged",
}
NAMED_MAX = 3
"""A headline that lists more than this is no headline."""


@dataclass(frozen=True, slots=True)
class Headline:
    text: str
    detail: str
    standing: Standing


@dataclass(frozen=True, slots=True)
class Rung:
    order: str
    standing: Standing
    word: str
    note: str
    promised: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One property over all runs."""

    name: str
    words: str
    meaning: str
    promised: str
    standing: Standing
    word: str
    breakdown: str
    """In how many runs it went that way; empty for a single run."""
    checked: int
    violations: int
    sentence: str
    run: str
    """The run of the sentence."""

    @property
    def is_promised(self) -> bool:
        return self.promised != "no"


def outcome_of(verdicts: Iterable[Verdict]) -> Outcome:
    """The worst of them."""
    found = {verdict.verdict for verdict in verdicts}
    return "violated" if "violated" in found else "unknown" if "unknown" in found else "holds"


def _standing(verdicts: Sequence[Verdict]) -> Standing:
    outcome = outcome_of(verdicts)
    checked = any(verdict.checked for verdict in verdicts)
    return "empty" if outcome == "holds" and not checked else outcome


def by_run(judgement: Judgement) -> dict[str, list[Verdict]]:
    """Each run's verdicts. Runs that are promised something and not judged have none."""
    found: dict[str, list[Verdict]] = {run: [] for run in judgement.promises}
    for verdict in judgement.verdicts:
        found.setdefault(verdict.run, []).append(verdict)
    return dict(sorted(found.items()))


def kept(judgement: Judgement, verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Those of the verdicts that are on what was promised."""
    return [v for v in verdicts if v.property in judgement.promises.get(v.run, ())]


def headline(judgement: Judgement) -> Headline:
    verdicts = kept(judgement, judgement.verdicts)
    if not judgement.verdicts:
        return Headline("There was nothing to judge", "No verdict was given.", "unknown")
    if not verdicts:
        text = f"Nothing was promised; {judgement.order_held} order is what held"
        return Headline(text, _detail(judgement, judgement.verdicts), "holds")
    outcome = outcome_of(verdicts)
    detail = _detail(judgement, verdicts)
    if outcome == "holds":
        return _held(judgement, verdicts, detail)
    bad = [verdict for verdict in verdicts if verdict.verdict == outcome]
    names = list(dict.fromkeys(v.property for v in sorted(bad, key=lambda v: rank(v.property))))
    subject = capital(_named(names))
    where = _where(judgement, [verdict.run for verdict in bad])
    if outcome == "violated":
        was = "was" if len(names) == 1 else "were"
        return Headline(f"{subject} {was} violated {where}", detail, outcome)
    return Headline(f"{subject} could not be settled {where}", detail, outcome)


def ladder(judgement: Judgement) -> list[Rung]:
    """From the weakest order to the strongest. Every run is at least asynchronous."""
    rungs = [Rung(ORDERS[0], "holds", "held", "always", False)]
    for order in ORDERS[1:]:
        verdicts = [verdict for verdict in judgement.verdicts if verdict.property == order]
        promised = any(order in promises for promises in judgement.promises.values())
        if not verdicts:
            rungs.append(Rung(order, "unjudged", _RUNG_WORDS["unjudged"], "", promised))
            continue
        standing = _standing(verdicts)
        note = _share(judgement, verdicts, outcome_of(verdicts))
        rungs.append(Rung(order, standing, _RUNG_WORDS[standing], note, promised))
    return rungs


def rows(judgement: Judgement) -> list[Row]:
    """What was promised first; within that, as the design lists the properties."""
    names = sorted({verdict.property for verdict in judgement.verdicts}, key=rank)
    found = [_row(judgement, name) for name in names]
    return sorted(found, key=lambda row: not row.is_promised)


def _row(judgement: Judgement, name: str) -> Row:
    verdicts = [verdict for verdict in judgement.verdicts if verdict.property == name]
    outcome = outcome_of(verdicts)
    told = next((v for v in verdicts if v.verdict == outcome and v.witness is not None), None)
    checked = sum(verdict.checked for verdict in verdicts)
    return Row(
        name=name,
        words=property_words(name),
        meaning=MEANINGS.get(name, ""),
        promised=_promised(judgement, name),
        standing=_standing(verdicts),
        word="nothing to check" if _standing(verdicts) == "empty" else outcome,
        breakdown=_share(judgement, verdicts, outcome),
        checked=checked,
        violations=sum(verdict.violations for verdict in verdicts),
        sentence=told.witness.sentence if told is not None and told.witness is not None else "",
        run=told.run if told is not None else "",
    )


def _promised(judgement: Judgement, name: str) -> str:
    runs = sum(name in promises for promises in judgement.promises.values())
    if runs in (0, len(judgement.promises)):
        return "yes" if runs else "no"
    return f"in {runs:,} of {len(judgement.promises):,} runs"


def _share(judgement: Judgement, verdicts: Sequence[Verdict], outcome: Outcome) -> str:
    """In how many runs it went that way; nothing to say about a single run."""
    same = sum(verdict.verdict == outcome for verdict in verdicts)
    if judgement.runs < 2:
        return ""
    if same == judgement.runs:
        return f"in all {same:,} runs"
    return f"in {same:,} of {judgement.runs:,} runs"


def _held(judgement: Judgement, verdicts: Sequence[Verdict], detail: str) -> Headline:
    where = _where(judgement, judgement.promises)
    promises = {frozenset(names) for names in judgement.promises.values()}
    orders = _orders(next(iter(promises))) if len(promises) == 1 else []
    subject = _order_words(orders) if orders else "every promise"
    judged = [verdict for verdict in verdicts if not orders or verdict.property in orders]
    standing = _standing(judged)
    but = ", but there was nothing to check" if standing == "empty" else ""
    return Headline(f"{capital(subject)} held {where}{but}", detail, standing)


def _orders(promises: Iterable[str]) -> list[str]:
    """The orders that a promise comes down to: the strongest of the ladder, and total order."""
    names = set(promises)
    strongest = [order for order in ORDERS if order in names][-1:]
    return strongest + sorted((name for name in names if name.startswith("total_")), key=rank)


def _order_words(orders: Sequence[str]) -> str:
    words = [property_words(name) for name in orders if not name.startswith("total_")]
    total = any(name.startswith("total_") for name in orders)
    return listing([*words, "total order"] if total else words)


def _named(names: Sequence[str]) -> str:
    words = [property_words(name) for name in names[:NAMED_MAX]]
    if len(names) > NAMED_MAX:
        words.append(count(len(names) - NAMED_MAX, "other promise"))
    if len(words) > 1 and all(word.endswith(" order") for word in words):
        words = [word.removesuffix(" order") for word in words]
        return f"{listing(words)} order"
    return listing(words)


def _where(judgement: Judgement, runs: Iterable[str]) -> str:
    names = sorted(set(runs))
    if len(names) == 1:
        return f"in run {names[0]}" + (f", 1 of {judgement.runs:,}" if judgement.runs > 1 else "")
    if len(names) == judgement.runs:
        return f"in all {judgement.runs:,} runs"
    return f"in {len(names):,} of {judgement.runs:,} runs"


def _detail(judgement: Judgement, verdicts: Sequence[Verdict]) -> str:
    checked = sum(verdict.checked for verdict in verdicts)
    violations = sum(verdict.violations for verdict in verdicts)
    facts = f"{count(checked, 'fact')} checked in {count(judgement.events, 'event')}"
    return f"{facts}, {count(violations, 'violation') if violations else 'no violation'}."
