"""What a sweep varies, and which combinations of it make sense."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from itertools import product
from typing import Literal

import msgspec

from ordercast import __version__
from ordercast.errors import UsageError
from ordercast.protocols import catalog
from ordercast.protocols.stack import Stack
from ordercast.simulator.faults import parse_faults
from ordercast.simulator.plan import Network, Plan, Traffic
from ordercast.simulator.recording import manifest_of
from ordercast.simulator.run import Ending
from ordercast.trace.manifest import Manifest

__all__ = ["Configuration", "LeftOut", "To", "combine"]

To = Literal["everyone", "one", "some"]


@dataclass(frozen=True, slots=True)
class Configuration:
    """Everything about a run but its seed."""

    ordering: str
    dissemination: str
    processes: int
    messages: int
    """Sent by each process."""
    payload: int = 16
    to: To = "everyone"
    faults: str = ""
    threshold: int | None = None

    @property
    def key(self) -> str:
        """The same wherever and whenever it is computed; another for another ordercast, whose
        algorithms may do something else."""
        identity = msgspec.json.encode([__version__, *astuple(self)])
        return hashlib.sha256(identity).hexdigest()[:16]

    @property
    def promises(self) -> tuple[str, ...]:
        """The properties that every run must have."""
        crashes = bool(self.plan(seed=0).crashes)
        return catalog.promises(self.ordering, self.dissemination, crashes=crashes)

    @property
    def work(self) -> int:
        """About how many packets and deliveries a run takes: what its time grows with."""
        packets = catalog.cost(self.ordering, self.dissemination).packets.of(self.processes)
        return 1 + self.processes * self.messages * (packets + self.processes)

    def plan(self, seed: int) -> Plan:
        network, crashes = parse_faults(self.faults, Network())
        traffic = Traffic(self.messages, self.payload, destinations=self.to)
        return Plan(self.processes, seed, network, crashes, traffic)

    def build(self, me: int, seed: int) -> Stack:
        return catalog.build(
            *(self.ordering, self.dissemination, me, self.processes),
            threshold=self.threshold,
            seed=seed,
        )

    def run(self, seed: int) -> str:
        """A run's name: what `simulate` calls it, and the key for what that leaves out."""
        return (
            f"{self.ordering}-{self.dissemination}-n{self.processes}-m{self.messages}-s{seed}"
            f"-{self.key[:8]}"
        )

    def replay(self, seed: int) -> str:
        """The command that shows a run again."""
        words = [
            *("ordercast", "simulate", "--ordering", self.ordering),
            *("--dissemination", self.dissemination, "--processes", str(self.processes)),
            *("--messages", str(self.messages), "--payload", str(self.payload)),
            *("--to", self.to, "--seed", str(seed)),
        ]
        if self.faults:
            words += ["--faults", self.faults]
        if self.threshold is not None:
            words += ["--threshold", str(self.threshold)]
        return shlex.join(words)

    def manifest(self, seed: int, ending: Ending) -> Manifest:
        return manifest_of(
            *(self.plan(seed), ending, self.run(seed), self.ordering, self.dissemination),
            faults=self.faults,
            replay=self.replay(seed),
        )


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Combinations that cannot be, all for the same kind of reason."""

    count: int
    reason: str
    """Of the first of them."""

    def __str__(self) -> str:
        others = f" (and {self.count - 1} more like it)" if self.count > 1 else ""
        return f"left out: {self.reason}{others}"


def combine(
    *,
    orderings: Sequence[str],
    disseminations: Sequence[str] | None,
    processes: Sequence[int],
    messages: int,
    payload: int,
    to: Sequence[To] | None,
    faults: Sequence[str],
    threshold: int | None,
    reliability: str = "best_effort",
) -> tuple[list[Configuration], list[LeftOut]]:
    """Every combination that can be simulated, and why the others cannot.

    Without `disseminations` each ordering takes the one that suits it and is as reliable as asked
    for, and without `to` it sends to everyone if it can.
    """
    for plan in faults:
        parse_faults(plan, Network())
    made: dict[Configuration, None] = {}
    reasons: dict[str, list[str]] = {}
    for ordering, size, plan in product(orderings, processes, faults):
        lower = disseminations or [catalog.choose(ordering, reliability)[1]]
        usual: To = "one" if catalog.ORDERINGS[ordering].destinations == "one" else "everyone"
        for dissemination, whom in product(lower, to or [usual]):
            one = Configuration(
                ordering, dissemination, size, messages, payload, whom, plan, threshold
            )
            if (refused := _refusal(one)) is None:
                made[one] = None
            else:
                reasons.setdefault(refused[0], []).append(refused[1])
    left_out = [LeftOut(len(texts), texts[0]) for texts in reasons.values()]
    if not made:
        why = left_out[0].reason if left_out else "a sweep needs one of each"
        raise UsageError(f"there is nothing to sweep: {why}")
    return list(made), left_out


def _refusal(configuration: Configuration) -> tuple[str, str] | None:
    """The kind of reason and its words; None if there is nothing against it."""
    checks = (("pair", _check_pair), ("destinations", _check_destinations), ("plan", _check_plan))
    for kind, check in checks:
        try:
            check(configuration)
        except UsageError as error:
            return kind, str(error)
    return None


def _check_pair(configuration: Configuration) -> None:
    configuration.build(0, seed=0)


def _check_destinations(configuration: Configuration) -> None:
    layers: Iterable[catalog.OrderingEntry | catalog.DisseminationEntry] = (
        catalog.ORDERINGS[configuration.ordering],
        catalog.DISSEMINATIONS[configuration.dissemination],
    )
    for layer in layers:
        if layer.destinations not in ("any", configuration.to):
            raise UsageError(f"{layer.name} sends to {layer.destinations} only")


def _check_plan(configuration: Configuration) -> None:
    configuration.plan(seed=0)
