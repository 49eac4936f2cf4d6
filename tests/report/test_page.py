"""The page: the right words, nothing from outside, and it says what it leaves out."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ordercast.errors import UsageError
from ordercast.report import Limits, render, write
from ordercast.report.facts import facts_of_run
from ordercast.report.history import History
from ordercast.trace import Event, Manifest, Trace
from ordercast.trace.verdicts import Judgement, Verdict
from tests.report.builders import HELD, QUESTION, broken, judgement_on, random_run, run

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Page(HTMLParser):
    """The page's text and elements; fails where an element is not closed properly."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self._text: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._text.append(" ")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & set(self.open):
            self._text.append(data)

    @property
    def words(self) -> str:
        return " ".join("".join(self._text).split())


def page_of(trace: Trace, *verdicts: Verdict, **limits: int) -> Page:
    return Page(render(judgement_on([trace], *verdicts), [trace], limits=Limits(**limits)))


# What it says


def test_the_weather_of_a_run_under_faults_is_in_its_plan() -> None:
    calm = {"weather": "no delays"}
    for extra, told in (
        (calm, True),
        ({**calm, "faults": "delay:20ms"}, False),
        ({"weather": "delays of 1 to 2 ms", "faults": "loss:1%"}, True),
    ):
        trace = run(HELD, extra=extra)
        names = {fact.name for fact in facts_of_run(History(trace), len(trace.events))}
        assert ("network" in names) == told


def test_the_table_has_each_property_with_its_sentence() -> None:
    page = page_of(run(QUESTION), broken())
    assert "Each property" in page.words
    assert (
        "causal order yes ✗ violated 10 1 "
        "p1 delivered 0:1 and then sent 1:1, but p2 delivered 1:1 before 0:1" in page.words
    )
    assert "uniform agreement no ✓ holds 10 0" in page.words
    headers = [attributes.get("scope") for tag, attributes in page.elements if tag == "th"]
    assert None not in headers
    assert {tag for tag, _ in page.elements} >= {"caption", "thead", "h1", "main", "header"}


def test_the_facts_name_seed_and_replay() -> None:
    manifest = {
        "order": "causal_vector",
        "dissemination": "best_effort",
        "extra": {"seed": 7, "replay": "ordercast simulate --seed 7", "promises": ["fifo"]},
    }
    words = page_of(run(HELD, **manifest)).words
    for fact in (
        "Runs 1",
        "Events 12",
        "Processes 3",
        "Ordering causal_vector",
        "Dissemination best_effort",
        "Came to rest yes",
        "Log complete yes",
        "Messages 2",
        "Held 1 of 4 arrivals",
        "Longest wait 2.6 ms (1:1 at p2)",
        "seed 7",
        "Replay ordercast simulate --seed 7",
    ):
        assert fact in words


def test_a_witness_is_drawn_at_the_top_and_once() -> None:
    trace = run(QUESTION)
    same = broken("fifo")  # rests on the same witness: one picture, both names
    page = render(judgement_on([trace], broken(), same), [trace])
    assert page.count("<article") == 1
    assert "FIFO order and causal order: violated" in page
    assert page.index("<article") < page.index("Which order held")
    assert "is at the top of the page" in page


def test_witnesses_of_what_was_not_promised_are_folded_away() -> None:
    page = render(judgement_on([run(QUESTION)], broken("synchronous")), [run(QUESTION)])
    assert page.index("<details>") < page.index("<article")
    assert "Witnesses for what was not promised (1)" in page


# What it leaves out, it says


def test_a_long_run_is_drawn_from_its_beginning() -> None:
    trace = random_run(1)
    page = page_of(trace, events=50, window_events=40)
    left = len(trace.events) - 40
    assert f"Drawn: the first 40 of {len(trace.events)} events in time order." in page.words
    assert f"Left out: {left} events." in page.words
    whole = page_of(trace, events=len(trace.events))
    assert "Left out" not in whole.words


def test_too_many_processes_are_told() -> None:
    page = page_of(random_run(1, size=6, messages=1), processes=4)
    assert "at 4 of 6 processes. Left out:" in page.words
    assert "and 2 processes." in page.words


def test_runs_beyond_the_limit_are_told_and_violated_ones_come_first() -> None:
    traces = [run(QUESTION, name=f"r{number}") for number in range(1, 6)]
    judgement = judgement_on(traces, broken(run="r4"))
    page = render(judgement, traces, limits=Limits(runs=2, run_lines=3))
    words = Page(page).words
    assert "2 of 5 runs are drawn, violated ones first; 3 are left out." in words
    assert "The table lists 3 of 5 runs, violated ones first; 2 are left out." in words
    assert re.findall(r'id="run-\d+-heading">Run (\w+)', page) == ["r4", "r1"]


def test_runs_whose_events_are_not_at_hand_are_told() -> None:
    traces = [run(QUESTION, name=f"r{number}") for number in range(1, 4)]
    page = render(judgement_on(traces), traces[:1])
    assert "1 of 3 runs are drawn, violated ones first; 2 are left out." in page
    assert "r3" in page


def test_witnesses_beyond_the_limit_are_told() -> None:
    verdicts = [broken("fifo", process=1), broken("causal"), broken("agreement", messages=("0:1",))]
    page = page_of(run(QUESTION), *verdicts, witnesses=1)
    assert "2 further witnesses are not drawn" in page.words


def test_clocks_that_are_missing_or_wrong_are_told() -> None:
    untimed = re.sub(r"(?m)^    \d+", "    -", QUESTION)
    assert "The log has no times" in page_of(run(untimed)).words
    assert "1 event has no time" in page_of(run(QUESTION.replace("2100", "-", 1))).words
    skewed = run("1000 p0 send 0:1\n 400 p1 deliver 0:1", size=2)
    assert "1 event is drawn later than the clock of the process says" in page_of(skewed).words


# Robust


@pytest.mark.parametrize(
    "trace",
    [
        run("", size=2),
        run("", size=0),
        Trace.bare("bare", []),
        run("0 p0 crash", size=1),
        run("0 p0 deliver 5:1\n 1 p0 deliver 5:1\n 2 p0 receive 5:1", size=1),
        run("0 p0 send 0:1 to 9\n 5 p0 send 0:1", size=2),
        random_run(1, size=64, messages=1),
        random_run(1, clocks=False),
        run("9000000000000000000 p0 send 0:1\n 0 p1 deliver 0:1", size=2),
    ],
    ids=["none", "nobody", "bare", "crash", "unknown", "nowhere", "64", "untimed", "far apart"],
)
def test_whatever_the_run_there_is_a_page(trace: Trace) -> None:
    name = trace.manifest.run
    verdict = broken(run=name, process=0, messages=("0:1", "5:1"))
    page = Page(render(judgement_on([trace], verdict), [trace]))
    assert f"Run {name}" in page.words


def test_a_run_without_events_says_so() -> None:
    assert "This run has no events, so there is nothing to draw." in page_of(run("")).words


def test_no_runs_at_all() -> None:
    page = Page(render(Judgement(0, 0, (), {}), []))
    assert "There was nothing to judge" in page.words


def test_a_property_that_is_new_to_the_report_is_shown_too() -> None:
    page = page_of(run(HELD), Verdict("r1", "real_time", "holds", 3, 0))
    assert "real time no ✓ holds 3 0" in page.words


# Safe to open, safe to share

EVIL = "</title></style></script><script>alert('x')</script><img src=x onerror=alert(1)>&{{7*7}}"


def test_names_are_only_text_wherever_they_stand() -> None:
    manifest = Manifest(
        EVIL, (EVIL, EVIL, EVIL), order=EVIL, dissemination=EVIL, extra={EVIL: EVIL, "replay": EVIL}
    )
    plain = run(QUESTION, name=EVIL)
    trace = Trace.of(manifest, plain.events)
    verdict = broken(run=EVIL, messages=("0:1", "1:1", EVIL), sentence=EVIL)
    page = Page(render(judgement_on([trace], verdict), [trace], title=EVIL))
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"img", "iframe", "object"}
    scripts = [attributes for tag, attributes in page.elements if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "run-1-log"}, {}]
    assert not [name for _, attributes in page.elements for name in attributes if name[:2] == "on"]
    assert "{{7*7}}" in page.words


def test_nothing_is_fetched_and_nothing_can_be() -> None:
    page = render(judgement_on([run(QUESTION)], broken()), [run(QUESTION)])
    assert set(re.findall(r"https?://[^\s\"'<]*", page)) == {"http://www.w3.org/2000/svg"}
    assert "url(" not in page
    assert "@import" not in page
    [text] = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    digest = b64encode(sha256(text.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    assert f'http-equiv="Content-Security-Policy" content="{policy}"' in page
    links = [a.get("href") or "" for t, a in Page(page).elements if t in ("a", "link")]
    assert all(link.startswith(("#", "data:")) for link in links)


def test_every_id_is_used_once_and_every_reference_exists() -> None:
    traces = [run(QUESTION, name="r1"), run(HELD, name="r2")]
    page = Page(render(judgement_on(traces, broken(), broken("synchronous", run="r2")), traces))
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in page.elements:
        named = (attributes.get("aria-labelledby") or "").split()
        link = attributes.get("href") or ""
        assert set(named) <= set(ids)
        assert not link.startswith("#") or link[1:] in ids


def test_every_diagram_is_well_formed() -> None:
    trace = random_run(2, crash=True)
    page = render(judgement_on([trace], broken()), [trace])
    page = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    drawings = re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL)
    assert len(drawings) > 5
    for drawing in drawings:
        ElementTree.fromstring(drawing)


def test_the_same_input_gives_the_same_bytes() -> None:
    def page() -> str:
        traces = [random_run(7, crash=True)]
        return render(judgement_on(traces, broken()), traces)

    assert page() == page()


def test_the_page_is_written_where_asked(tmp_path: Path) -> None:
    trace = run(HELD)
    judgement = judgement_on([trace])
    path = write(judgement, [trace], tmp_path / "new" / "report.html", title="Last night")
    assert path.read_text(encoding="utf-8") == render(judgement, [trace], title="Last night")
    assert "<title>Last night</title>" in path.read_text(encoding="utf-8")


def test_a_page_that_cannot_be_written_is_the_callers_fault(tmp_path: Path) -> None:
    trace = run(HELD)
    with pytest.raises(UsageError, match="the report cannot be written: Is a directory"):
        write(judgement_on([trace]), [trace], tmp_path)


def test_the_page_says_what_held_messages_waited_for() -> None:
    events = [
        Event("r", 0, 0, "send", 0, 1, None, 0),
        Event("r", 1, 0, "receive", 0, 1, None, 5_000),
        Event("r", 1, 1, "deliver", 0, 1, None, 9_000),
    ]
    extra = {
        "held": [{"process": 1, "message": "0:1", "waits_for": ["2:4"], "waits_on": []}],
        "waiting": [{"process": 0, "message": "0:1", "waits_for": [], "waits_on": [1]}],
    }
    trace = Trace.of(Manifest("r", ("a", "b"), extra=extra), events)
    page = render(Judgement(1, 3, (), {"r": ()}), [trace])
    assert "held 0:1 for 4 ms, waiting for 2:4" in page
    assert "a held 0:1, waiting for word from b" in page


def test_what_a_run_was_put_through_is_told_in_words() -> None:
    happened = [{"at_us": 1_001_000, "what": "p1 killed"}, {"at_us": 1_702_000, "what": "p1 back"}]
    happened += [{"at_us": 2_000_000 + n, "what": f"p0 suspects p{n}"} for n in range(30)]
    trace = run(HELD, extra={"happened": happened, "other": [{"at_us": 1}]})
    text = Page(render(judgement_on([trace]), [trace])).words
    assert "1 s p1 killed 1.7 s p1 back" in text
    assert "p0 suspects p29" in text  # all of it: that is what the run is looked at for
    assert '[{"at_us":1}]' in text
