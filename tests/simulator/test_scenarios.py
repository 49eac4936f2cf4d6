"""Every story in tests/scenarios plays as its file says. `pytest --rewrite` writes them anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from ordercast.oracle import told
from ordercast.simulator.scenario import Block, Scenario, parse, render

FILES = sorted((Path(__file__).parent.parent / "scenarios").glob("*.txt"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_story_plays_as_written(file: Path, request: pytest.FixtureRequest) -> None:
    text = file.read_text()
    played = render(Scenario(judge=told).play(parse(text)))
    if request.config.getoption("--rewrite"):
        file.write_text(played)
    else:
        assert played == text, f"to accept: pytest {__file__} --rewrite, and review the diff"


def test_every_story_cites_where_it_comes_from_or_says_what_it_shows() -> None:
    assert FILES
    for file in FILES:
        assert len(parse(file.read_text())[0].comment) >= 1, file


@pytest.mark.parametrize(
    ("size", "why"),
    [
        ("0", "a group of 0 has no members: use at least one process"),
        ("9" * 5000, f"a group of {'9' * 20} is too large to simulate: up to 10,000 fit"),
    ],
)
def test_a_group_of_nobody_or_of_too_many_is_refused(size: str, why: str) -> None:
    [block] = Scenario().play(parse(f"group {size} fifo\n----\n"))
    assert list(block.output) == [f"refused: {why}"]


def test_commands_that_make_no_sense_are_refused_in_the_story() -> None:
    scenario = Scenario()
    assert scenario.command("send 0") == [
        "refused: a scenario begins with 'group': how many, and which ordering"
    ]
    scenario.command("group 3 causal_vector")
    for command, sentence in {
        "sned 0": "none that a scenario knows",
        "pass 0->1": "0 packets are under way",
        "crash 3": "no process 3",
        "send 0 to 1": "broadcasts only",
        "group 3 causal_oracle": "no order 'causal_oracle'",
        "verdicts": "nobody judges here",
    }.items():
        [line] = scenario.command(command)
        assert line.startswith("refused: "), line
        assert sentence in line


def test_parse_and_render_are_inverse() -> None:
    blocks = [
        Block(("# why",), "", ()),
        Block((), "pass all", ("p1 delivers 0:1",)),
        Block(("# a", "# b"), "links", ()),
    ]
    assert parse(render(blocks)) == blocks


def test_commands_need_no_blank_lines_between_them() -> None:
    story = (
        "# A question.\ngroup 3 fifo\nsend 0 hi\n# It arrives.\npass 0->1\n----\nold\n\npass 0->2\n"
    )
    blocks = parse(story)
    commands = ["group 3 fifo", "send 0 hi", "pass 0->1", "pass 0->2"]
    assert [block.command for block in blocks] == commands
    assert [block.comment for block in blocks] == [("# A question.",), (), ("# It arrives.",), ()]
    assert [block.output for block in blocks] == [(), (), ("old",), ()]
    *_, last = Scenario().play(blocks)
    assert last.output == ("p2 delivers 0:1",)
