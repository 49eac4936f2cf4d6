"""Say which of two messages came first, or why a process delivered one when it did.

With two messages: whether one happened before the other or they are concurrent, and the shortest
chain of events from the one to the other. With one and --at: what it had to wait for there.

example:
  ordercast explain out 0:3 1:7
  ordercast explain out 1:7 --at 2
  ordercast explain imported order-17 order-18
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ordercast.cli.in_the_log import in_the_log
from ordercast.cli.logs import gather_logs
from ordercast.cli.say import say
from ordercast.cli.steps import steps
from ordercast.cli.words import counted, duration
from ordercast.errors import UsageError
from ordercast.trace.causality import Step
from ordercast.trace.explanation import Moment, Predecessor, Relation, Wait, relate, why_then
from ordercast.trace.own_ids import message_called
from ordercast.trace.runs import Id, OneRun

__all__ = ["act", "add_arguments"]

SHOWN_MAX = 20
_VERBS = {"send": "sent", "receive": "received", "deliver": "delivered"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "trace", type=Path, metavar="TRACE", help="a trace directory, or an events file"
    )
    parser.add_argument(
        "messages",
        nargs="+",
        metavar="MESSAGE",
        help="origin and number, such as 0:3, p0:3 or, by the name of a process, a:3; or what an "
        "imported log calls it",
    )
    parser.add_argument(
        "--at", metavar="PROCESS",
        help="the process that delivered it, or did not: 2, p2 or its name",
    )  # fmt: skip
    parser.add_argument("--run", help="which run, if the trace has several")
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")


def act(options: argparse.Namespace) -> int:
    if len(options.messages) != (2 if options.at is None else 1):
        raise UsageError("name two messages, or one message and a process with --at")
    run = OneRun(gather_logs(options.trace), options.run)
    messages = [_message(run, word) for word in options.messages]
    answer: Relation | Wait
    with steps() as progress:
        progress.begin(f"reading {options.trace}")
        if options.at is None:
            answer = relate(run, *messages)
        else:
            answer = why_then(run, messages[0], run.process(options.at))
    if options.json:
        print(json.dumps(msgspec.to_builtins(answer)))
    else:
        lines = _relation(run, answer) if isinstance(answer, Relation) else _wait(run, answer)
        ids = in_the_log(run.trace, run.manifest, _named(answer), run.called)
        for line in (*lines, *ids):
            say(line)
    return 0


def _message(run: OneRun, word: str) -> Id:
    """By our name for it, or else by the log's own."""
    try:
        return run.message(word)
    except UsageError:
        manifest = run.manifest
        if manifest is None or "imported" not in manifest.extra:
            raise
        found = message_called(run.trace, manifest, word)
        if found is None:
            raise UsageError(
                f"no message is called {word!r} in the log: give its id there, or its origin and "
                "number, such as 0:3"
            ) from None
        return found


def _named(answer: Relation | Wait) -> list[str]:
    """The messages that the answer speaks of."""
    if isinstance(answer, Relation):
        return [answer.first, answer.second, *(step.message for step in answer.chain)]
    pending = [one.message for one in answer.pending[:SHOWN_MAX]]
    before = [answer.right_before.message] if answer.right_before else []
    return [answer.message, *pending, *(step.message for step in answer.chain), *before]


def _relation(run: OneRun, answer: Relation) -> Iterator[str]:
    first, second = run.called(answer.first), run.called(answer.second)
    if answer.relation == "concurrent":
        known = "" if answer.complete else ", as far as a log with holes can tell"
        yield f"{first} and {second} are concurrent{known}: neither was sent knowing of the other."
        for step in answer.crossings:
            own = second if step.message == answer.first else first
            yield f"{_told(run, step)}, after it had sent {own}"
        return
    if answer.relation == "circular":
        yield f"{first} and {second} each happened before the other: the log contradicts itself."
    else:
        before = (first, second) if answer.relation == "before" else (second, first)
        yield f"{before[0]} happened before {before[1]}:"
    yield from _chain(run, answer.chain)


def _chain(run: OneRun, chain: tuple[Step, ...]) -> Iterator[str]:
    yield from (_told(run, step) for step in chain)


def _told(run: OneRun, step: Step) -> str:
    who = run.who(step.process)
    return f"  {who} {_VERBS[step.kind]} {run.called(step.message)} at position {step.position}"


def _wait(run: OneRun, answer: Wait) -> Iterator[str]:
    who = run.who(answer.process)
    yield _headline(run, answer)
    if answer.crashed and answer.delivered is None:
        yield f"{who} had crashed when its log ended."
    if not answer.addressed:
        yield f"It is not addressed to {who}."
    elif answer.arrived is not None or answer.delivered is not None or answer.pending:
        yield from _pending(run, answer)
    if answer.missing:
        yield from _missing(run, answer)
    if answer.reason is not None:
        yield f"What {who} itself said: {answer.reason}."
    if answer.right_before is not None:
        yield f"Right before it, {who} {_when(run, answer.right_before)}."


def _headline(run: OneRun, answer: Wait) -> str:
    who, message = run.who(answer.process), run.called(answer.message)
    arrived, delivered = answer.arrived, answer.delivered
    if arrived is None:
        how = ", and its log has no arrival of it"
    else:
        verb = "sent it" if arrived.kind == "send" else "received it"
        how = f"; it had {verb} at position {arrived.position}"
        if answer.waited_us:
            how += f", {duration(answer.waited_us)} before"
    if delivered is None:
        return f"{who} never delivered {message}{how}."
    return f"{who} delivered {message} at position {delivered.position}{how}."


def _pending(run: OneRun, answer: Wait) -> Iterator[str]:
    who = run.who(answer.process)
    if answer.arrived is not None:
        when = "when it arrived" if answer.arrived.kind == "receive" else "when it was sent"
    else:
        when = "when it was delivered" if answer.delivered else "when the log ended"
    if not answer.pending:
        yield f"All that happened before it and is for {who} had been delivered {when}."
        return
    count = len(answer.pending)
    what = counted(count, "message")
    yield f"Of what happened before it, {who} had still to deliver {what} {when}:"
    yield from (f"  {_fate(run, one)}" for one in answer.pending[:SHOWN_MAX])
    if count > SHOWN_MAX:
        yield f"  … and {count - SHOWN_MAX} more (all of them with --json)"


def _fate(run: OneRun, one: Predecessor) -> str:
    came = f"received at position {one.arrived.position}, " if one.arrived else ""
    if one.delivered is None:
        return f"{run.called(one.message)}: {came}never delivered"
    return f"{run.called(one.message)}: {came}delivered at position {one.delivered.position}"


def _missing(run: OneRun, answer: Wait) -> Iterator[str]:
    first, more = run.called(answer.missing[0]), len(answer.missing) - 1
    others = f" and {more} more" if more else ""
    if answer.delivered is None:
        yield f"It can still be waiting for {first}{others}, which happened before it:"
    else:
        yield f"It was delivered too early: without {first}{others}, which happened before it:"
    yield from _chain(run, answer.chain)


def _when(run: OneRun, moment: Moment) -> str:
    return f"{_VERBS[moment.kind]} {run.called(moment.message)} (position {moment.position})"
