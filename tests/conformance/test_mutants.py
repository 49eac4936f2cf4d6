"""Every mutant is killed; and the two that matter most, by the verdict of the pipeline as well."""

from __future__ import annotations

import pytest

from ordercast.protocols import catalog

from .killers import killed_by
from .mutants import MUTANTS, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mutant_is_killed(mutant: Mutant) -> None:
    assert killed_by(mutant) is not None, f"{mutant.name} survives"


def test_every_algorithm_has_mutants() -> None:
    mutated = {mutant.algorithm for mutant in MUTANTS}
    assert mutated == {*catalog.ORDERINGS, *catalog.DISSEMINATIONS}
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("algorithm", [*catalog.ORDERINGS, *catalog.DISSEMINATIONS])
def test_the_machinery_itself_kills_nobody(algorithm: str) -> None:
    """An algorithm whose text is loaded anew and not changed must survive all killers."""
    assert killed_by(Mutant(algorithm, "unchanged", ())) is None
