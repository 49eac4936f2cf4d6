"""Why things came in the order they did: two messages, or one message at one process."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ordercast.errors import TraceError, UsageError
from ordercast.trace.causality import Causality, Step
from ordercast.trace.event import MESSAGE_KINDS, Event, Kind
from ordercast.trace.runs import Id, OneRun, parse_id, text
from ordercast.trace.waits import read_waits

__all__ = ["Moment", "Predecessor", "Relation", "Wait", "relate", "why_then"]

NEVER = 2**63 - 1


class Relation(Struct, frozen=True):
    """How two messages stand to each other."""

    run: str
    first: str
    second: str
    relation: Literal["before", "after", "concurrent", "circular"]
    """What the first is to the second; circular if the log says that each came before the other."""
    chain: tuple[Step, ...]
    """The shortest one, from the earlier send to the later."""
    crossings: tuple[Step, ...]
    """Of two concurrent messages: where each sender delivered the other's, if it did."""
    complete: bool
    """Has the log no holes, as far as the manifest knows?"""


class Moment(Struct, frozen=True):
    position: int
    kind: Kind
    message: str
    time_us: int | None


class Predecessor(Struct, frozen=True):
    """A message that happened before the one in question, for the same process."""

    message: str
    arrived: Moment | None
    delivered: Moment | None


class Wait(Struct, frozen=True):
    """What became of one message at one process."""

    run: str
    message: str
    process: int
    addressed: bool
    arrived: Moment | None
    """Its receive, or for the sender itself the send; None if the log has neither."""
    delivered: Moment | None
    waited_us: int | None
    pending: tuple[Predecessor, ...]
    """What it had to come after and was not delivered yet when it arrived, in the order in which
    those were delivered; without an arrival, when it was delivered. Nothing, if it is not
    addressed to the process: then no order was promised."""
    missing: tuple[str, ...]
    """Those of them that were not delivered first: causal order forbids that."""
    chain: tuple[Step, ...]
    """How the first of the missing came before it."""
    right_before: Moment | None
    crashed: bool
    """Was the process down when its log ended?"""
    reason: str | None
    """What the process itself said that it waited for."""


def relate(run: OneRun, first: Id, second: Id) -> Relation:
    if first == second:
        raise UsageError(
            f"{run.called(text(first))} is one message: name two, or a process with --at"
        )
    causality, found = Causality(), []
    for event in run.events():
        causality.add(event)
        if event.kind == "deliver" and event.message in (first, second):
            found.append(event)
    causality.settle()
    for message in (first, second):
        _check_sent(run, causality, message, found)
    chain, back = causality.chain(first, second), causality.chain(second, first)
    crossings = [
        Step(met.process, met.position, "deliver", text(message))
        for message, other in ((first, second), (second, first))
        if (met := _first([e for e in found if e.message == message], "deliver", other[0]))
    ]
    return Relation(
        run=run.name or "",
        first=text(first),
        second=text(second),
        relation=_relation(before=bool(chain), after=bool(back)),
        chain=tuple(chain or back),
        crossings=() if chain or back else tuple(crossings),
        complete=run.manifest is None or run.manifest.complete,
    )


def why_then(run: OneRun, message: Id, process: int) -> Wait:
    """Reads the trace twice: who knew what, and then what this process did about it."""
    causality, found = Causality(here=process), []
    there, last_crash, last_recovery = False, -1, -1
    for event in run.events():
        causality.add(event)
        if event.kind in MESSAGE_KINDS and event.message == message:
            found.append(event)
        if event.process == process:
            there = True
            if event.kind == "crash":
                last_crash = max(last_crash, event.position)
            elif event.kind == "recover":
                last_recovery = max(last_recovery, event.position)
    if run.manifest is None and not there:
        raise UsageError(f"{run.trace}: there is no process {process} in it")
    causality.settle()
    _check_sent(run, causality, message, found)
    delivery = _first(found, "deliver", process)
    arrival = _first(found, "receive", process) or _first(found, "send", process)
    if arrival and delivery and delivery.position < arrival.position:
        arrival = None
    reference = arrival or delivery
    send = next(event for event in found if event.kind == "send")
    addressed = send.destinations is None or process in send.destinations
    limit = reference.position if reference else NEVER
    unmet = causality.unmet(message, limit) if addressed else []
    pending, before = _look(run, process, unmet, delivery)
    missing = _missing(pending, delivery)
    return Wait(
        run=run.name or "",
        message=text(message),
        process=process,
        addressed=addressed,
        arrived=_moment(arrival),
        delivered=_moment(delivery),
        waited_us=_between(arrival, delivery),
        pending=pending,
        missing=missing,
        chain=tuple(causality.chain(parse_id(missing[0]), message)) if missing else (),
        right_before=before,
        crashed=last_crash > last_recovery,
        reason=_reason(run, message, process),
    )


def _relation(*, before: bool, after: bool) -> Literal["before", "after", "concurrent", "circular"]:
    if before and after:
        return "circular"
    return "before" if before else "after" if after else "concurrent"


def _check_sent(run: OneRun, causality: Causality, message: Id, found: list[Event]) -> None:
    if causality.sent(message) is None:
        name = run.called(text(message))
        if any(event.message == message for event in found):
            raise TraceError(
                f"{run.trace}: {name} came to someone, but its send is not in the log, so "
                "what happened before it is unknown"
            )
        raise UsageError(f"{run.trace}: there is no message {name} in it")


def _look(
    run: OneRun, process: int, unmet: list[Id], delivery: Event | None
) -> tuple[tuple[Predecessor, ...], Moment | None]:
    """When those came, and what the process did with another message right before."""
    wanted = set(unmet)
    seen: dict[tuple[Id, Kind], Event] = {}
    before: Event | None = None
    for event in run.events():
        if event.process != process or event.kind not in MESSAGE_KINDS:
            continue
        key = event.message, event.kind
        if event.message in wanted and (key not in seen or event.position < seen[key].position):
            seen[key] = event
        if delivery is None or event.message == delivery.message:
            continue
        if (before.position if before else -1) < event.position < delivery.position:
            before = event
    came = [
        Predecessor(
            text(message),
            _moment(seen.get((message, "receive"))),
            _moment(seen.get((message, "deliver"))),
        )
        for message in unmet
    ]
    came.sort(key=lambda one: one.delivered.position if one.delivered else NEVER)
    return tuple(came), _moment(before)


def _missing(pending: tuple[Predecessor, ...], delivery: Event | None) -> tuple[str, ...]:
    limit = delivery.position if delivery else NEVER
    return tuple(
        one.message for one in pending if one.delivered is None or one.delivered.position > limit
    )


def _reason(run: OneRun, message: Id, process: int) -> str | None:
    if run.manifest is None:
        return None
    waits = read_waits(run.manifest, "held") + read_waits(run.manifest, "waiting")
    return next(
        (
            replace(wait, waits_for=tuple(map(run.called, wait.waits_for))).reason(
                run.manifest.processes
            )
            for wait in waits
            if (wait.process, wait.message) == (process, text(message))
        ),
        None,
    )


def _first(events: list[Event], kind: Kind, process: int) -> Event | None:
    chosen = [event for event in events if (event.kind, event.process) == (kind, process)]
    return min(chosen, key=lambda event: event.position, default=None)


def _moment(event: Event | None) -> Moment | None:
    if event is None:
        return None
    return Moment(event.position, event.kind, text(event.message), event.time_us)


def _between(earlier: Event | None, later: Event | None) -> int | None:
    if earlier is None or later is None or earlier.time_us is None or later.time_us is None:
        return None
    return max(later.time_us - earlier.time_us, 0)
