"""What proves a verdict: the rows of the log beside it, and how to see the run again."""

from __future__ import annotations

from ordercast.report import render
from ordercast.report.excerpt import excerpts
from ordercast.report.parts import slice_for
from ordercast.report.sample import Sample, judged_in
from tests.report.builders import QUESTION, broken, judgement_on, run
from tests.report.test_page import Page

LATER = "".join(f"{6000 + 10 * n} p2 send 2:{n}\n" for n in range(1, 21))


def test_the_rows_that_prove_it_and_those_beside_them() -> None:
    trace = run(QUESTION + LATER)
    verdict = broken()
    assert verdict.witness is not None
    [judged] = judged_in(judgement_on([trace], verdict), ["r1"])
    found = excerpts(
        Sample(trace, len(trace.events), judged),
        slice_for(trace, verdict.witness),
        verdict.witness,
        zero_us=0,
    )
    assert [(excerpt.process, excerpt.offends) for excerpt in found] == [
        ("p2", True),
        ("p0", False),
        ("p1", False),
    ]
    lines = [
        (line.position, line.time, line.text, line.message, line.proves) for line in found[0].lines
    ]
    assert lines == [
        ("0", "3 ms", "receive", "1:1", True),
        ("1", "3 ms", "deliver", "1:1", True),
        ("2", "5.6 ms", "receive", "0:1", True),
        ("3", "5.6 ms", "deliver", "0:1", True),
        ("4", "6.01 ms", "send", "2:1", False),
        ("5", "6.02 ms", "send", "2:2", False),
        ("", "", "18 rows not shown", "", False),
    ]


def test_each_witness_says_how_to_see_its_run_again() -> None:
    trace = run(QUESTION, extra={"replay": "ordercast simulate --seed 7"})
    page = Page(render(judgement_on([trace], broken(), broken("fifo", process=1)), [trace]))
    assert page.words.count("Replay ordercast simulate --seed 7") == 3
    assert page.words.count("The log around it") == 2


def test_a_rung_that_could_not_be_settled_says_why() -> None:
    trace = run(QUESTION)
    unsure = broken(outcome="unknown", sentence="0:1 may be in a hole of the log")
    words = Page(render(judgement_on([trace], unsure), [trace])).words
    assert "causal ? unknown promised, 0:1 may be in a hole of the log" in words
