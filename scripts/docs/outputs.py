"""Every file that is made, with what should be in it."""

from __future__ import annotations

from pathlib import Path

from blocks import filled
from pictures import picture, witness
from stories import play

from ordercast.errors import UsageError
from ordercast.simulator.scenario import render
from ordercast.trace import Trace

__all__ = ["DOCS", "outputs", "stale", "write"]

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"

BROKEN = {
    "best_effort": "agreement",
    "crown": "synchronous",
    "majority_half": "uniform_agreement",
    "middleman": "causal",
    "opposite_orders": "total_pairwise",
    "unordered": "fifo",
}
"""The stories that end badly, and the property that they are about."""
WITNESSED = {"witness": "causal"}
"""The traces of which only the witness is drawn, as the report does."""


def outputs(docs: Path = DOCS) -> dict[Path, str]:
    """Scenarios as they really play, a picture of each and of a witness, and the pages with their
    blocks."""
    made: dict[Path, str] = {}
    top = docs.parent / "README.md"
    for page in [*([top] if top.is_file() else []), *sorted(docs.rglob("*.md"))]:
        made[page] = filled(page, page.read_text())
    for file in sorted(docs.rglob("scenarios/*.txt")):
        story = play(file.read_text())
        made[file] = render(story.blocks)
        drawing = file.parent.parent / "img" / f"{file.stem}.svg"
        made[drawing] = picture(file.stem, story, broken=BROKEN.get(file.stem))
    for file in sorted(docs.rglob("img/*.jsonl")):
        if (broken := WITNESSED.get(file.stem)) is None:
            raise UsageError(f"{file}: say under WITNESSED in {__file__} what it breaks")
        [trace] = Trace.load(file)
        made[file.with_suffix(".svg")] = witness(file.stem, trace, broken)
    return made


def stale(docs: Path = DOCS) -> dict[Path, str | None]:
    """The files that are not as they should be, with what they should be: None for a picture
    whose story is gone."""
    made = outputs(docs)
    wrong: dict[Path, str | None] = {
        file: text for file, text in made.items() if not file.is_file() or file.read_text() != text
    }
    return wrong | {file: None for file in docs.rglob("img/*.svg") if file not in made}


def write(files: dict[Path, str | None]) -> None:
    for file, text in files.items():
        if text is None:
            file.unlink()
        else:
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
