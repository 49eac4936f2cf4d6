"""Fault plans as people write them:

crash:1@20ms, crash:0#3, partition:0|1,2@5ms+50ms, delay:1ms..20ms, loss:5%, duplicate:2%, fifo

What real runs call `kill:1@20ms` and `delay:20ms±10ms` is understood here too.
"""

from __future__ import annotations

import re
from dataclasses import replace
from math import isinf

from ordercast.errors import UsageError
from ordercast.simulator.plan import Crash, Network, Partition

__all__ = ["GRAMMAR", "parse_faults"]

GRAMMAR = {
    "crash:P@TIME": "process P stops at TIME; also kill:P@TIME",
    "crash:P#K": "process P stops right after its K-th copy has left",
    "partition:0|1,2@TIME+LENGTH": "nothing passes between the sides for LENGTH from TIME on",
    "delay:LOW..HIGH": "each packet takes its own time between the two; also 20ms±10ms",
    "loss:5%": "that share of packets is lost (and sent again later)",
    "duplicate:2%": "that share of packets arrives twice",
    "fifo": "links keep their order",
}

_TIME = r"\d+(?:\.\d+)?(?:us|ms|s)"
_UNIT_US = {"us": 1, "ms": 1_000, "s": 1_000_000}
_SIDES = r"\d+(?:,\d+)*(?:\|\d+(?:,\d+)*)+"
_FAULTS = [
    re.compile(rf"(?P<kind>crash|kill):(?P<process>\d+)@(?P<at>{_TIME})"),
    re.compile(r"(?P<kind>crash):(?P<process>\d+)#(?P<copies>\d+)"),
    re.compile(rf"(?P<kind>partition):(?P<sides>{_SIDES})@(?P<at>{_TIME})\+(?P<length>{_TIME})"),
    re.compile(rf"(?P<kind>delay):(?P<low>{_TIME})\.\.(?P<high>{_TIME})"),
    re.compile(rf"(?P<kind>delay):(?P<mean>{_TIME})(?:(?:±|\+-)(?P<jitter>{_TIME}))?"),
    re.compile(r"(?P<kind>loss|duplicate):(?P<share>\d+(?:\.\d+)?)%"),
    re.compile(r"(?P<kind>fifo)"),
]
_OF_REAL_RUNS = [
    (rf"(?:kill|crash):(\d+)@({_TIME})\+{_TIME}", r"crash:\1@\2", "nobody comes back"),
    (rf"(?:pause|slow):(\d+)(@{_TIME}\+{_TIME})", r"partition:\1|…\2", "nobody stands still"),
    (
        r"(delay|loss):(?:\d+>\d+=)?([\d.]+[^@>]*)(?:@.+)?",
        r"\1:\2",
        "links are alike, at all times",
    ),
]
"""What cannot be simulated, what comes nearest to it, and why."""


def parse_faults(text: str, network: Network) -> tuple[Network, tuple[Crash, ...]]:
    """The network with the plan's habits, and its crashes. A comma ends a fault unless digits
    follow, since a partition lists processes with commas too."""
    crashes: list[Crash] = []
    for part in filter(None, re.split(r"\s*,\s*(?=[a-z])", text.strip())):
        fault = next((found for form in _FAULTS if (found := form.fullmatch(part))), None)
        if fault is None:
            raise _mistake(part)
        if fault["kind"] in ("crash", "kill"):
            crashes.append(_crash(fault))
        else:
            network = _change(network, fault)
    return network, tuple(crashes)


def _mistake(part: str) -> UsageError:
    for form, instead, why in _OF_REAL_RUNS:
        if (found := re.fullmatch(form, part)) and (nearest := found.expand(instead)) != part:
            return UsageError(
                f"the fault {part!r} is for real processes (ordercast run): in a simulation {why}; "
                f"write {nearest!r}"
            )
    return UsageError(f"the fault {part!r} has none of the forms {', '.join(GRAMMAR)}")


def _crash(fault: re.Match[str]) -> Crash:
    process, what = int(fault["process"]), fault.groupdict()
    if "copies" in what:
        if int(what["copies"]) == 0:
            raise UsageError(
                f"the fault {fault[0]!r} would never happen: copies are counted from 1; whoever is "
                f"to send nothing crashes at the start: write 'crash:{process}@0ms'"
            )
        return Crash(process, after_copies=int(what["copies"]))
    return Crash(process, at_us=_us(what["at"]))


def _change(network: Network, fault: re.Match[str]) -> Network:
    match fault["kind"]:
        case "partition":
            sides = tuple(tuple(map(int, side.split(","))) for side in fault["sides"].split("|"))
            cut = Partition(_us(fault["at"]), _us(fault["length"]), sides)
            return replace(network, partitions=(*network.partitions, cut))
        case "delay":
            return replace(network, delay_us=_delay_us(fault.groupdict()))
        case "loss":
            return replace(network, loss=float(fault["share"]) / 100)
        case "duplicate":
            return replace(network, duplication=float(fault["share"]) / 100)
        case _:
            return replace(network, fifo=True)


def _delay_us(words: dict[str, str]) -> tuple[int, int]:
    """The shortest and the longest, from either form."""
    if "mean" not in words:
        return _us(words["low"]), _us(words["high"])
    mean_us, jitter_us = _us(words["mean"]), _us(words["jitter"] or "0us")
    return mean_us - jitter_us, mean_us + jitter_us


def _us(text: str) -> int:
    unit = text.lstrip("0123456789.")
    time_us = float(text.removesuffix(unit)) * _UNIT_US[unit]
    if isinf(time_us):
        raise UsageError(f"{text[:20]}… is longer than any run")
    return round(time_us)
