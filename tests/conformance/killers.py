"""What can kill a mutant: the model checker, random schedules with faults, scenarios."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ordercast.oracle import judge
from ordercast.protocols import catalog
from ordercast.protocols.stack import Stack
from ordercast.simulator.explore import Destinations, Exploration, explore
from ordercast.simulator.scenario import Scenario, parse
from ordercast.trace.directory import Trace

from .mutants import Mutant
from .subjects import TROUBLE, run_once, traffic_kinds

Builder = Callable[[int, int], Stack]
Program = list[list[Destinations]]
SCENARIOS = Path(__file__).parent.parent / "scenarios"

BROADCASTS: list[Program] = [[[None], [None], []], [[None, None], [None], []]]
SUBSETS: list[Program] = [
    [[(2,), (1,)], [(2,)], []],
    [[(1,), (2,)], [(2,)], [(0,)]],
    [[(0, 1), None], [None], []],
    [[(1, 2)], [(1, 2)], []],
    [[(0, 1)], [(1, 2)], [(0, 2)]],
]
UNICASTS: list[Program] = [
    [[(2,), (1,)], [(2,)], []],
    [[(1,), (2,)], [(2,)], [(0,)]],
    [[(1,)], [(0,)], [(0,), (1,)]],
    [[(1,), (1,)], [(0,)], []],
]


def programs(ordering: str, dissemination: str) -> list[Program]:
    kinds = traffic_kinds(ordering, dissemination)
    if kinds == ["one"]:
        return UNICASTS
    return BROADCASTS if kinds == ["everyone"] else BROADCASTS + SUBSETS


def failures(trace: Trace, promises: tuple[str, ...]) -> list[str]:
    return [
        f"{verdict.property} {verdict.verdict}"
        for verdict in judge(trace, promises)
        if verdict.verdict != "holds"
    ]


def model_check(
    build: Builder, program: Program, promises: tuple[str, ...], *, crashes: int, states_max: int
) -> Exploration:
    return explore(
        build,
        program,
        judge=lambda trace: failures(trace, promises),
        crashes=crashes,
        states_max=states_max,
    )


def killed_by(mutant: Mutant, *, states: int = 8_000, seeds: int = 40) -> str | None:
    """Who kills it and how, or None if it survives everyone."""
    return (
        _by_model_checker(mutant, states) or _by_schedules(mutant, seeds) or _by_scenarios(mutant)
    )


def _by_model_checker(mutant: Mutant, states: int) -> str | None:
    ordering, dissemination = mutant.combination()
    build = mutant.builder()
    for crashes in (0, 1):
        promises = catalog.promises(ordering, dissemination, crashes=crashes > 0)
        for program in programs(ordering, dissemination):
            try:
                found = model_check(build, program, promises, crashes=crashes, states_max=states)
            except Exception as error:
                return f"model checker: {type(error).__name__}"
            if found.failure is not None:
                return f"model checker: {found.failure[-1]}"
    return None


def _by_schedules(mutant: Mutant, seeds: int) -> str | None:
    ordering, dissemination = mutant.combination()
    build = mutant.builder()
    for seed in range(seeds):
        for trouble, faults in TROUBLE.items():
            promises = catalog.promises(ordering, dissemination, crashes="crash" in faults)
            for to in traffic_kinds(ordering, dissemination):
                try:
                    trace = run_once(build, seed=seed, faults=faults, destinations=to, size=5)
                except Exception as error:
                    return f"random schedules: {type(error).__name__}"
                broken = failures(trace, promises)
                if broken:
                    return f"random schedules: {broken[0]} ({trouble}, seed {seed})"
    return None


def _by_scenarios(mutant: Mutant) -> str | None:
    """The story of a file, told by the mutant, comes out differently."""
    for file in sorted(SCENARIOS.glob("*.txt")):
        blocks = parse(file.read_text())
        opening = next(block.command for block in blocks if block.command).split()
        ordering = opening[2]
        dissemination = opening[4] if "over" in opening else catalog.choose(ordering)[1]
        if mutant.algorithm not in (ordering, dissemination) or "threshold" in opening:
            continue
        scenario = Scenario(build=mutant.builder((ordering, dissemination)))
        blocks = [block for block in blocks if block.command != "verdicts"]
        if scenario.play(blocks) != blocks:
            return f"scenario {file.stem}"
    return None
