"""Every mutant is killed, by whom the table in the documentation says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ordercast.protocols import catalog

from .killers import killed_by
from .mutants import MUTANTS, Mutant

TABLE = Path(__file__).parent.parent.parent / "docs" / "algorithms" / "mutants.md"
INTRODUCTION = """\
# Mutants, and what killed them

Each algorithm with one guard removed or weakened, as a change to its text
(`tests/conformance/mutants.py`). The *model checker* tries every interleaving of a world of three
processes, with and without a crash; *random schedules* are simulated runs with loss, duplication,
partitions and crashes; a *scenario* is one of the stories in `tests/scenarios`. The first of them
that notices is named, with what it noticed: a broken promise, or an error that stopped the mutant.
`pytest tests/conformance/test_mutants.py` kills them all again; with `--rewrite` it writes this
page.

| algorithm | mutant | killed by |
|---|---|---|
"""


@pytest.fixture(scope="module")
def deaths(request: pytest.FixtureRequest) -> Iterator[dict[str, str | None]]:
    """Who died of what; becomes the page, if asked to."""
    found: dict[str, str | None] = {}
    yield found
    if request.config.getoption("--rewrite") and len(found) == len(MUTANTS):
        rows = [f"| {m.algorithm} | {m.what} | {found[m.name]} |" for m in MUTANTS]
        TABLE.write_text(INTRODUCTION + "\n".join(rows) + "\n")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mutant_is_killed_as_the_table_says(
    mutant: Mutant, deaths: dict[str, str | None], request: pytest.FixtureRequest
) -> None:
    killer = deaths[mutant.name] = killed_by(mutant)
    assert killer is not None, f"{mutant.name} survives"
    if not request.config.getoption("--rewrite"):
        row = f"| {mutant.algorithm} | {mutant.what} | {killer} |"
        assert row in TABLE.read_text(), "to accept: pytest --rewrite, and review the diff"


def test_every_algorithm_has_mutants() -> None:
    mutated = {mutant.algorithm for mutant in MUTANTS}
    assert mutated == {*catalog.ORDERINGS, *catalog.DISSEMINATIONS}
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert TABLE.read_text().count("\n| ") == len(MUTANTS) + 1


@pytest.mark.parametrize("algorithm", [*catalog.ORDERINGS, *catalog.DISSEMINATIONS])
def test_the_machinery_itself_kills_nobody(algorithm: str) -> None:
    """An algorithm whose text is loaded anew and not changed must survive all killers. How far
    they look is no matter here: `test_explore` and `test_conformance` have seen the algorithms."""
    assert killed_by(Mutant(algorithm, "unchanged", ()), states=1_000, seeds=2) is None
