"""One run on the page: its facts, what proves its verdicts, and its diagram."""

from __future__ import annotations

from dataclasses import dataclass, replace

from markupsafe import Markup

from ordercast.report.costs import costs_of, depths_of
from ordercast.report.costview import plots_of
from ordercast.report.diagram import draw_scene
from ordercast.report.facts import Fact, facts_of_run, happenings_of, replay_of
from ordercast.report.history import History, name_of
from ordercast.report.layout import build_layout
from ordercast.report.limits import Limits, narrowed
from ordercast.report.log import log_of
from ordercast.report.parts import Part, whole
from ordercast.report.plots import Plot
from ordercast.report.proofs import Proof, proof_of, witnessed
from ordercast.report.sample import Sample
from ordercast.report.scene import Scene, build_scene
from ordercast.report.words import count
from ordercast.trace import Trace
from ordercast.trace.verdicts import Outcome
from ordercast.trace.waits import read_waits

__all__ = ["RunView", "view_of_run"]

PAGE_WIDTH = 1130.0


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
    happened: tuple[str, ...]
    """What was done to the run, and what its members made of it."""
    proofs: list[Proof]
    figure: Markup | None
    log: Markup
    """For the page's script, under the id `name`-log."""
    notes: tuple[str, ...]
    """What the drawing leaves out or does not show as it was."""
    plots: list[Plot]
    """What the run cost."""


def view_of_run(sample: Sample, *, name: str, limits: Limits, pair: str | None = None) -> RunView:
    """In diagrams of the same `pair`, what is lit in one is lit in all."""
    trace = sample.trace
    groups = witnessed(sample.judged)
    proofs = [
        proof_of(sample, group, name=f"{name}-witness-{number}", log=f"{name}-log", limits=limits)
        for number, group in enumerate(groups[: limits.witnesses], start=1)
    ]
    part, notes = _drawn(sample, limits)
    if part is not None and proofs and proofs[0].promised:
        part = replace(part, focus=proofs[0].focus)
    if len(groups) > limits.witnesses:
        more = len(groups) - limits.witnesses
        left = count(more, "further witness is", "further witnesses are")
        notes = (*notes, f"{left} not drawn; each has its sentence in the table.")
    history = History(trace)
    figure = None
    if part is not None:
        scene = build_scene(trace, part)
        layout = build_layout(scene, width=PAGE_WIDTH)
        title = f"Space-time diagram of run {trace.manifest.run}"
        figure = draw_scene(
            scene, layout, name=name, title=title, data_log=f"{name}-log", data_pair=pair
        )
        notes = (*notes, *_clock_notes(scene, len(layout.axis.cuts)))
    return RunView(
        run=trace.manifest.run,
        name=name,
        outcome=sample.outcome,
        facts=facts_of_run(history, sample.events),
        replay=replay_of(trace),
        waiting=_waiting(trace, limits),
        happened=_happened(trace, limits),
        proofs=proofs,
        figure=figure,
        log=log_of(history),
        notes=notes,
        plots=_plots(sample, history),
    )


def _plots(sample: Sample, history: History) -> list[Plot]:
    if sample.partial:
        return plots_of(sample.costs or (), {})
    return plots_of(costs_of(history), depths_of(history))


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


def _happened(trace: Trace, limits: Limits) -> tuple[str, ...]:
    lines = happenings_of(trace)
    if len(lines) > limits.happenings:
        more = f"and {len(lines) - limits.happenings:,} more: all of them are in the manifest"
        lines = [*lines[: limits.happenings], more]
    undelivered = trace.manifest.extra.get("undelivered")
    return (*lines, undelivered) if isinstance(undelivered, str) else tuple(lines)


def _drawn(sample: Sample, limits: Limits) -> tuple[Part | None, tuple[str, ...]]:
    """All of the run or its beginning, and the sentence that says what is missing."""
    if not sample.trace.events:
        return None, ("This run has no events, so there is nothing to draw.",)
    part = whole(sample.trace)
    if sample.partial or sample.events > limits.events:
        return narrowed(part, limits.window_events, limits, of=sample.events)
    if len(part.processes) > limits.processes:
        return narrowed(part, limits.events, limits, of=sample.events)
    return part, ()


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
