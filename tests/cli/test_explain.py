"""`ordercast explain` as a user meets it."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import msgspec
import pytest

from ordercast.cli import main, parser
from ordercast.errors import TraceError
from ordercast.trace.event import Event, Kind
from ordercast.trace.jsonl import encode_event
from ordercast.trace.runs import without_contradiction

from ..pipeline.builders import Run, run, write

DOCS = Path(__file__).parent.parent.parent / "docs" / "explain.md"

# A question, its answer, and a third who hears the answer first: it waits, or it does not.
HELD = run("r", "s1 d0:1 s2", "d0:1 s1 d1:1", "r1:1 r0:1 d0:1 d1:1")
EARLY = run("r", "s1 d0:1", "d0:1 s1 d1:1", "d1:1 d0:1")


def timed(one: Run) -> Run:
    events = (msgspec.structs.replace(e, time_us=1_000 * e.position) for e in one.events)
    return Run(one.manifest, tuple(events))


@pytest.fixture(params=["jsonl", "parquet"])
def held(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return write(tmp_path / "held", [timed(HELD)], request.param)


def explained(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[str]:
    assert main(["explain", *map(str, arguments)]) == 0
    done = capsys.readouterr()
    assert done.err == f"reading {arguments[0]} …\n"
    return done.out.splitlines()


def test_one_happened_before_the_other(held: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = [
        "0:1 happened before 1:1:",
        "  p0 sent 0:1 at position 0",
        "  p1 delivered 0:1 at position 0",
        "  p1 sent 1:1 at position 1",
    ]
    assert explained(capsys, held, "0:1", "1:1") == told
    assert explained(capsys, held, "1:1", "0:1") == told


def test_neither_did(held: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert explained(capsys, held, "0:2", "1:1") == [
        "0:2 and 1:1 are concurrent: neither was sent knowing of the other."
    ]


def test_concurrent_messages_that_cross(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    crossed = run("r", "s1 d1:1", "s1 d0:1 d0:1", complete=False, names=["a", "b"])
    trace = write(tmp_path / "t", [crossed])
    assert explained(capsys, trace, "0:1", "1:1") == [
        (
            "a:1 and b:1 are concurrent, as far as a log with holes can tell: "
            "neither was sent knowing of the other."
        ),
        "  b delivered a:1 at position 1, after it had sent b:1",
        "  a delivered b:1 at position 1, after it had sent a:1",
    ]


def test_a_log_that_contradicts_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = write(tmp_path / "t", [run("r", "d1:1 s1", "d0:1 s1")])
    first = explained(capsys, trace, "0:1", "1:1")[0]
    assert first == "0:1 and 1:1 each happened before the other: the log contradicts itself."


def test_what_a_message_waited_for(held: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert explained(capsys, held, "1:1", "--at", "2") == [
        "p2 delivered 1:1 at position 3; it had received it at position 0, 3.0 ms before.",
        "Of what happened before it, p2 had still to deliver 1 message when it arrived:",
        "  0:1: received at position 1, delivered at position 2",
        "Right before it, p2 delivered 0:1 (position 2).",
    ]


def test_what_did_not_wait(held: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert explained(capsys, held, "1:1", "--at", "1") == [
        "p1 delivered 1:1 at position 2; it had sent it at position 1, 1.0 ms before.",
        "All that happened before it and is for p1 had been delivered when it was sent.",
        "Right before it, p1 delivered 0:1 (position 0).",
    ]


def test_a_message_that_came_too_early(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = write(tmp_path / "t", [EARLY])
    assert explained(capsys, trace, "1:1", "--at", "2") == [
        "p2 delivered 1:1 at position 0, and its log has no arrival of it.",
        "Of what happened before it, p2 had still to deliver 1 message when it was delivered:",
        "  0:1: delivered at position 1",
        "It was delivered too early: without 0:1, which happened before it:",
        "  p0 sent 0:1 at position 0",
        "  p1 delivered 0:1 at position 0",
        "  p1 sent 1:1 at position 1",
    ]


def test_a_message_that_is_still_held(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest_says = [{"process": 2, "message": "1:1", "waits_for": ["0:1"], "waits_on": []}]
    one = run("r", "s1", "d0:1 s1", "r1:1 crash")
    one.manifest.extra["waiting"] = manifest_says
    trace = write(tmp_path / "t", [one])
    assert explained(capsys, trace, "1:1", "--at", "p2") == [
        "p2 never delivered 1:1; it had received it at position 0.",
        "p2 had crashed when its log ended.",
        "Of what happened before it, p2 had still to deliver 1 message when it arrived:",
        "  0:1: never delivered",
        "It can still be waiting for 0:1, which happened before it:",
        "  p0 sent 0:1 at position 0",
        "  p1 delivered 0:1 at position 0",
        "  p1 sent 1:1 at position 1",
        "What p2 itself said: waiting for 0:1.",
    ]


def test_a_message_for_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = write(tmp_path / "t", [run("r", "s1 s2>1", "d0:2 d0:1", "join")])
    assert explained(capsys, trace, "0:2", "--at", "2") == [
        "p2 never delivered 0:2, and its log has no arrival of it.",
        "It is not addressed to p2.",
    ]


def test_answers_for_machines(held: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [line] = explained(capsys, held, "0:1", "1:1", "--json")
    answer = json.loads(line)
    assert (answer["run"], answer["relation"]) == ("r", "before")
    assert answer["chain"][1] == {"process": 1, "position": 0, "kind": "deliver", "message": "0:1"}
    [line] = explained(capsys, held, "1:1", "--at", "2", "--json")
    answer = json.loads(line)
    assert answer["waited_us"] == 3_000
    assert [one["message"] for one in answer["pending"]] == ["0:1"]
    assert answer["missing"] == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("0:9 1:1 --run a", "there is no message 0:9 in it"),
        ("0:1 1:1", "there are several runs, 'a' and 'b' among them: choose one with --run"),
        ("0:1 1:1 --run c", "there is no event of a run 'c' in it"),
        ("0:1 --at x --run c", "there is no event of a run 'c' in it"),
        ("x:1 0:1 --run c", "there is no event of a run 'c' in it"),
        ("0:1 --at 7 --run a", "there is no process '7' in it"),
        ("2:5 0:1 --run b", "2:5 came to someone, but its send is not in the log"),
        ("0:1 0:1", "0:1 is one message: name two, or a process with --at"),
        ("0:1", "name two messages, or one message and a process with --at"),
        ("0:1 1:1 --at 2", "name two messages, or one message and a process with --at"),
        ("0-1 1:1", "'0-1' is not a message: say its origin and its number, such as 0:3"),
        (f"0:{'9' * 5_000} 1:1", "is not a message: say its origin and its number, such as 0:3"),
        (f"p0:{'9' * 5_000} 1:1", "is not a message: say its origin and its number, such as 0:3"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = write(tmp_path / "t", [run("a", "s1", "d0:1 s1"), run("b", "s1", "d2:5")])
    assert main(["explain", str(trace), *arguments.split()]) == 2
    done = capsys.readouterr()
    assert done.out == ""
    assert sentence in done.err
    assert done.err.splitlines()[-1].startswith("ordercast explain: ")


@pytest.mark.parametrize("kind", ["send", "receive"])
@pytest.mark.parametrize("question", [["0:1", "1:1"], ["0:1", "--at", "1"]])
def test_what_contradicts_itself_explains_nothing(
    question: list[str], kind: Kind, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same row twice, or another one in its place: the judge's sentence."""
    rows = [*run("r", "s1 s2", "d0:1 s1").events, Event("r", 0, 1, kind, 0, 2)]
    file = tmp_path / "events.jsonl"
    file.write_bytes(b"".join(map(encode_event, rows)))
    assert main(["explain", str(file), *question]) == 2
    words = f"{file}: run 'r' has two events of process 0 at position 1"
    assert capsys.readouterr().err.splitlines()[-1] == f"ordercast explain: {words}"


@pytest.mark.parametrize(
    ("verb", "advice"),
    [
        (["explain", "0:1", "1:1"], ""),
        (["verify", "--here"], "; --skip-bad-rows leaves out what cannot be used"),
    ],
)
def test_a_message_that_was_sent_twice_explains_nothing_either(
    verb: list[str], advice: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [*run("r", "s1", "d0:1 s1").events, Event("r", 0, 1, "send", 0, 1)]
    file = tmp_path / "events.jsonl"
    file.write_bytes(b"".join(map(encode_event, rows)))
    assert main([verb[0], str(file), *verb[1:]]) == 2
    words = f"{file}: run 'r' has two send rows for 0:1{advice}"
    assert capsys.readouterr().err.splitlines()[-1] == f"ordercast {verb[0]}: {words}"


def test_rows_may_come_in_any_order_but_only_once(tmp_path: Path) -> None:
    positions = [2**63 - 1, *range(5_000, 0, -3), *range(5_001, 1, -3), 0, *range(1, 5_000, 3)]
    rows = [
        Event(one, process, at, "crash") for at in positions for one in "ab" for process in (0, 1)
    ]
    assert list(without_contradiction(rows, tmp_path)) == rows
    for at in (positions[0], 5_001, 1_024, 0):
        with pytest.raises(
            TraceError, match=f"run 'b' has two events of process 1 at position {at}$"
        ):
            list(without_contradiction([*rows, Event("b", 1, at, "leave")], tmp_path))


def test_a_bare_file_with_several_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "t", [run("a", "s1"), run("b", "s1")]) / "events.jsonl"
    assert main(["explain", str(file), "0:1", "0:2"]) == 2
    assert "there are several runs, 'a' and 'b' among them" in capsys.readouterr().err


def test_a_bare_file_knows_only_those_seen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "t", [HELD]) / "events.jsonl"
    assert main(["explain", str(file), "0:1", "--at", "7"]) == 2
    assert "there is no process 7 in it" in capsys.readouterr().err


def test_processes_may_be_any_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    last = 2**31 - 1
    rows = [Event("r", 0, 0, "send", 0, 1), Event("r", last, 0, "deliver", 0, 1)]
    file = tmp_path / "events.jsonl"
    file.write_bytes(b"".join(map(encode_event, rows)))
    for name in (str(last), f"p{last}"):
        told = explained(capsys, file, "0:1", "--at", name)
        assert told[0].startswith(f"p{last} delivered 0:1 at position 0")


def test_the_page_shows_what_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = DOCS.read_text()
    (tmp_path / "events.jsonl").write_text(re.findall(r"```json\n(.*?)```", page, re.DOTALL)[0])
    shown = re.findall(r"^    ordercast ([^\n]+)\n\n```\n(.*?)```", page, re.DOTALL | re.MULTILINE)
    assert len(shown) == 2
    for command, output in shown:
        words = shlex.split(command)
        parser().parse_args(words)
        words[1] = str(tmp_path / "events.jsonl")
        assert main(words) == 0
        assert capsys.readouterr().out == output


def test_processes_go_by_index_by_p_and_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = write(tmp_path / "t", [run("r", "s1 d0:1", "d0:1 s1 d1:1", names=["ann", "bob"])])
    told = explained(capsys, trace, "0:1", "1:1")
    assert explained(capsys, trace, "ann:1", "p1:1") == told
    assert told[0] == "ann:1 happened before bob:1:"
    waits = explained(capsys, trace, "ann:1", "--at", "bob")
    assert waits[0] == "bob delivered ann:1 at position 0, and its log has no arrival of it."
    confusing = write(tmp_path / "u", [run("r", "s1 d0:1", "d0:1 s1 d1:1", names=["p1", "p2"])])
    assert explained(capsys, confusing, "0:1", "1:1")[0] == "0:1 happened before 1:1:"
    assert explained(capsys, trace, "p0:1", "--at", "p1") == waits
    assert main(["explain", str(trace), "carl:1", "0:1"]) == 2
    assert "there is no process 'carl' in it: choose from ann, bob" in capsys.readouterr().err


@pytest.mark.parametrize("more", [0, 1500])
@pytest.mark.parametrize("form", [[], ["--jsonl"]])
def test_an_imported_message_goes_by_its_own_id(
    more: int, form: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whether the ids are in the manifest or, because they are many, beside it."""
    source, trace = tmp_path / "log.csv", tmp_path / "trace"
    rows = ["a,send,order-17", "b,deliver,order-17", "b,send,eu:order:18"]
    source.write_text(
        "\n".join(["process,kind,message", *rows, *(f"c,send,{n}" for n in range(more))])
    )
    assert main(["import", str(source), "-o", str(trace), *form]) == 0
    capsys.readouterr()
    chain = [
        "a:1 happened before b:1:",
        "  a sent a:1 at position 0",
        "  b delivered a:1 at position 0",
        "  b sent b:1 at position 1",
    ]
    names = ["In the log:", "  a:1  order-17", "  b:1  eu:order:18"]
    assert explained(capsys, trace, "order-17", "eu:order:18") == [*chain, *names]
    assert explained(capsys, trace, "a:1", "1:1") == [*chain, *names]
    assert main(["explain", str(trace), "order-17", "order-19"]) == 2
    assert "no message is called 'order-19' in the log: give its id" in capsys.readouterr().err
