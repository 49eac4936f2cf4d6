"""A judgement in words: the headline, the ladder and the table's rows."""

from __future__ import annotations

import pytest

from ordercast.report.digest import digest_of
from ordercast.report.summary import Headline, headline, ladder, rows
from ordercast.report.words import count, duration, listing
from ordercast.trace.verdicts import Judgement, Verdict
from tests.report.builders import HELD, broken, judgement_on, run


def headline_on(judgement: Judgement) -> Headline:
    return headline(digest_of(judgement, lines=9))


@pytest.mark.parametrize(
    ("verdicts", "text", "standing"),
    [
        ((), "Causal order held in run r1", "holds"),
        ((broken(),), "Causal order was violated in run r1", "violated"),
        (
            (broken("fifo"), broken()),
            "FIFO and causal order were violated in run r1",
            "violated",
        ),
        (
            (broken("agreement"), broken()),
            "Agreement and causal order were violated in run r1",
            "violated",
        ),
        (
            (broken(outcome="unknown"),),
            "Causal order could not be settled in run r1",
            "unknown",
        ),
        ((broken("synchronous"),), "Causal order held in run r1", "holds"),
        (
            (Verdict("r1", "causal", "holds", 0, 0),),
            "Causal order held in run r1, but there was nothing to check",
            "empty",
        ),
    ],
)
def test_the_headline_says_it_in_words(
    verdicts: tuple[Verdict, ...], text: str, standing: str
) -> None:
    found = headline_on(judgement_on([run(HELD)], *verdicts))
    assert (found.text, found.standing) == (text, standing)


def test_the_headline_counts_runs() -> None:
    traces = [run(HELD, name=f"r{number}") for number in range(1, 13)]
    assert headline_on(judgement_on(traces)).text == "Causal order held in all 12 runs"
    one = judgement_on(traces, broken(run="r7"))
    assert headline_on(one).text == "Causal order was violated in run r7, 1 of 12"
    two = judgement_on(traces, broken(run="r7"), broken(run="r9"))
    assert headline_on(two).text == "Causal order was violated in 2 of 12 runs"


def test_the_headline_knows_total_order_and_promises_of_none() -> None:
    def text(*promises: str) -> str:
        return headline_on(judgement_on([run(HELD)], promises=promises)).text

    assert text("total_pairwise", "total_acyclic") == "Total order held in run r1"
    assert text("fifo", "causal", "total_acyclic") == "Causal order and total order held in run r1"
    assert text("validity") == "Every promise held in run r1"
    assert text() == "Nothing was promised; synchronous order is what held"
    assert headline_on(Judgement(0, 0, (), {})).text == "There was nothing to judge"


def test_the_ladder_shows_what_held_what_broke_and_what_nobody_judged() -> None:
    judgement = judgement_on([run(HELD)], broken())
    kept = tuple(v for v in judgement.verdicts if v.property != "synchronous")
    rungs = ladder(digest_of(Judgement(1, 12, kept, judgement.promises), lines=9))
    assert [(rung.order, rung.word, rung.promised) for rung in rungs] == [
        ("async", "held", False),
        ("fifo", "held", True),
        ("causal", "broke", True),
        ("synchronous", "not judged", False),
    ]


def test_an_empty_pass_is_told_apart_from_a_pass() -> None:
    judgement = judgement_on([run(HELD)], Verdict("r1", "fifo", "holds", 0, 0))
    found = {row.name: row.word for row in rows(digest_of(judgement, lines=9))}
    assert found["fifo"] == "nothing to check"
    assert found["causal"] == "holds"


@pytest.mark.parametrize(
    ("time_us", "text"),
    [
        (0, "0 µs"),
        (999, "999 µs"),
        (1_000, "1 ms"),
        (2_618, "2.62 ms"),
        (999_499, "999 ms"),
        (999_999, "1 s"),
        (1_250_000, "1.25 s"),
        (125_000_000, "2 min 5 s"),
        (120_000_000, "2 min"),
        (7_500_000_000, "2 h 5 min"),
    ],
)
def test_times_have_a_unit_that_one_can_picture(time_us: int, text: str) -> None:
    assert duration(time_us) == text


def test_numbers_and_lists_read_as_english() -> None:
    assert [count(n, "process", "processes") for n in (0, 1, 1204)] == [
        "0 processes",
        "1 process",
        "1,204 processes",
    ]
    assert [listing(["a", "b", "c"][:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]
