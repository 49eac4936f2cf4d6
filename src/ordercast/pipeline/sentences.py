"""Witnesses in words: what a person reads first. No Spark here.

Of a hundred thousand runs, several hundred thousand properties may be violated, promised or not.
So the words of one property are put together for all runs at once, as columns.
"""

from __future__ import annotations

from functools import cached_property
from string import Formatter
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.pipeline.kernels import findings as f
from ordercast.pipeline.kernels.kernel import Bools, Ints

__all__ = ["WITNESS", "Names", "Seen", "Steps", "cycles", "witnesses"]

WITNESS = pa.struct(
    {"process": pa.int32(), "messages": pa.list_(pa.string()), "sentence": pa.string()}
)

_OBLIGED = "{by} delivered {m}, but {who}, to which it is addressed, never did{excuse}"
_ORDER = "{before}, but {who} delivered {how}{excuse}"
_SENTENCES = {
    "no_duplication": "{who} delivered {m} twice (positions {earlier} and {position})",
    "no_creation": "{who} delivered {m}, {unsent}",
    "validity": "{sender} sent {m} {undone}{excuse}",
    "agreement": _OBLIGED,
    "uniform_agreement": _OBLIGED,
    "fifo": _ORDER,
    "causal": _ORDER,
    "total_pairwise": (
        "{by} delivered {one} before {other}, but {who} delivered {other} before {one}{more}"
    ),
    "total_gap_free": "{by} delivered {m} before {n}, but {who} delivered {how}{excuse}",
}
"""By property. The words in braces are those of `_Words`."""
_UNSENT = (
    "which is not addressed to it",
    "which {sender} never sent",
    "whose send is not in the log of {sender}",
)
_UNDONE = ("and never delivered it itself", "to {who}, which never delivered it")
_BEFORE = (
    "{after} sent {m} and then {n}",
    "{after} delivered {m} and then sent {n}",
    "{m} happened before {n}",
)
_HOW = ("{n} before {m}", "{n} and never {m}")
_EXCUSES = ("", ", and the run has not come to rest", ", and the log has holes")
"""Why what is not in the log may have been done all the same, or be done yet."""
_MORE = (" (there are more such pairs than were counted)", "")


class Names:
    """What the processes of each run are called."""

    def __init__(self, lists: pa.ChunkedArray) -> None:
        """in: a list of names for each run; it may be null, or too short"""
        self._length = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
        self._start = np.cumsum(self._length) - self._length
        self._flat = pc.list_flatten(lists)

    def of(self, run: Ints, process: Ints) -> pa.Array:
        """in: places of runs, and processes; out: their names"""
        place = pa.array(self._start[run] + process, mask=process >= self._length[run])
        unnamed = pc.binary_join_element_wise("p", _text(process), "")
        return _array(pc.coalesce(self._flat.take(place), unnamed))


class Seen(NamedTuple):
    """Witnesses of one property, and what of their runs the sentences must mention; see
    `kernels.findings`. A field that the property has no use for may be None."""

    run: Ints
    """Its place among the `Names`."""
    process: Ints
    origin: Ints
    """origin and number: the message; of an order, the one that should have come first."""
    number: Ints
    after: Ints | None = None
    """after and later: of an order, the origin and number of the second message."""
    later: Ints | None = None
    by: Ints | None = None
    """Who had done, or had so, what the process did not."""
    link: Ints | None = None
    missing: Bools | None = None
    earlier: Ints | None = None
    position: Ints | None = None
    unknown: Bools | None = None
    """It is a doubt, not a violation."""
    complete: Bools | None = None
    exact: Bools | None = None


class Steps(NamedTuple):
    """Cycles of messages, each from the first to the last."""

    start: Ints
    """Where each cycle begins."""
    run: Ints
    """Of each step, as is all that follows."""
    origin: Ints
    number: Ints
    member: Ints
    """Who has the message before the next one."""
    sent_too: Bools
    """What counts are sends and deliveries, not deliveries only."""


def witnesses(name: str, seen: Seen, names: Names) -> pa.Array:
    """`WITNESS`: those of the property of that name."""
    words = _Words(name, seen, names)
    messages = [words.m] if seen.later is None else [words.m, words.n]
    count, each = len(seen.process), len(messages)
    # One after the other, message by message.
    order = np.arange(count * each).reshape(each, count).T.ravel()
    listed = pa.ListArray.from_arrays(
        np.arange(0, count * each + 1, each, dtype=np.int32),
        pa.concat_arrays(messages).take(pa.array(order)),
    )
    return _witnesses(seen.process, listed, words.sentence)


def cycles(steps: Steps, names: Names) -> pa.Array:
    """`WITNESS`: one for each cycle."""
    size = len(steps.run)
    following = np.arange(1, size + 1)
    following[np.append(steps.start[1:], size) - 1] = steps.start
    m = _message(steps.origin, steps.number)
    who = names.of(steps.run, steps.member)
    did = _chosen(("delivered", "had"), steps.sent_too)
    parts = pc.binary_join_element_wise(who, did, m, "before", m.take(pa.array(following)), " ")
    ends = pa.array(np.append(steps.start, size).astype(np.int32))
    told = pc.if_else(
        pa.array(_by_one(steps)),
        _both_ways(who, m, steps.start),
        pc.binary_join(pa.ListArray.from_arrays(ends, parts), ", "),
    )
    return _witnesses(
        steps.member[steps.start],
        pa.ListArray.from_arrays(ends, m),
        pc.binary_join_element_wise("no one order fits: ", told, ""),
    )


def _by_one(steps: Steps) -> Bools:
    """Of each cycle: are there two steps, and one process has both? Then it had a message of its
    own twice, when it was sent and when it was delivered."""
    length = np.diff(np.append(steps.start, len(steps.run)))
    last = steps.start + length - 1
    return np.asarray((length == 2) & (steps.member[steps.start] == steps.member[last]))


def _both_ways(who: pa.Array, m: pa.Array, start: Ints) -> pa.Array:
    """True whichever of the two it had twice, and whatever came first: numbers need not tell."""
    first, last = pa.array(start), pa.array(np.minimum(start + 1, len(m) - 1))
    words = "both before and after"
    return pc.binary_join_element_wise(
        who.take(first), "had", m.take(first), words, m.take(last), " "
    )


def _witnesses(process: Ints, messages: pa.Array, sentence: pa.Array) -> pa.Array:
    columns = [pa.array(process, pa.int32()), messages, sentence]
    return pa.StructArray.from_arrays(columns, fields=list(WITNESS))


class _Words:
    """The words that a sentence may have, each for all witnesses, and only if it is asked for."""

    def __init__(self, name: str, seen: Seen, names: Names) -> None:
        self._property = name
        self._seen = seen
        self._names = names

    @property
    def sentence(self) -> pa.Array:
        return self._filled(_SENTENCES[self._property])

    @property
    def who(self) -> pa.Array:
        return self._name(self._seen.process)

    @property
    def sender(self) -> pa.Array:
        return self._name(self._seen.origin)

    @property
    def after(self) -> pa.Array:
        return self._name(_given(self._seen.after))

    @property
    def by(self) -> pa.Array:
        return self._name(_given(self._seen.by))

    @cached_property
    def m(self) -> pa.Array:
        return _message(self._seen.origin, self._seen.number)

    @cached_property
    def n(self) -> pa.Array:
        return _message(_given(self._seen.after), _given(self._seen.later))

    @property
    def one(self) -> pa.Array:
        return pc.choose(self._swapped, self.m, self.n)

    @property
    def other(self) -> pa.Array:
        return pc.choose(self._swapped, self.n, self.m)

    @property
    def _swapped(self) -> pa.Array:
        return pa.array(_given(self._seen.link) == f.SECOND).cast(pa.int8())

    @property
    def unsent(self) -> pa.Array:
        missing, unknown = _given(self._seen.missing), _given(self._seen.unknown)
        return self._told(_UNSENT, np.where(missing, 1 + unknown, 0))

    @property
    def undone(self) -> pa.Array:
        return self._told(_UNDONE, self._seen.process != self._seen.origin)

    @property
    def before(self) -> pa.Array:
        return self._told(_BEFORE, _given(self._seen.link) - f.SENT)

    @property
    def how(self) -> pa.Array:
        return self._told(_HOW, _given(self._seen.missing))

    @property
    def earlier(self) -> pa.Array:
        return _text(_given(self._seen.earlier))

    @property
    def position(self) -> pa.Array:
        return _text(_given(self._seen.position))

    @property
    def excuse(self) -> pa.Array:
        unknown, complete = _given(self._seen.unknown), _given(self._seen.complete)
        return _chosen(_EXCUSES, np.where(unknown, np.where(complete, 1, 2), 0))

    @property
    def more(self) -> pa.Array:
        return _chosen(_MORE, _given(self._seen.exact))

    def _name(self, process: Ints) -> pa.Array:
        return self._names.of(self._seen.run, process)

    def _told(self, templates: tuple[str, ...], which: Ints) -> pa.Array:
        """For each witness the template that it takes, filled in."""
        return pc.choose(pa.array(which).cast(pa.int64()), *map(self._filled, templates))

    def _filled(self, template: str) -> pa.Array:
        parts = []
        for literal, word, _, _ in Formatter().parse(template):
            parts += [literal] if word is None else [literal, getattr(self, word)]
        return pc.binary_join_element_wise(*parts, "")


def _given(column: Ints | None) -> Ints:
    assert column is not None
    return column


def _chosen(words: tuple[str, ...], which: Ints) -> pa.Array:
    return pa.array(words).take(pa.array(which, pa.int64()))


def _message(origin: Ints, number: Ints) -> pa.Array:
    return pc.binary_join_element_wise(_text(origin), _text(number), ":")


def _text(numbers: Ints) -> pa.Array:
    return pa.array(numbers).cast(pa.string())


def _array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
