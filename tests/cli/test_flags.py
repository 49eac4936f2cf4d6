"""The same flags and the same words for every verb, and help for all of them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import pytest

from ordercast.cli import main, parser
from ordercast.cli.algorithm import chosen
from ordercast.cli.follow import Follower
from ordercast.cli.sweep import _configurations
from ordercast.runtime.plan import Plan
from ordercast.trace import Trace
from ordercast.trace.verdicts import Verdict


@pytest.mark.parametrize("verb", ["run", "simulate"])
@pytest.mark.parametrize("flag", ["--order", "--ordering"])
@pytest.mark.parametrize(
    ("words", "algorithm"),
    [
        (["total"], ("total_coordinator", "direct")),
        (["causal", "--reliability", "uniform"], ("causal_vector", "majority_acks")),
        (["causal_history", "--dissemination", "relay"], ("causal_history", "relay")),
    ],
)
def test_an_algorithm_is_named_as_in_join(
    verb: str, flag: str, words: list[str], algorithm: tuple[str, str]
) -> None:
    assert chosen(parser().parse_args([verb, flag, *words])) == algorithm


def test_a_sweep_takes_the_same_words() -> None:
    options = parser().parse_args(["sweep", "--order", "fifo,causal", "--reliability", "uniform"])
    found, _ = _configurations(options)
    assert {one.ordering for one in found} == {"fifo", "causal_vector"}
    assert {one.dissemination for one in found} == {"majority_acks"}


def test_a_word_becomes_the_name_in_the_manifest(tmp_path: Path) -> None:
    assert main(["simulate", "--order", "causal", "--trace", str(tmp_path / "t")]) == 0
    [trace] = Trace.load(tmp_path / "t")
    assert trace.manifest.order == "causal_vector"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["verify", "--ordering", "causal", "t"],
            "--ordering (did you mean --order?) t (see 'orde",
        ),
        (
            ["stream", "watch", "t", "--onc", "--jsn"],
            "--jsn (did you mean --json?) (see 'ordercast",
        ),
        (["bench"], "ordercast bench: the following arguments are required: NAME (see"),
    ],
)
def test_a_mistyped_flag_is_told_by_its_verb(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["simulate", "--faults", "crash:1@20"], "a time needs its unit (us, ms or s), such as"),
        (["simulate", "--faults", "delay:0>1=20ms"], "at all times; write 'delay:20ms'"),
        (["run", "--faults", "delay:0>1=20ms,fifo"], "connections keep their order anyway"),
        (["run", "--faults", "kill:1@1s+1"], "such as 'kill:1@1s+1ms'"),
        (["run", "--faults", "kill:1@2S"], "character 8, at '2S': 'S' is no unit of time (us, ms"),
        (["run", "--faults", "delay:20µs"], "character 7, at '20µs': 20 of what? a time has"),
        (["run", "--faults", f"kill:{'9' * 12}@2s"], "names process 999999999999: in a group of 3"),
        (["simulate", "--faults", "crash:1@2S"], "the fault 'crash:1@2S' has none of the fo"),
        (["simulate", "--faults", "crash:1#0"], "would never happen: copies are counted from"),
        (["sweep", "--faults", "delay:1..2"], "such as 'delay:1ms..2ms'"),
        (["simulate", "--scenario", "nowhere"], "--scenario nowhere cannot be read: No such file"),
        (["stream", "order", "nowhere", "--group", "g", "--output", "o", "--checkpoint", "c"],
         "ordercast stream order: nowhere: there is no such directory"),
        (["report", "nowhere", "-o", "."], "-o . is a directory: name a file"),
        (["report", "nowhere", "-o", "no/page.html"], "there is no directory no: make it first"),
        (["run", "-o", "no/page.html"], "there is no directory no: make it first"),
        (["run", "--conf", "x"], "--conf 'x' is not of the form KEY=VALUE"),
        (["run", "--master", "nope"], "'nope' is no Spark master: write local[*], spark://HOST"),
        (["run", "--conf", "spark.master=local[]"], "'local[]' is no Spark master"),
        (["run", "--master", "spark://127.0.0.1:9"], "no Spark master answers at 127.0.0.1:9"),
        (["run", "--messages", "0"], "--messages 0: nothing to judge: choose 1 or more"),
        (["run", "--messages", "-1"], "--messages -1: nothing to judge: choose 1 or more"),
        (["simulate", "--format", "jsonl"], "is about the trace: give it with --trace DIR"),
    ],
)  # fmt: skip
def test_what_can_be_told_at_once_is(
    arguments: list[str],
    sentence: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    [said] = capsys.readouterr().err.splitlines()
    assert sentence in said
    assert not list(tmp_path.iterdir())


def test_rows_in_the_wrong_place_are_told_where_they_belong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("mine.csv", "logs/a.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
        assert (
            main(["verify", str((tmp_path / name).parent if "/" in name else tmp_path / name)]) == 2
        )
        assert "--format table" in capsys.readouterr().err


def test_a_command_that_a_scenario_does_not_know_is_a_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    story = tmp_path / "story.txt"
    story.write_text("group 2 fifo\n\nsned 0\n")
    assert main(["simulate", "--scenario", str(story)]) == 2
    done = capsys.readouterr()
    assert (
        "'sned 0' was refused: the command 'sned 0' is none that a scenario knows: write group"
        in done.err
    )
    story.write_text(done.out)  # the file foresees it now
    assert main(["simulate", "--scenario", str(story)]) == 0


def verbs(top: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    for action in top._actions:
        if isinstance(action, argparse._SubParsersAction):
            for own in action.choices.values():
                yield from verbs(own)
                yield own


@pytest.mark.parametrize("verb", list(verbs(parser())), ids=lambda verb: verb.prog)
def test_every_flag_is_explained_with_its_default(verb: argparse.ArgumentParser) -> None:
    for action in verb._actions:
        if isinstance(action, argparse._SubParsersAction):
            continue
        assert action.help, f"{verb.prog} {action.option_strings or action.dest}"
        if action.option_strings and action.default not in (None, False, "", 0, [], (), {}):
            assert "default" in action.help or action.dest == "help", action.option_strings


def test_the_watch_of_a_run_says_what_nobody_promised(tmp_path: Path) -> None:
    told: list[str] = []

    class Heard:
        def note(self, what: str) -> None:
            told.append(what)

    plan = Plan(run="r", ordering="fifo", dissemination="best_effort", processes=2, messages=1)
    follower = Follower(plan, tmp_path, Heard())  # type: ignore[arg-type]
    for name in ("fifo", "causal"):
        follower._say(Verdict("r", name, "violated", 1, 1))
    assert told == [
        "the watch: fifo ✘ violated",
        "the watch: causal ✘ violated (not promised)",
    ]
