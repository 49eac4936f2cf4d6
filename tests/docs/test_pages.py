"""Every algorithm has its page, every page is whole, and every link leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from blocks import BLOCK, ENTRIES
from outputs import DOCS

from ordercast.report.words import property_words

PAGES = sorted(DOCS.rglob("*.md"))
ALGORITHMS = DOCS / "algorithms"
SECTIONS = [
    "The idea",
    "The rules",
    "The picture",
    "Why it is right",
    "What a crash does",
    "What it costs",
    "When to choose it",
    "Source",
]


def sections(page: Path) -> dict[str, str]:
    """The text under each heading of the second level."""
    _, *parts = re.split(r"^## (.+)\n", page.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def anchors(page: Path) -> set[str]:
    """What GitHub makes of the headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


@pytest.mark.parametrize("name", ENTRIES)
def test_the_page_of_an_algorithm_is_whole(name: str) -> None:
    page = ALGORITHMS / f"{name}.md"
    text = page.read_text()
    assert text.startswith(f"# `{name}`: ")
    assert list(sections(page)) == SECTIONS
    assert all(len(part.split()) > 8 for part in sections(page).values())
    assert [found["name"] for found in BLOCK.finditer(text)] == ["catalog", "rules"]
    assert f"(img/{name}.svg)" in sections(page)["The picture"]
    assert f"(scenarios/{name}.txt)" in text
    assert f"{name}.py)" in text


@pytest.mark.parametrize("name", ENTRIES)
def test_every_promise_is_argued_for(name: str) -> None:
    argument = sections(ALGORITHMS / f"{name}.md")["Why it is right"].lower()
    for promise in ("no_duplication", "no_creation", "validity", *ENTRIES[name].promises):
        words = property_words(promise).lower()
        words = "total order" if words.endswith("total order") else words
        assert words in argument, f"{name}.md does not argue for {words}"


def test_the_index_names_every_algorithm() -> None:
    text = (ALGORITHMS / "README.md").read_text()
    by_hand = BLOCK.sub("", text)
    for name in ENTRIES:
        assert f"]({name}.md)" in by_hand, f"the guide forgets {name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_and_pictures_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in anchors(file), f"{page.name} links to {target}"


def test_every_page_is_listed_and_the_list_is_found() -> None:
    listed = (DOCS / "README.md").read_text()
    assert [page.name for page in DOCS.glob("*.md") if f"]({page.name})" not in listed] == [
        "README.md"
    ]
    assert "(docs/README.md)" in (DOCS.parent / "README.md").read_text()


def test_every_picture_and_every_story_is_shown() -> None:
    shown = {
        (page.parent / target).resolve()
        for page in PAGES
        for target in re.findall(r"\]\(([^)\s#]+)\)", page.read_text())
    }
    made = [*DOCS.rglob("*.svg"), *DOCS.rglob("scenarios/*.txt")]
    assert made
    assert [file.name for file in made if file.resolve() not in shown] == []
