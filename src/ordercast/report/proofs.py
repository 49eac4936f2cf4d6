"""What proves the verdicts on a run: each witness in words, drawn, and in the log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ordercast.report.diagram import draw_scene
from ordercast.report.excerpt import Excerpt, excerpts
from ordercast.report.facts import replay_of
from ordercast.report.layout import build_layout
from ordercast.report.limits import Limits, narrowed
from ordercast.report.parts import Focus, slice_for
from ordercast.report.sample import Judged, Sample
from ordercast.report.scene import build_scene
from ordercast.report.words import capital, listing, property_words, rank
from ordercast.trace.event import MESSAGE_KINDS
from ordercast.trace.own_ids import shown
from ordercast.trace.verdicts import Outcome, Verdict

__all__ = ["Proof", "proof_of", "witnessed"]

WIDTH = 770.0


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
    excerpts: tuple[Excerpt, ...]
    replay: str
    notes: tuple[str, ...]
    own_ids: tuple[tuple[str, str], ...]
    """Its messages, and what an imported log calls them."""


def witnessed(judged: Judged) -> list[list[Verdict]]:
    """The verdicts that have a witness and do not hold, grouped by it: broken promises first,
    then what could not be settled, then what was never promised."""
    promises = judged.promises
    found = [
        verdict for verdict in judged.verdicts if verdict.verdict != "holds" and verdict.witness
    ]
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


def proof_of(
    sample: Sample, group: Sequence[Verdict], *, name: str, log: str, limits: Limits
) -> Proof:
    """`log` is the id of what the page's script knows about the run."""
    first = group[0]
    assert first.witness is not None
    trace = sample.trace
    words = listing([property_words(verdict.property) for verdict in group])
    heading = f"{capital(words)}: {first.verdict}"
    part = slice_for(trace, first.witness)
    notes: tuple[str, ...] = ()
    if len(part.events) > limits.window_events or len(part.processes) > limits.processes:
        part, notes = narrowed(part, limits.window_events, limits, of=len(part.events))
    scene = build_scene(trace, part)
    figure = None
    if any(event.kind in MESSAGE_KINDS for event in part.events):
        layout = build_layout(scene, width=WIDTH)
        title = f"Witness. {heading}"
        figure = draw_scene(scene, layout, name=name, title=title, data_log=log)
    sentences = dict.fromkeys(v.witness.sentence for v in group if v.witness is not None)
    return Proof(
        heading=heading,
        outcome=first.verdict,
        promised=first.property in sample.judged.promises,
        sentences=tuple(sentences),
        figure=figure,
        focus=part.focus,
        excerpts=excerpts(sample, part, first.witness, zero_us=scene.zero_us),
        replay=replay_of(trace),
        notes=notes,
        own_ids=tuple(
            (message, shown(sample.own_ids[message]))
            for message in first.witness.messages
            if message in sample.own_ids
        ),
    )
