"""What is made is up to date, and good to look at: stories, pictures, tables."""

from __future__ import annotations

import re
import shutil
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest
from command import main
from outputs import DOCS, stale
from placing import Box
from stories import play

from ordercast.errors import UsageError
from ordercast.simulator.scenario import parse, render

STORIES = sorted(DOCS.rglob("scenarios/*.txt"))
PICTURES = sorted(DOCS.rglob("img/*.svg"))
SVG = "{http://www.w3.org/2000/svg}"
WIDTH_MAX = 900


def test_nothing_is_stale() -> None:
    names = [str(file.relative_to(DOCS)) for file in sorted(stale())]
    assert names == [], "run .venv/bin/python scripts/docs, and review the diff"


@pytest.mark.parametrize("file", STORIES, ids=lambda file: file.stem)
def test_the_story_plays_as_written(file: Path) -> None:
    text = file.read_text()
    assert render(play(text).blocks) == text
    assert parse(text)[0].comment, "a story begins with what it shows"


def test_a_story_that_ends_in_the_middle_is_refused() -> None:
    with pytest.raises(ValueError, match="from p0 to p1: pass it"):
        play("# Unfinished.\n\ngroup 2 fifo\n\nsend 0\n")


def test_check_names_what_is_stale_and_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    docs = tmp_path / "docs"
    shutil.copytree(DOCS, docs)
    assert main(["--check"], docs) == 0
    page = docs / "algorithms" / "fifo.md"
    page.write_text(page.read_text().replace("| Costs |", "| Price |"))
    (docs / "algorithms" / "img" / "relay.svg").unlink()
    (docs / "algorithms" / "img" / "gone.svg").write_text("<svg/>")
    before = page.read_text()
    assert main(["--check"], docs) == 1
    named = capsys.readouterr().out.splitlines()
    images = "stale: docs/algorithms/img"
    assert named == ["stale: docs/algorithms/fifo.md", f"{images}/gone.svg", f"{images}/relay.svg"]
    assert page.read_text() == before
    assert main([], docs) == 0
    assert main(["--check"], docs) == 0


def test_a_trace_of_which_nobody_says_what_it_shows_is_named(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    shutil.copytree(DOCS, docs)
    shutil.copy(docs / "img" / "witness.jsonl", docs / "img" / "another.jsonl")
    with pytest.raises(UsageError, match=r"img/another\.jsonl: say under WITNESSED in "):
        stale(docs)


@pytest.mark.parametrize("file", PICTURES, ids=lambda file: file.stem)
def test_a_picture_stands_alone(file: Path) -> None:
    text = file.read_text()
    svg = ElementTree.fromstring(text)
    assert float(svg.get("width", "inf")) <= WIDTH_MAX, "wider than a page: text gets too small"
    assert svg.find(f"{SVG}title") is not None
    assert "prefers-color-scheme: dark" in text
    assert not re.search(r"href|url\(|@import|<script", text)
    styled = set(re.findall(r"\.([a-z][\w-]*)", svg.findtext(f"{SVG}style", "")))
    used = {name for e in svg.iter() for name in e.get("class", "").split()}
    assert {"paper", "line", "o0"} <= used & styled
    defined = set(re.findall(r"(--[\w-]+):", text))
    assert set(re.findall(r"var\((--[\w-]+)\)", text)) <= defined


@pytest.mark.parametrize("file", PICTURES, ids=lambda file: file.stem)
def test_no_text_lies_on_another(file: Path) -> None:
    svg = ElementTree.fromstring(file.read_text())
    texts = [(e.text, text_box(e)) for e in svg.iter(f"{SVG}text") if e.text and is_free(e)]
    assert texts
    for (one, box), (other, second) in combinations(texts, 2):
        assert not box.overlaps(second), f"{one!r} and {other!r} overlap"
        assert box.right <= float(svg.get("width", "0"))


def is_free(text: ElementTree.Element) -> bool:
    """The report places the texts of its axis, bars and notes where nothing else comes."""
    return bool({"word", "label"} & set(text.get("class", "").split()))


def text_box(text: ElementTree.Element) -> Box:
    classes = text.get("class", "").split()
    size = 10.0 if {"word", "held"} & set(classes) else 11.0
    width = len(text.text or "") * size * 0.602
    x, base = float(text.get("x", "0")), float(text.get("y", "0"))
    anchor = "middle" if "word" in classes else text.get("text-anchor", "start")
    left = x - width * {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor]
    return Box(left, base - 0.72 * size, left + width, base + 0.1 * size)
