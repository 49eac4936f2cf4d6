"""Fault plans as people write them:

crash:1@20ms, crash:0#3, partition:0|1,2@5ms+50ms, delay:1ms..20ms, loss:5%, duplicate:2%, fifo
"""

from __future__ import annotations

import re
from dataclasses import replace

from ordercast.errors import UsageError
from ordercast.simulator.plan import Crash, Network, Partition

__all__ = ["GRAMMAR", "parse_faults"]

GRAMMAR = {
    "crash:P@TIME": "process P stops at TIME",
    "crash:P#K": "process P stops right after its K-th copy has left",
    "partition:0|1,2@TIME+LENGTH": "nothing passes between the sides for LENGTH from TIME on",
    "delay:LOW..HIGH": "each packet takes its own time between the two",
    "loss:5%": "that share of packets is lost (and sent again later)",
    "duplicate:2%": "that share of packets arrives twice",
    "fifo": "links keep their order",
}

_TIME = r"\d+(?:\.\d+)?(?:us|ms|s)"
_UNIT_US = {"us": 1, "ms": 1_000, "s": 1_000_000}
_SIDES = r"\d+(?:,\d+)*(?:\|\d+(?:,\d+)*)+"
_FAULTS = [
    re.compile(rf"(?P<kind>crash):(?P<process>\d+)(?:@(?P<at>{_TIME})|#(?P<copies>\d+))"),
    re.compile(rf"(?P<kind>partition):(?P<sides>{_SIDES})@(?P<at>{_TIME})\+(?P<length>{_TIME})"),
    re.compile(rf"(?P<kind>delay):(?P<low>{_TIME})\.\.(?P<high>{_TIME})"),
    re.compile(r"(?P<kind>loss|duplicate):(?P<share>\d+(?:\.\d+)?)%"),
    re.compile(r"(?P<kind>fifo)"),
]


def parse_faults(text: str, network: Network) -> tuple[Network, tuple[Crash, ...]]:
    """The network with the plan's habits, and its crashes. A comma ends a fault unless digits
    follow, since a partition lists processes with commas too."""
    crashes: list[Crash] = []
    for part in filter(None, re.split(r"\s*,\s*(?=[a-z])", text.strip())):
        fault = next((found for form in _FAULTS if (found := form.fullmatch(part))), None)
        if fault is None:
            forms = ", ".join(GRAMMAR)
            raise UsageError(f"the fault {part!r} has none of the forms {forms}")
        if fault["kind"] == "crash":
            crashes.append(_crash(fault))
        else:
            network = _change(network, fault)
    return network, tuple(crashes)


def _crash(fault: re.Match[str]) -> Crash:
    if fault["copies"] is not None:
        return Crash(int(fault["process"]), after_copies=int(fault["copies"]))
    return Crash(int(fault["process"]), at_us=_us(fault["at"]))


def _change(network: Network, fault: re.Match[str]) -> Network:
    match fault["kind"]:
        case "partition":
            sides = tuple(tuple(map(int, side.split(","))) for side in fault["sides"].split("|"))
            cut = Partition(_us(fault["at"]), _us(fault["length"]), sides)
            return replace(network, partitions=(*network.partitions, cut))
        case "delay":
            return replace(network, delay_us=(_us(fault["low"]), _us(fault["high"])))
        case "loss":
            return replace(network, loss=float(fault["share"]) / 100)
        case "duplicate":
            return replace(network, duplication=float(fault["share"]) / 100)
        case _:
            return replace(network, fifo=True)


def _us(text: str) -> int:
    unit = text.lstrip("0123456789.")
    return round(float(text.removesuffix(unit)) * _UNIT_US[unit])
