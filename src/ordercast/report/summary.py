"""The verdicts in words and rows: the headline, the ladder of orders, the table of verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from ordercast.report.digest import Digest, Share, outcome_of
from ordercast.report.words import MEANINGS, capital, count, listing, property_words, rank
from ordercast.trace.verdicts import ORDERS, Outcome

__all__ = ["Headline", "Row", "Rung", "Standing", "headline", "ladder", "rows"]

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


def headline(digest: Digest) -> Headline:
    if not digest.shares:
        return Headline("There was nothing to judge", "No verdict was given.", "unknown")
    if not digest.kept:
        text = f"Nothing was promised; {digest.order_held} order is what held"
        return Headline(text, _detail(digest, digest.shares), "holds")
    outcome = _outcome(digest.kept)
    detail = _detail(digest, digest.kept)
    if outcome == "holds":
        return _held(digest, detail)
    bad = [share for share in digest.kept if share.outcome == outcome]
    names = sorted({share.property for share in bad}, key=rank)
    subject = capital(_named(names))
    where = _where(digest, outcome)
    if outcome == "violated":
        was = "was" if len(names) == 1 else "were"
        return Headline(f"{subject} {was} violated {where}", detail, outcome)
    return Headline(f"{subject} could not be settled {where}", detail, outcome)


def _outcome(shares: Sequence[Share]) -> Outcome:
    return outcome_of(share.outcome for share in shares)


def _standing(shares: Sequence[Share]) -> Standing:
    outcome = _outcome(shares)
    checked = any(share.checked for share in shares)
    return "empty" if outcome == "holds" and not checked else outcome


def ladder(digest: Digest) -> list[Rung]:
    """From the weakest order to the strongest. Every run is at least asynchronous."""
    rungs = [Rung(ORDERS[0], "holds", "held", "always", False)]
    for order in ORDERS[1:]:
        shares = digest.on(order)
        promised = digest.promised_in(order) > 0
        if not shares:
            rungs.append(Rung(order, "unjudged", _RUNG_WORDS["unjudged"], "", promised))
            continue
        standing = _standing(shares)
        note = _share(digest, shares) or _doubt(digest, order, standing)
        rungs.append(Rung(order, standing, _RUNG_WORDS[standing], note, promised))
    return rungs


def _doubt(digest: Digest, order: str, standing: Standing) -> str:
    """Why it could not be settled."""
    told = digest.told.get(order)
    return told.witness.sentence if standing == "unknown" and told and told.witness else ""


def rows(digest: Digest) -> list[Row]:
    """What was promised first; within that, as the design lists the properties."""
    names = sorted({share.property for share in digest.shares}, key=rank)
    found = [_row(digest, name) for name in names]
    return sorted(found, key=lambda row: not row.is_promised)


def _row(digest: Digest, name: str) -> Row:
    shares = digest.on(name)
    outcome = _outcome(shares)
    told = digest.told.get(name)
    if told is not None and told.verdict != outcome:
        told = None
    return Row(
        name=name,
        words=property_words(name),
        meaning=MEANINGS.get(name, ""),
        promised=_promised(digest, name),
        standing=_standing(shares),
        word="nothing to check" if _standing(shares) == "empty" else outcome,
        breakdown=_share(digest, shares),
        checked=sum(share.checked for share in shares),
        violations=sum(share.violations for share in shares),
        sentence=told.witness.sentence if told is not None and told.witness is not None else "",
        run=told.run if told is not None else "",
    )


def _promised(digest: Digest, name: str) -> str:
    runs, described = digest.promised_in(name), sum(digest.promises.values())
    if runs in (0, described):
        return "yes" if runs else "no"
    return f"in {runs:,} of {described:,} runs"


def _share(digest: Digest, shares: Sequence[Share]) -> str:
    """In how many runs it went as it went at worst; nothing to say about a single run."""
    outcome = _outcome(shares)
    same = sum(share.runs for share in shares if share.outcome == outcome)
    if digest.runs < 2:
        return ""
    if same == digest.runs:
        return f"in all {same:,} runs"
    return f"in {same:,} of {digest.runs:,} runs"


def _held(digest: Digest, detail: str) -> Headline:
    where = _where(digest, "holds")
    orders = _orders(next(iter(digest.promises))) if len(digest.promises) == 1 else []
    subject = _order_words(orders) if orders else "every promise"
    judged = [share for share in digest.kept if not orders or share.property in orders]
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


def _where(digest: Digest, outcome: Outcome) -> str:
    """In which runs the promises came out so: the worst runs are the first in the table."""
    runs = digest.outcomes.get(outcome, 0)
    if runs == 1:
        name = next((line.name for line in digest.lines if line.outcome == outcome), "")
        return f"in run {name}" + (f", 1 of {digest.runs:,}" if digest.runs > 1 else "")
    if runs == digest.runs:
        return f"in all {digest.runs:,} runs"
    return f"in {runs:,} of {digest.runs:,} runs"


def _detail(digest: Digest, shares: Sequence[Share]) -> str:
    checked = sum(share.checked for share in shares)
    violations = sum(share.violations for share in shares)
    facts = f"{count(checked, 'fact')} checked in {count(digest.events, 'event')}"
    return f"{facts}, {count(violations, 'violation') if violations else 'no violation'}."
