"""What the figures say: ratios, growth, and whether the goals are met."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from benchmarks.pipeline.measure import Compared, Measured, Times
from benchmarks.pipeline.traces import short
from benchmarks.show import Row

__all__ = ["FULL_SIZE", "Goal", "goals", "growth", "ratio_to_peer", "times_floor"]

SLACK = 1.1
"""What noise may add to a figure that should not grow."""
_FLAT = 1.25
"""The same for memory."""
_GIB = 1024
FULL_SIZE = "100 M rows of n = 10, or 100,000 runs of 100 rows"
_FULL_ROWS, _FULL_ROWS_OF_RUNS = 100_000_000, 10_000_000


@dataclass(frozen=True)
class Goal:
    what: str
    figure: str
    measured_on: str
    met: bool
    full_size: bool = True
    """Was it measured on as much as the goal is for?"""

    def row(self) -> Row:
        mark = "✔" if self.met else "✘"
        return {
            "goal": self.what,
            "figure": self.figure,
            "measured on": self.measured_on,
            "met": mark if self.full_size else f"({mark})",
        }


def times_floor(measured: Measured, times: Times) -> float | None:
    return None if times.seconds is None else times.seconds / measured.floor_s


def ratio_to_peer(measured: Measured, compared: Compared) -> float | None:
    """How many times as fast as the peer ordercast is, per event of the safety set."""
    theirs, ours = compared.seconds_per_event, measured.safety.seconds
    return None if theirs is None or ours is None else theirs * measured.case.events / ours


def goals(measured: Sequence[Measured], compared: Sequence[Compared], n: int) -> list[Goal]:
    plain = [one for one in measured if one.case.plain and one.case.processes == n]
    found: list[Goal | None] = []
    if plain:
        largest = max(plain, key=lambda one: one.case.rows)
        found += [
            _floor("safety set, own layout: at most 1× the floor", [largest], [_safety], 1),
            _floor("all eleven, own layout: at most 3× the floor", [largest], [_all], 3),
            _faster("plain Python", 100, largest, compared),
            _faster("DuckDB", 20, largest, compared),
            _faster("Polars", 8, largest, compared),
        ]
    mixed = [one for one in measured if one.case.shuffled]
    many = [one for one in measured if one.case.many and not one.case.shuffled]
    found.append(_floor("any other layout: at most 10× the floor", mixed, [_safety, _all], 10))
    found.append(_floor("many small runs: at most 5× the floor", many, [_safety, _all], 5))
    rates = growth(measured, n)
    found.append(_growth("time at most linear in rows", rates, "rows"))
    found.append(_growth("time at most linear in n", rates, "n"))
    found += _memory(measured, plain)
    return [goal for goal in found if goal is not None]


def _safety(measured: Measured) -> Times:
    return measured.safety


def _all(measured: Measured) -> Times:
    return measured.all


def _floor(
    what: str,
    measured: Iterable[Measured],
    kinds: Collection[Callable[[Measured], Times]],
    most: float,
) -> Goal | None:
    """By the worst of those measured, of these kinds of judgement."""
    ratios = [(times_floor(one, kind(one)), one, kind) for one in measured for kind in kinds]
    if not ratios:
        return None
    ratio, worst, kind = max(ratios, key=lambda one: float("inf") if one[0] is None else one[0])
    if ratio is None:
        return Goal(what, kind(worst).words, worst.case.title, False)
    which = f" ({'all' if kind is _all else 'safety'})" if len(kinds) > 1 else ""
    figure = f"{ratio:.2f}×{which}"
    return Goal(what, figure, worst.case.title, ratio <= most, _full_size(worst))


def _faster(
    peer: str, least: float, measured: Measured, compared: Sequence[Compared]
) -> Goal | None:
    """Against the peer's fastest form, on the largest trace it was measured on."""
    mine = [one for one in compared if one.peer.name.startswith(peer)]
    known = [
        (ratio, one)
        for one in mine
        if one.case.rows <= measured.case.rows
        and (ratio := ratio_to_peer(measured, one)) is not None
    ]
    what = f"safety set: at least {least}× {peer}"
    if not known:
        return Goal(what, mine[0].times.words, measured.case.title, False) if mine else None
    size = max(one.case.rows for _, one in known)
    forms = [(ratio, one) for ratio, one in known if one.case.rows == size]
    ratio, one = min(forms, key=lambda pair: pair[0])
    scaled = "" if one.case == measured.case else f", {peer} on {short(one.case.rows)} and scaled"
    form = one.peer.name.partition(", ")[2]
    figure = f"{'≥ ' if one.at_least else ''}{ratio:.1f}×{f' ({form})' if form else ''}"
    on = measured.case.title + scaled
    return Goal(what, figure, on, ratio >= least, _full_size(measured))


def _full_size(measured: Measured) -> bool:
    case = measured.case
    if case.many:
        return case.rows >= _FULL_ROWS_OF_RUNS
    return case.shuffled or (case.rows >= _FULL_ROWS and case.processes == 10)


def growth(measured: Sequence[Measured], n: int) -> list[Row]:
    """Time per event next to that of the trace before, and that per process where n grows."""
    plain = [one for one in measured if one.case.plain]
    rows: list[Row] = []
    by_rows = sorted((o for o in plain if o.case.processes == n), key=lambda o: o.case.rows)
    for less, more in pairwise(by_rows):
        step = f"{short(less.case.rows)} → {short(more.case.rows)}"
        rows.append(_grown("rows", f"n = {n}", step, less, more, 1))
    for size in sorted({one.case.rows for one in plain}):
        by_n = sorted((o for o in plain if o.case.rows == size), key=lambda o: o.case.processes)
        for less, more in pairwise(by_n):
            small, large = less.case.processes, more.case.processes
            step = f"{small} → {large}"
            rows.append(_grown("n", f"{short(size)} rows", step, less, more, large / small))
    return rows


def _grown(of: str, at: str, step: str, less: Measured, more: Measured, factor: float) -> Row:
    def ratio(times: Callable[[Measured], Times]) -> float | None:
        a, b = times(less).seconds, times(more).seconds
        if a is None or b is None:
            return None
        return b / more.case.events / (a / less.case.events)

    safety, everything = ratio(_safety), ratio(_all)
    return {
        "growth of": of,
        "at": at,
        "step": step,
        "safety per event": safety,
        "all per event": everything,
        "safety, linear = 1": None if safety is None else safety / factor,
        "all, linear = 1": None if everything is None else everything / factor,
    }


def _growth(what: str, rates: Iterable[Row], of: str) -> Goal | None:
    """By the worst step of the greatest traces: on small ones most of the time is Spark's start."""
    columns = ("safety, linear = 1", "all, linear = 1")
    steps = [row for row in rates if row["growth of"] == of]
    if not steps:
        return None
    last = [row for row in steps if of == "rows" or row["at"] == steps[-1]["at"]]
    if any(row[column] is None for row in last for column in columns):
        return Goal(what, "not all came to an end", last[-1]["at"], False)
    worst, where = max((row[column], row["step"]) for row in last for column in columns)
    return Goal(what, f"{worst:.2f} (linear = 1)", f"{last[-1]['at']}, {where}", worst <= SLACK)


def _memory(measured: Sequence[Measured], plain: Sequence[Measured]) -> list[Goal]:
    if not measured:
        return []
    worst = max(measured, key=lambda one: one.peak_mib)
    peak = worst.peak_mib
    found = [
        Goal("a worker's memory under 1 GB", f"{peak:,.0f} MiB", worst.case.title, peak < _GIB)
    ]
    by_rows = sorted(plain, key=lambda one: one.case.rows)
    if len(by_rows) > 1:
        less, more = by_rows[-2:]
        grown = more.peak_mib / max(less.peak_mib, 1)
        step = f"n = {more.case.processes}, {short(less.case.rows)} → {short(more.case.rows)} rows"
        found.append(Goal("a worker's memory flat in rows", f"{grown:.2f}×", step, grown <= _FLAT))
    return found
