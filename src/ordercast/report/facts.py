"""What a person wants to know about the runs: who, how much, what was promised, how to replay."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from ordercast.report.digest import Digest
from ordercast.report.history import History, name_of, wait_us
from ordercast.report.words import count, duration, message_text
from ordercast.trace import Trace

__all__ = ["Fact", "facts_of_all", "facts_of_run", "happenings_of", "replay_of"]

VALUE_MAX = 200
FILES_MAX = 3
_TOLD_ELSEWHERE = (
    *("replay", "command", "promises", "held", "waiting"),
    *("partitions", "payloads", "messages", "imported", "undelivered"),
)


_CALLED = {"weather": "network"}
_CALM = "no delays"
"""What a launcher says of its own weather. The fault plan may delay all the same, so beside one it
would read as a contradiction."""


@dataclass(frozen=True, slots=True)
class Fact:
    name: str
    value: str


def facts_of_all(digest: Digest, traces: Sequence[Trace]) -> list[Fact]:
    manifests = [trace.manifest for trace in traces]
    facts = [
        Fact("Runs", f"{digest.runs:,}"),
        Fact("Events", f"{digest.events:,}"),
    ]
    if len(traces) < max(digest.runs, 1):  # Some cannot speak for all.
        return facts
    return [
        *facts,
        Fact("Processes", _range(len(trace.members) for trace in traces)),
        Fact("Ordering", _distinct(manifest.order for manifest in manifests)),
        Fact("Dissemination", _distinct(manifest.dissemination for manifest in manifests)),
        Fact("Came to rest", _share([manifest.quiesced for manifest in manifests])),
        Fact("Log complete", _share([manifest.complete for manifest in manifests])),
    ]


def facts_of_run(history: History, events: int) -> list[Fact]:
    """`events` are all that the run has; what only all of them tell is left out if some are."""
    trace = history.trace
    facts = [Fact("Events", f"{events:,}")]
    if events == len(trace.events):
        facts.append(Fact("Messages", f"{len(history.sends):,}"))
        facts += [*_waits(history), *_metadata(trace)]
    facts.insert(1, Fact("Processes", f"{len(trace.members):,}"))
    facts += _source(trace.manifest.extra.get("imported"))
    facts += [
        Fact(_CALLED.get(key, key.replace("_", " ")), _shortened(value))
        for key, value in trace.manifest.extra.items()
        if key not in _TOLD_ELSEWHERE and value not in (None, "", [], {})
        if not (key == "happened" and happenings_of(trace))
        if not (key == "weather" and value == _CALM and trace.manifest.extra.get("faults"))
    ]
    return facts


def _source(imported: object) -> list[Fact]:
    """The log that the run was imported from, as the importer wrote it down."""
    match imported:
        case {"format": str(name), "files": [*files], **rest}:
            shown = ", ".join(map(str, files[:FILES_MAX]))
            more = f" and {len(files) - FILES_MAX:,} more" if len(files) > FILES_MAX else ""
            facts = [Fact("Imported from", f"{shown}{more} ({name})")]
            notes = rest.get("notes")
            if isinstance(notes, list) and notes:
                facts.append(Fact("Notes", "; ".join(map(str, notes))))
            return facts
    return []


def happenings_of(trace: Trace) -> list[str]:
    """What the run was put through, and what its members made of it, if the manifest knows."""
    happened = trace.manifest.extra.get("happened")
    told = [_happening(item) for item in happened] if isinstance(happened, list) else []
    return [line for line in told if line] if all(told) else []


def replay_of(trace: Trace) -> str:
    """The command that shows the run again, if the manifest knows it."""
    for key in ("replay", "command"):
        value = trace.manifest.extra.get(key)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list) and value:
            return " ".join(map(str, value))
    return ""


def _waits(history: History) -> list[Fact]:
    """How many arrivals had to wait; only a log with receive rows can tell."""
    copies = [
        (message, process, copy)
        for (message, process), copy in history.copies.items()
        if copy.receives and process != message[0]
    ]
    if not copies:
        return []
    held = [(message, process, copy.held) for message, process, copy in copies if copy.held]
    facts = [Fact("Held", f"{len(held):,} of {count(len(copies), 'arrival')}")]
    waits = [
        (wait, message, process)
        for message, process, pair in held
        if pair is not None and (wait := wait_us(*pair)) is not None
    ]
    if waits:
        wait, message, process = max(waits, key=lambda found: (found[0], found[1], -found[2]))
        place = f"{message_text(message)} at {name_of(history.trace, process)}"
        facts.append(Fact("Longest wait", f"{duration(wait)} ({place})"))
    return facts


def _metadata(trace: Trace) -> list[Fact]:
    sizes = [
        event.control_bytes
        for event in trace.events
        if event.kind == "send" and event.control_bytes is not None
    ]
    if not sizes:
        return []
    return [Fact("Ordering metadata", f"{sum(sizes) / len(sizes):.3g} bytes a message")]


def _shortened(value: object) -> str:
    if isinstance(value, list) and (told := [_happening(item) for item in value]) and all(told):
        value = told
    if isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
        value = ", ".join(map(str, value))
    if isinstance(value, dict):
        value = "; ".join(f"{key} {_shortened(item)}" for key, item in value.items() if item)
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= VALUE_MAX else text[: VALUE_MAX - 1] + "…"


def _happening(item: object) -> str | None:
    """Something that a run was put through, as its launcher wrote it down; None if it is not."""
    match item:
        case {"at_us": int(at_us), "what": str(what)}:
            return f"{duration(at_us)} {what}"
    return None


def _range(numbers: Iterable[int]) -> str:
    found = sorted(set(numbers))
    return f"{found[0]:,}" if len(found) == 1 else f"{found[0]:,} to {found[-1]:,}"


def _distinct(values: Iterable[str | None]) -> str:
    found = sorted({value or "not stated" for value in values})
    return ", ".join(found[:4]) + (f" and {len(found) - 4} more" if len(found) > 4 else "")


def _share(answers: Sequence[bool]) -> str:
    if all(answers):
        return "yes"
    return "no" if not any(answers) else f"{sum(answers):,} of {len(answers):,}"
