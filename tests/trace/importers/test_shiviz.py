"""Vector clocks: what is inferred from them is true, and what is wrong with them is said."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conformance.subjects import run_once

from ordercast.errors import TraceError, UsageError
from ordercast.oracle import judge
from ordercast.protocols.disseminations.direct import Direct
from ordercast.protocols.orderings.causal_vector import CausalVector
from ordercast.protocols.orderings.fifo import Fifo
from ordercast.protocols.orderings.unordered import Unordered
from ordercast.protocols.stack import Stack
from ordercast.trace import Event, Trace
from ordercast.trace.importers import Imported, Options, import_trace

SAFETY = (
    *("no_duplication", "no_creation", "fifo", "causal"),
    *("total_pairwise", "total_acyclic", "total_gap_free", "synchronous"),
)
NAMED = Options(send=r"sends (?<message>\S+)", receive=r"hears (?<message>\S+)")
Line = tuple[str, dict[str, int], str]


def execution(seed: int) -> Trace:
    """What a simulation did, each message meant for those who got it."""
    random = Random(seed)
    ordering = random.choice([Unordered, Fifo, CausalVector])
    faults = random.choice(["", "loss:20%", "delay:0ms..80ms", "duplicate:40%"])
    trace = run_once(
        lambda me, size: Stack(ordering(me, size), Direct(me, size)),
        seed=seed,
        faults=faults,
        size=random.randint(2, 5),
        messages=random.randint(1, 5),
        destinations="everyone"
        if ordering is CausalVector
        else random.choice(["some", "everyone"]),
    )
    events = [event for event in trace.events if event.kind in ("send", "deliver")]
    got: dict[tuple[int, int], set[int]] = {}
    for event in events:
        if event.kind == "deliver":
            got.setdefault(event.message, set()).add(event.process)
    return Trace.of(
        trace.manifest,
        [
            msgspec.structs.replace(event, destinations=tuple(sorted(got.get(event.message, ()))))
            if event.kind == "send"
            else event
            for event in events
        ],
    )


def stamped(trace: Trace, *, own: bool = True) -> list[Line]:
    """The same as a log with vector clocks; without own deliveries unless asked for."""
    logs: dict[int, list[Event]] = {p: [] for p in trace.members}
    for event in trace.events:
        if own or event.kind == "send" or event.origin != event.process:
            logs[event.process].append(event)
    clocks: dict[int, dict[str, int]] = {p: {} for p in trace.members}
    sent: dict[tuple[int, int], dict[str, int]] = {}
    lines: list[Line] = []
    while any(logs.values()):
        for p, log in logs.items():
            while log and (log[0].kind == "send" or log[0].message in sent):
                event = log.pop(0)
                heard = {} if event.kind == "send" else sent[event.message]
                clock = clocks[p]
                for host, time in heard.items():
                    clock[host] = max(clock.get(host, 0), time)
                clock[f"p{p}"] = clock.get(f"p{p}", 0) + 1
                if event.kind == "send":
                    sent[event.message] = dict(clock)
                verb = "sends" if event.kind == "send" else "hears"
                words = f"{verb} {event.origin}:{event.number}"
                lines.append((f"p{p}", dict(clock), words))
    return lines


def text(lines: list[Line]) -> str:
    return "".join(f"{host} {json.dumps(clock)}\n{words}\n" for host, clock, words in lines)


def taken(lines: list[Line] | str, options: Options) -> tuple[Trace, Imported]:
    with TemporaryDirectory() as directory:
        log, trace = Path(directory) / "r.log", Path(directory) / "trace"
        log.write_text(lines if isinstance(lines, str) else text(lines))
        done = import_trace([log], trace, format="shiviz", options=options, write="jsonl")
        [found] = Trace.load(trace)
        return found, done


def heard(trace: Trace) -> list[tuple[str, str]]:
    """Who heard which send, by the event's own place."""
    ids = trace.manifest.extra["messages"]
    return [
        (trace.manifest.processes[event.process], ids[f"{event.origin}:{event.number}"])
        for event in trace.events
        if event.kind == "deliver"
    ]


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), shuffled=st.booleans())
def test_with_names_the_verdicts_are_those_of_the_execution(seed: int, shuffled: bool) -> None:
    trace = execution(seed)
    lines = stamped(trace)
    if shuffled:
        Random(seed).shuffle(lines)
    found, done = taken(lines, NAMED)
    assert not done.report.notes
    said = {v.property: (v.verdict, v.checked, v.violations) for v in judge(found, SAFETY)}
    true = {v.property: (v.verdict, v.checked, v.violations) for v in judge(trace, SAFETY)}
    assert said == true


def expected(lines: list[Line]) -> tuple[list[tuple[str, str]], int]:
    """The deliveries that bring news, by the clocks of those who sent; and how many do not."""
    sends = {
        words.split()[1]: (host, clock[host]) for host, clock, words in lines if "sends" in words
    }
    places = {name: f"{host}:{time}" for name, (host, time) in sends.items()}
    last: dict[str, dict[str, int]] = {}
    news, late = [], 0
    for host, clock, words in lines:
        verb, name = words.split()
        if verb == "hears":
            sender, time = sends[name]
            if last.get(host, {}).get(sender, 0) < time:
                news.append((host, places[name]))
            else:
                late += 1
        last[host] = clock
    return news, late


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6))
def test_clocks_alone_show_exactly_the_messages_that_brought_news(seed: int) -> None:
    trace = execution(seed)
    lines = stamped(trace, own=False)
    news, late = expected(lines)
    if not news:
        return
    found, done = taken(lines, Options())
    assert sorted(heard(found)) == sorted(news)
    assert found.manifest.complete
    # Where a message came late, order is not promised; a causal execution hides nothing.
    if late:
        assert found.manifest.extra["promises"] == ["no_duplication", "no_creation"]
        assert any("--receive" in note for note in done.report.notes)
    [causal] = judge(trace, ["causal"])
    [single] = judge(trace, ["no_duplication"])
    if causal.verdict == single.verdict == "holds":
        assert late == 0


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6))
def test_receives_without_names_that_come_late_are_not_guessed(seed: int) -> None:
    lines = stamped(execution(seed), own=False)
    news, late = expected(lines)
    if not news:
        return
    found, _ = taken(lines, Options(receive="hears"))
    assert len(heard(found)) == len(news) + late
    assert found.manifest.complete == (late == 0)
    assert "promises" not in found.manifest.extra
    [created] = judge(found, ["no_creation"])
    assert created.verdict == ("unknown" if late else "holds")


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), data=st.data())
def test_holes_invent_no_message(seed: int, data: st.DataObject) -> None:
    lines = stamped(execution(seed), own=False)
    news, _ = expected(lines)
    kept = [line for line in lines if data.draw(st.booleans())]
    try:
        found, done = taken(kept, Options())
    except TraceError:
        return
    assert set(heard(found)) <= set(news)
    assert set(found.manifest.processes) == {host for _, clock, _ in kept for host in clock}
    if len(kept) < len(lines) and any("hole" in note for note in done.report.notes):
        assert not found.manifest.complete


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (
            [("a", {"a": 1}), ("a", {"a": 1})],
            "line 3: the clock of a is wrong: its own entry is 1 already in the event before",
        ),
        (
            [("a", {"a": 1}), ("b", {"a": 1, "b": 1}), ("b", {"b": 2})],
            "r.log, line 5: the clock of b is wrong: it knows a:0, and the event before knew a:1",
        ),
        (
            [("a", {"a": 1}), ("b", {"a": 1, "b": 1}), ("c", {"b": 1, "c": 1})],
            "line 5: the clock of c is wrong: it knows b:1, which knew a:1, but has only a:0",
        ),
        (
            [("a", {"a": 1, "b": 1}), ("b", {"a": 1, "b": 1})],
            "the clock of a is wrong: it knows b:1, which knew a:1: its own future",
        ),
    ],
)
def test_a_wrong_clock_is_told_with_host_line_and_reason(
    lines: list[tuple[str, dict[str, int]]], reason: str
) -> None:
    # So that there is something to judge.
    fine: list[Line] = [("x", {"x": 1}, "tick"), ("y", {"x": 1, "y": 1}, "tick")]
    found, done = taken([*((host, clock, "tick") for host, clock in lines), *fine], Options())
    assert any(note.endswith(reason) for note in done.report.notes)
    assert not found.manifest.complete


def test_one_event_may_hear_from_many_and_a_send_may_reach_many() -> None:
    lines: list[Line] = [
        ("a", {"a": 1}, ""),
        ("b", {"b": 1}, ""),
        ("c", {"a": 1, "b": 1, "c": 1}, ""),
        ("d", {"a": 1, "d": 1}, ""),
    ]
    found, done = taken(lines, Options())
    assert heard(found) == [("c", "a:1"), ("c", "b:1"), ("d", "a:1")]
    assert found.events[0].destinations == (2, 3)
    assert "heard from several at once, in the order of names: 1" in done.report.notes[0]


def test_where_words_name_every_message_clocks_add_none() -> None:
    lines: list[Line] = [
        ("a", {"a": 1}, "sends x"),
        ("b", {"a": 1, "b": 1}, "a packet came"),
        ("b", {"a": 1, "b": 2}, "hears x"),
    ]
    found, done = taken(lines, NAMED)
    assert heard(found) == [("b", "x")]
    assert not done.report.notes


def test_what_another_knew_was_not_sent_again() -> None:
    lines: list[Line] = [
        ("a", {"a": 1}, ""),
        ("b", {"a": 1, "b": 1}, ""),
        ("c", {"a": 1, "b": 1, "c": 1}, ""),
    ]
    found, _ = taken(lines, Options())
    assert heard(found) == [("b", "a:1"), ("c", "b:1")]
    assert [event.kind for event in found.events if event.process == 1] == ["deliver", "send"]


EVENT_FIRST = 'start\na {"a":1}\nstart\nb {"a":1, "b":1}\n'
ONE_LINE = 'a "sends" {"a":1}\nb "hears" {"a":1, "b":1}\n'
TIMED = '1000000 a {"a":1}\nstart\n2000000 b {"a":1, "b":1}\nstart\n'


@pytest.mark.parametrize(
    ("log", "options"),
    [
        (EVENT_FIRST, Options()),
        (TIMED, Options()),
        (ONE_LINE, Options(parser=r'(?<host>\w+) "(?<event>.*)" (?<clock>\{.*\})')),
        ("# a comment\n" + EVENT_FIRST, Options()),
    ],
)
def test_layouts(log: str, options: Options) -> None:
    found, _ = taken(log, options)
    assert heard(found) == [("b", "a:1")]
    times = [event.time_us for event in found.events]
    assert times == ([1000, 2000] if log == TIMED else [None, None])


def test_executions_behind_delimiters_are_runs(tmp_path: Path) -> None:
    part = 'a {"a":1}\nstart\nb {"a":1, "b":1}\nstart\n'
    file = tmp_path / "r.log"
    file.write_text(f" \n=== Execution #1  ===\n{part} \n=== Execution #2  ===\n{part}")
    for pattern, names in (
        (r"^=== .* ===$", ["r 1", "r 2"]),
        (r"^=== Execution (?<trace>\S+) +===$", ["#1", "#2"]),
    ):
        options = Options(delimiter=pattern)
        out = tmp_path / names[0]
        import_trace([file], out, format="shiviz", options=options)
        runs = Trace.load(out)
        assert [trace.manifest.run for trace in runs] == names
        assert [len(trace.events) for trace in runs] == [2, 2]


def test_a_file_per_process_is_one_run(tmp_path: Path) -> None:
    directory = tmp_path / "chat"
    directory.mkdir()
    (directory / "b-Log.txt").write_text('b {"b":1}\nstart\nb {"a":2, "b":2}\nhears\n')
    (directory / "a-Log.txt").write_text('a {"a":1}\nstart\na {"a":2}\nsends\n')
    import_trace([directory], tmp_path / "trace", format="auto")
    [trace] = Trace.load(tmp_path / "trace")
    assert (trace.manifest.run, trace.manifest.processes) == ("chat", ("a", "b"))
    assert heard(trace) == [("b", "a:2")]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (Options(parser="(?<host>a"), r"--parser '\(\?<host>a' is not a regular expression"),
        (Options(parser="(?<host>a)"), "has no group named clock: write "),
        (Options(parser="(?<host>x) (?<clock>y) (?<event>z)"), "finds no event in it"),
    ],
)
def test_a_parser_that_finds_nothing_is_refused(options: Options, sentence: str) -> None:
    with pytest.raises((UsageError, TraceError), match=sentence):
        taken(EVENT_FIRST, options)
