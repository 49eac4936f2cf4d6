"""Pictures of a few events: a Graphviz graph, and a Mermaid sequence diagram."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ordercast.trace.event import Event
from ordercast.trace.exporters.base import DRAWN_MAX, Exporter, Job, words
from ordercast.trace.exporters.cut import few
from ordercast.trace.exporters.sequence import by_process, sequence
from ordercast.trace.runs import text

__all__ = ["DOT", "MERMAID"]


def write_dot(job: Job, path: Path) -> int:
    events = few(job.events, DRAWN_MAX, "dot")
    path.write_text("".join(f"{line}\n" for line in _dot(job, events)), encoding="utf-8")
    return len(events)


def _dot(job: Job, events: list[Event]) -> Iterator[str]:
    yield "digraph ordercast {"
    yield "  rankdir=LR; node [shape=box, style=rounded];"
    sends = {event.message: event for event in events if event.kind == "send"}
    for process, log in by_process(events).items():
        yield f"  subgraph cluster_{process} {{"
        yield f"    label={_quoted(job.who(process))};"
        for event in log:
            label = _quoted(f"{words(event)} @{event.position}")
            yield f"    {_node(event)} [label={label}];"
        line = " -> ".join(map(_node, log))
        yield f"    {line} [arrowhead=none];" if len(log) > 1 else f"    {line};"
        yield "  }"
    for event in sequence(events):
        if event.kind == "deliver" and (send := sends.get(event.message)):
            label = _quoted(text(event.message))
            yield f"  {_node(send)} -> {_node(event)} [label={label}, color=blue];"
    yield "}"


def _node(event: Event) -> str:
    return f"e{event.process}_{event.position}"


def _quoted(words: str) -> str:
    escaped = words.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'


def write_mermaid(job: Job, path: Path) -> int:
    events = few(job.events, DRAWN_MAX, "mermaid")
    path.write_text("".join(f"{line}\n" for line in _mermaid(job, events)), encoding="utf-8")
    return len(events)


def _mermaid(job: Job, events: list[Event]) -> Iterator[str]:
    """An arrow of such a diagram is level, so it stands where the message is delivered, and a note
    stands where it was sent."""
    sends = {event.message for event in events if event.kind == "send"}
    shown = {event.process for event in events}
    yield "sequenceDiagram"
    for process in sorted(shown):
        # Mermaid ends a statement at `;` and a comment begins at `#`.
        name = re.sub(r"[;#\n]", " ", job.who(process))
        yield f"  participant p{process} as {name}"
    for event in sequence(events):
        here = f"p{event.process}"
        if event.kind == "deliver" and event.message in sends and event.origin != event.process:
            yield f"  p{event.origin}-){here}: {text(event.message)}"
        else:
            yield f"  Note over {here}: {words(event)}"


DOT = Exporter("dot", "a Graphviz graph of a few events", write_dot)
MERMAID = Exporter("mermaid", "a Mermaid sequence diagram of a few events", write_mermaid)
