"""What only some formats have: levels, links, sessions, crashes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from import_samples import GOOD, JEPSEN_BROKEN, JEPSEN_GOOD, OTLP_GOOD, journal, span

from ordercast.errors import TraceError, UsageError
from ordercast.oracle import judge
from ordercast.trace import Trace
from ordercast.trace.importers import Imported, Options, import_trace


def taken(
    format: str, text: str, directory: Path, name: str = "r.log", **options: Any
) -> tuple[Trace, Imported]:
    (directory / name).write_text(text)
    done = import_trace(
        [directory / name], directory / "trace", format=format, options=Options(**options)
    )
    [trace] = Trace.load(directory / "trace")
    return trace, done


def verdicts(trace: Trace) -> dict[str, str]:
    return {verdict.property: verdict.verdict for verdict in judge(trace)}


def kinds(trace: Trace, process: int) -> list[str]:
    return [event.kind for event in trace.events if event.process == process]


def entry(kind: str, **fields: object) -> str:
    return json.dumps({kind: {"time": 1.5, **fields}}) + "\n"


def local(kind: str, process: str, text: str) -> str:
    message = {"tip": kind, "data": json.dumps({"text": text})}
    return entry(kind, msg_id="x", node=process, proc=process, msg=message)


def test_dslab_applications_broadcast_what_users_hand_in(tmp_path: Path) -> None:
    started = "".join(entry("ProcessStarted", node=p, proc=p) for p in "abc")
    hello = [local("LocalMessageSent", p, "hello") for p in "abc"]
    answer = [local("LocalMessageSent", p, "answer") for p in "abc"]
    log = (
        started
        + local("LocalMessageReceived", "a", "hello")
        + hello[0]
        + hello[1]
        + local("LocalMessageReceived", "b", "answer")
        + answer[1]
        + answer[0]
        + answer[2]
        + hello[2]
    )
    trace, _ = taken("dslab", log, tmp_path, level="application", quiesced=True)
    found = verdicts(trace)
    assert (found["causal"], found["agreement"], found["validity"]) == (
        "violated",
        "holds",
        "holds",
    )
    assert trace.events[0].time_us == 1_500_000


def test_dslab_crashes_are_of_all_processes_of_a_node(tmp_path: Path) -> None:
    log = (
        "".join(entry("ProcessStarted", node="n", proc=p) for p in "ab")
        + entry("NodeCrashed", node="n")
        + entry("NodeRecovered", node="n")
        + entry("McStarted")
    )
    trace, done = taken("dslab", log, tmp_path)
    assert kinds(trace, 0) == kinds(trace, 1) == ["crash", "recover"]
    assert done.report.notes == [
        "what the model checker tried (Mc… entries) is not one run: left out"
    ]


@pytest.mark.parametrize("reached", ["MessageReceived", "LocalMessageSent"])
def test_dslab_processes_that_something_reaches_have_a_log(reached: str, tmp_path: Path) -> None:
    message = {"src_proc": "a", "dst_proc": "b", "msg": {"data": "1"}}
    sent = entry("ProcessStarted", node="n", proc="a") + entry("MessageSent", msg_id="2", **message)
    (tmp_path / "silent").mkdir()
    trace, done = taken("dslab", sent, tmp_path / "silent")
    assert not trace.manifest.complete
    assert done.report.notes == ["there is no log of b"]
    trace, done = taken("dslab", sent + entry(reached, msg_id="2", proc="b"), tmp_path)
    assert trace.manifest.complete
    assert not done.report.notes


def test_dslab_names_are_text(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"line 1: a ProcessStarted without a proper 'proc'"):
        taken("dslab", entry("ProcessStarted", node="n", proc=5), tmp_path)


def test_dslab_arrivals_of_nothing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"line 1: '7' arrives, and nobody is seen to send it"):
        taken("dslab", entry("MessageReceived", msg_id="7"), tmp_path)


def test_otlp_parents_operations_and_whole_files(tmp_path: Path) -> None:
    exports = [json.loads(line) for line in OTLP_GOOD.splitlines()]
    consumer = exports[1]["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    consumer |= {"links": [], "traceId": f"{'1':0>32}", "parentSpanId": f"{'1':0>16}"}
    for export, operation in ((3, "receive"), (4, "process")):
        [found] = exports[export]["resourceSpans"][0]["scopeSpans"][0]["spans"]
        value = {"stringValue": operation}
        found["attributes"] = [{"key": "messaging.operation.type", "value": value}]
        found["kind"] = "SPAN_KIND_CONSUMER"
    whole = {"resourceSpans": [one for export in exports for one in export["resourceSpans"]]}
    trace, done = taken("otlp", json.dumps(whole, indent=2), tmp_path, "r.json")
    assert kinds(trace, 1) == ["deliver", "send"]
    assert kinds(trace, 2) == ["receive", "deliver"]
    assert trace.manifest.extra["clock"] == "wall"
    assert any("start times" in note for note in done.report.notes)


def test_otlp_producers_that_are_not_in_the_export_are_holes(tmp_path: Path) -> None:
    trace, _ = taken("otlp", OTLP_GOOD + span("c", "6", 5, 70, "9"), tmp_path)
    assert trace.manifest.processes == ("a", "b", "c", "?")
    assert not trace.manifest.complete
    assert verdicts(trace)["no_creation"] == "unknown"


def test_otlp_spans_that_are_exported_again_are_taken_once(tmp_path: Path) -> None:
    first, second, *_ = OTLP_GOOD.splitlines(keepends=True)
    both = span("c", "6", 5, 70, "1", "3")
    log = OTLP_GOOD + both
    (tmp_path / "once").mkdir()
    once, _ = taken("otlp", log, tmp_path / "once")
    again, done = taken("otlp", log + second + first + both + second, tmp_path)
    assert again.events == once.events
    assert again.manifest.complete
    assert "spans that are exported again, unchanged: 4; each is taken once" in done.report.notes


@pytest.mark.parametrize(
    "other",
    [
        span("b", "2", 5, 21, "1"),
        span("b", "2", 5, 20, "1", "3"),
        span("c", "2", 5, 20, "1"),
        span("a", "1", 4, 11),
    ],
)
def test_otlp_spans_that_are_exported_again_otherwise_are_refused(
    other: str, tmp_path: Path
) -> None:
    sentence = r"line 6: the span 0+[12]/0+[12] is exported a second time, and is not the same"
    with pytest.raises(TraceError, match=sentence):
        taken("otlp", OTLP_GOOD + other, tmp_path)
    (tmp_path / "once").mkdir()
    once, _ = taken("otlp", OTLP_GOOD, tmp_path / "once")
    skipped, done = taken("otlp", OTLP_GOOD + other, tmp_path, skip_bad_rows=True)
    assert (skipped.events, done.report.bad) == (once.events, 1)


def test_otlp_notes_say_which_name_is_taken(tmp_path: Path) -> None:
    named = OTLP_GOOD.replace("service.instance.id", "service.name")
    for name, log, words, processes in (
        ("named", named, "its service.name is taken", ("a", "b", "c")),
        ("unnamed", OTLP_GOOD.replace("service.instance.id", "host"), "'unnamed'", ("unnamed",)),
    ):
        (tmp_path / name).mkdir()
        trace, done = taken("otlp", log, tmp_path / name)
        assert trace.manifest.processes == processes
        [_, note] = done.report.notes
        assert words in note
        assert ("is taken, as if" in note) == (name == "named")


def test_otlp_consumers_only_receive_or_deliver(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'crash' is not one of receive, deliver"):
        taken("otlp", OTLP_GOOD, tmp_path, kinds={"process": "crash"})
    receives = OTLP_GOOD.replace(
        '"kind":5',
        '"attributes":[{"key":"messaging.operation","value":{"stringValue":"receive"}}],"kind":5',
    )
    _, done = taken("otlp", receives, tmp_path)
    assert any("--kinds receive=deliver" in note for note in done.report.notes)


def op(stage: str, f: str, value: str, process: int) -> str:
    return f"{{:type :{stage}, :f :{f}, :value {value}, :process {process}}}\n"


def test_jepsen_failures_were_not_sent_and_crashes_are(tmp_path: Path) -> None:
    log = (
        op("invoke", "broadcast", "1", 0)
        + op("fail", "broadcast", "1", 0)
        + op("invoke", "broadcast", "2", 0)
        + op("info", "broadcast", "2", 0)
        + op("ok", "read", "#{2}", 1)
    )
    trace, _ = taken("jepsen", f"[{log}]", tmp_path, quiesced=True)
    assert kinds(trace, 0) == ["send", "crash"]
    assert list(trace.manifest.extra["messages"].values()) == ["2"]
    # c0 never read, so nothing is known of what it has.
    assert trace.events[0].destinations == (1,)
    assert verdicts(trace)["agreement"] == "holds"


@pytest.mark.parametrize(
    ("place", "bad", "sentence"),
    [
        (4, "{:type :ok :f}\n", "line 5: a map with a key that has no value"),
        (4, "{:type :ok, :f :read, :value [1\n", "line 5: '[' is never closed"),
        (4, "{:type :ok, :f :read, :value [1}\n", "line 5: '}' where expected ']'"),
        (4, '{:type :ok, :error "no\n', "line "),
        (4, "{:type :ok, :f :read, :value 12x}\n", "line 5: not a number: '12x'"),
        (9, "{:type :ok, :f :re", "line 10: '{' is never closed"),
    ],
)
def test_jepsen_operations_that_cannot_be_read_are_left_out(
    place: int, bad: str, sentence: str, tmp_path: Path
) -> None:
    lines = JEPSEN_GOOD.splitlines(keepends=True)
    log = "".join([*lines[:place], bad, *lines[place:]])
    with pytest.raises(TraceError, match=re.escape(sentence)):
        taken("jepsen", log, tmp_path, "history.edn")
    (tmp_path / "good").mkdir()
    good, _ = taken("jepsen", JEPSEN_GOOD, tmp_path / "good", "history.edn")
    trace, done = taken("jepsen", log, tmp_path, "history.edn", skip_bad_rows=True)
    assert trace.events == good.events
    assert done.report.bad == 1
    assert not trace.manifest.complete


def test_jepsen_reads_show_duplicates_losses_and_forgeries(tmp_path: Path) -> None:
    log = (
        op("invoke", "add", "1", 0)
        + op("ok", "add", "1", 0)
        + op("ok", "read", "[1 1 7]", 1)
        + op("ok", "read", "[1]", 1)
    )
    trace, done = taken("jepsen", log, tmp_path)
    found = verdicts(trace)
    assert (found["no_duplication"], found["no_creation"]) == ("violated", "violated")
    assert trace.manifest.processes == ("c0", "c1")
    assert any("gone from a later read" in note for note in done.report.notes)


def test_what_a_read_shows_together_breaks_no_order(tmp_path: Path) -> None:
    for text, verdict in ((JEPSEN_GOOD, "holds"), (JEPSEN_BROKEN, "violated")):
        (tmp_path / verdict).mkdir()
        trace, _ = taken("jepsen", text, tmp_path / verdict, "history.edn")
        assert verdicts(trace)["causal"] == verdict


def test_maelstrom_applications_show_what_they_have(tmp_path: Path) -> None:
    def told(kind: str, id: int, node: str, body: str) -> str:
        source, target = (node, "c1") if "_ok" in body else ("c1", node)
        return journal(kind, id, source, target, body)

    nodes = "".join(told("recv", n, f"n{n}", '"type":"init"') for n in (1, 2, 3))
    log = (
        nodes
        + told("recv", 4, "n1", '"type":"broadcast","message":"x"')
        + told("send", 5, "n2", '"type":"read_ok","messages":["x"]')
        + told("recv", 6, "n2", '"type":"broadcast","message":2')
        + told("send", 7, "n3", '"type":"read_ok","messages":[2]')
        + told("send", 8, "n3", '"type":"read_ok","messages":[2,"x"]')
    )
    trace, _ = taken("maelstrom", log, tmp_path, level="application")
    assert trace.manifest.processes == ("n1", "n2", "n3")
    assert verdicts(trace)["causal"] == "violated"


def test_whom_messages_are_for_can_be_told(tmp_path: Path) -> None:
    for to, destinations in (("everyone", None), ("others", (1, 2)), ("receivers", (1, 2))):
        sources = GOOD["table"].write(tmp_path / to)
        options = Options(**GOOD["table"].options, to=to)  # type: ignore[arg-type]
        import_trace(sources, tmp_path / to / "trace", options=options)
        [trace] = Trace.load(tmp_path / to / "trace")
        assert trace.events[0].destinations == destinations
