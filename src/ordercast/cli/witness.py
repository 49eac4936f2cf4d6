"""The part of a run that proves a verdict: the messages of the witness, and how they are linked."""

from __future__ import annotations

import argparse
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec

from ordercast.cli.verify import judge
from ordercast.errors import TraceError, UsageError
from ordercast.oracle import judge as judge_small
from ordercast.trace import Trace
from ordercast.trace.exporters import causality_of
from ordercast.trace.jsonl import UNREADABLE
from ordercast.trace.runs import Id, OneRun, parse_id
from ordercast.trace.verdicts import Verdict, Witness

__all__ = ["witness_cut"]

SMALL = 500
"""So many events are judged by the definitions themselves, sooner than Spark could start."""


class Proof(NamedTuple):
    messages: frozenset[Id]
    processes: frozenset[int]
    doubt: str | None
    """What to tell whoever takes it for one, if it is none."""


def witness_cut(options: argparse.Namespace, run: OneRun) -> Proof:
    """The messages that matter, and the processes."""
    causality = causality_of(run)
    verdict, witness = _witness(options, run)
    messages = [parse_id(word) for word in witness.messages]
    chains = [
        step
        for one, two in pairwise(messages)
        for step in causality.chain(one, two) or causality.chain(two, one)
    ]
    linked = {parse_id(step.message) for step in chains}
    processes = {witness.process, *(origin for origin, _ in messages)}
    doubt = None
    if verdict.verdict != "violated":
        doubt = f"{verdict.property} is {verdict.verdict}, not violated; shown is what may break it"
    return Proof(
        messages=frozenset(messages) | linked,
        processes=frozenset(processes | {step.process for step in chains}),
        doubt=f"{doubt}: {witness.sentence}" if doubt else None,
    )


def _witness(options: argparse.Namespace, run: OneRun) -> tuple[Verdict, Witness]:
    verdicts = _stored(options.verdicts) if options.verdicts else _judged(options, run)
    for verdict in verdicts:
        if (verdict.property, verdict.run) == (options.witness, run.name) and verdict.witness:
            return verdict, verdict.witness
    raise UsageError(
        f"no witness says that {options.witness} is violated in run {run.name!r}: there is nothing "
        "to export"
    )


def _judged(options: argparse.Namespace, run: OneRun) -> list[Verdict]:
    events = list(islice(run.events(), SMALL + 1))
    if len(events) > SMALL:
        return list(judge(options, run.trace, quiesced=options.quiesced).verdicts)
    if run.manifest is not None:
        return judge_small(Trace.of(run.manifest, events), [options.witness])
    trace = Trace.bare(run.name or "", events, quiesced=options.quiesced)
    return judge_small(trace, [options.witness])


class _Stored(msgspec.Struct):
    verdicts: list[Verdict]


def _stored(path: Path) -> list[Verdict]:
    if not path.is_file():
        raise TraceError(f"{path}: there is no such file: write it with 'ordercast verify --json'")
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Stored).verdicts
    except UNREADABLE as error:
        raise TraceError(f"{path}: not the output of 'ordercast verify --json': {error}") from None
