"""One run on the page: its facts, what proves its verdicts, and its diagram."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from ordercast.report.diagram import draw_scene
from ordercast.report.facts import Fact, facts_of_run, replay_of
from ordercast.report.history import name_of
from ordercast.report.layout import build_layout
from ordercast.report.parts import Focus, Part, slice_for, whole, window
from ordercast.report.scene import Scene, build_scene
from ordercast.report.summary import outcome_of
from ordercast.report.words import capital, count, listing, property_words, rank
from ordercast.trace import Trace
from ordercast.trace.event import MESSAGE_KINDS
from ordercast.trace.verdicts import Outcome, Verdict
from ordercast.trace.waits import read_waits

__all__ = ["Limits", "Proof", "RunView", "view_of_run"]

PAGE_WIDTH = 1130.0
SLICE_WIDTH = 770.0


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one page draws. What is left out is said on the page."""

    runs: int = 6
    run_lines: int = 200
    events: int = 400
    """A run of at most this many events is drawn whole; of another its beginning."""
    window_events: int = 300
    processes: int = 64
    witnesses: int = 8
    waiting: int = 20


@dataclass(frozen=True, slots=True)
class Proof:
    """A witness, drawn. Verdicts that rest on the same witness share it."""

    heading: str
    outcome: Outcome
    promised: bool
    sentences: tuple[str, ...]
    figure: Markup | None
    """None if the witness names no message of this run."""
    focus: Focus | None
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunView:
    run: str
    name: str
    """The anchor, and the prefix of every id inside."""
    outcome: Outcome
    facts: list[Fact]
    replay: str
    waiting: tuple[str, ...]
    """What was still held when the run ended, and what for."""
    proofs: list[Proof]
    figure: Markup | None
    notes: tuple[str, ...]
    """What the drawing leaves out or does not show as it was."""


def view_of_run(
    trace: Trace,
    verdicts: Sequence[Verdict],
    promises: Collection[str],
    *,
    name: str,
    limits: Limits,
) -> RunView:
    """`verdicts` are those on this run, and `promises` what it had to keep."""
    run = trace.manifest.run
    groups = _witnessed(verdicts, promises)
    proofs = [
        _proof(trace, group, promises, name=f"{name}-witness-{number}", limits=limits)
        for number, group in enumerate(groups[: limits.witnesses], start=1)
    ]
    part, notes = _drawn(trace, limits)
    if part is not None and proofs and proofs[0].promised:
        part = replace(part, focus=proofs[0].focus)
    if len(groups) > limits.witnesses:
        more = len(groups) - limits.witnesses
        left = count(more, "further witness is", "further witnesses are")
        notes = (*notes, f"{left} not drawn; each has its sentence in the table.")
    figure = None
    if part is not None:
        scene = build_scene(trace, part)
        layout = build_layout(scene, width=PAGE_WIDTH)
        figure = draw_scene(scene, layout, name=name, title=f"Space-time diagram of run {run}")
        notes = (*notes, *_clock_notes(scene, len(layout.axis.cuts)))
    return RunView(
        run=run,
        name=name,
        outcome=outcome_of(v for v in verdicts if v.property in promises),
        facts=facts_of_run(trace),
        replay=replay_of(trace),
        waiting=_waiting(trace, limits),
        proofs=proofs,
        figure=figure,
        notes=notes,
    )


def _waiting(trace: Trace, limits: Limits) -> tuple[str, ...]:
    names = trace.manifest.processes
    waits = read_waits(trace.manifest, "waiting")
    lines = [
        f"{name_of(trace, wait.process)} held {wait.message}, {wait.reason(names)}"
        for wait in waits[: limits.waiting]
    ]
    if len(waits) > limits.waiting:
        lines.append(f"and {count(len(waits) - limits.waiting, 'more message')}")
    return tuple(lines)


def _witnessed(verdicts: Sequence[Verdict], promises: Collection[str]) -> list[list[Verdict]]:
    """The verdicts that have a witness and do not hold, grouped by it: broken promises first,
    then what could not be settled, then what was never promised."""
    found = [verdict for verdict in verdicts if verdict.verdict != "holds" and verdict.witness]
    found.sort(
        key=lambda v: (v.property not in promises, v.verdict != "violated", rank(v.property))
    )
    groups: dict[tuple[object, ...], list[Verdict]] = {}
    for verdict in found:
        assert verdict.witness is not None
        promised = verdict.property in promises
        key = (promised, verdict.verdict, verdict.witness.process, verdict.witness.messages)
        groups.setdefault(key, []).append(verdict)
    return list(groups.values())


def _proof(
    trace: Trace,
    group: Sequence[Verdict],
    promises: Collection[str],
    *,
    name: str,
    limits: Limits,
) -> Proof:
    first = group[0]
    assert first.witness is not None
    words = listing([property_words(verdict.property) for verdict in group])
    heading = f"{capital(words)}: {first.verdict}"
    part = slice_for(trace, first.witness)
    notes: tuple[str, ...] = ()
    if len(part.events) > limits.events or len(part.processes) > limits.processes:
        part, notes = _narrowed(part, limits.window_events, limits)
    figure = None
    if any(event.kind in MESSAGE_KINDS for event in part.events):
        scene = build_scene(trace, part)
        layout = build_layout(scene, width=SLICE_WIDTH)
        figure = draw_scene(scene, layout, name=name, title=f"Witness. {heading}")
    sentences = dict.fromkeys(v.witness.sentence for v in group if v.witness is not None)
    return Proof(
        heading=heading,
        outcome=first.verdict,
        promised=first.property in promises,
        sentences=tuple(sentences),
        figure=figure,
        focus=part.focus,
        notes=notes,
    )


def _drawn(trace: Trace, limits: Limits) -> tuple[Part | None, tuple[str, ...]]:
    """All of the run or its beginning, and the sentence that says what is missing."""
    if not trace.events:
        return None, ("This run has no events, so there is nothing to draw.",)
    part = whole(trace)
    if len(part.events) <= limits.events and len(part.processes) <= limits.processes:
        return part, ()
    most = limits.window_events if len(part.events) > limits.events else limits.events
    return _narrowed(part, most, limits)


def _narrowed(part: Part, events_max: int, limits: Limits) -> tuple[Part, tuple[str, ...]]:
    drawn = window(part, events_max=events_max, processes_max=limits.processes)
    left = len(part.events) - len(drawn.events)
    text = f"Drawn: the first {len(drawn.events):,} of {len(part.events):,} events in time order"
    absent = len(part.processes) - len(drawn.processes)
    if absent:
        text += f", at {len(drawn.processes):,} of {len(part.processes):,} processes"
    others = f" and {count(absent, 'process', 'processes')}" if absent else ""
    return drawn, (f"{text}. Left out: {count(left, 'event')}{others}.",)


def _clock_notes(scene: Scene, cuts: int) -> list[str]:
    """Where the drawing is not to the clock, it says so."""
    if not scene.timed:
        order = "in an order that agrees with every process and every message"
        return [f"The log has no times: events are drawn {order}, and distances mean nothing."]
    notes = []
    untimed = sum(event.time_us is None for event in scene.part.events)
    if untimed:
        are = count(untimed, "event has no time and is", "events have no time and are")
        notes.append(f"{are} drawn as early as the others allow.")
    if scene.moved:
        are = count(scene.moved, "event is", "events are")
        notes.append(
            f"{are} drawn later than the clock of the process says, because the clocks disagree: "
            "nothing stands left of what it follows from."
        )
    if cuts:
        notes.append(f"A zigzag on the time axis marks a pause cut short ({cuts:,} here).")
    return notes
