"""What the figures say: whether the goals are met. Those without figures are left out.

The names of our own subjects are those that `ours.py` gives them. Peers are handed bursts of 64,
which their clients may send in one go; ours takes them in a loop of `await send`, or in batches.
Which of the two is the fair one depends on the application, so a goal next to a peer is held
against both. Next to raw frames, which are packed already when they are handed over, ours is handed
bursts in one call too (`send_many`); what becomes of a loop of `await send` is shown beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benchmarks.runtime.conduct import Case, Figures, Phase
from benchmarks.runtime.subject import BURSTS, FRAMES, ONE, Form
from benchmarks.show import Row

__all__ = ["RATIOS", "Goal", "goals"]

UNIFORM = "ordercast uniform/journal"
"""Uniform causal order with the journal on (`write`); messages are sent and taken one at a time."""
UNIFORM_SYNCED = "ordercast uniform/journal/synced"
"""The same with the journal synced to the disk."""
TOTAL = "ordercast coordinator"
CONSENSUS = "ordercast consensus"
"""The total order that goes on when any one crashes, as PySyncObj's does."""
MANY = "/many"
"""Ends the name of a subject that sends with `send_many` and receives message by message."""
BATCHES = "/batches"
"""Ends the name of a subject that sends with `send_many` and receives with `batches`."""
WITHOUT_TRACE, WITH_TRACE = "ordercast uniform", "ordercast uniform/trace"

Measure = Callable[[Figures], float | None]


@dataclass(frozen=True)
class Goal:
    what: str
    ours: str
    """How messages are handed to ours and taken from it."""
    figure: str
    measured_on: str
    met: bool | None
    """None where a figure is shown beside a goal, and not held against it."""

    def row(self) -> Row:
        return {
            "goal": self.what,
            "ours": self.ours,
            "figure": self.figure,
            "measured on": self.measured_on,
            "met": {True: "✔", False: "✘", None: ""}[self.met],
        }


@dataclass(frozen=True)
class _Ratio:
    """Ours over theirs, the worst of all cases where both were measured."""

    what: str
    ours: str
    our_form: Form
    theirs: tuple[str, ...]
    """If several, the one with the greatest figure."""
    their_form: Form
    their_tls: bool
    bound: float | None
    """None: only to be shown."""
    measure: Measure
    sizes: tuple[int, ...] = ()
    """Numbers of processes it is for; all, if none is named."""
    at_most: bool = False


def _rate(figures: Figures) -> float | None:
    return None if figures.full is None else figures.full.deliveries_per_s


def _low(share: float) -> Measure:
    def measure(figures: Figures) -> float | None:
        return None if figures.low is None else figures.low.latencies.quantile_us(share)

    return measure


def _speed(
    what: str,
    theirs: tuple[str, ...],
    bound: float | None,
    *,
    ours: str = UNIFORM,
    form: Form = BURSTS,
    their_form: Form = BURSTS,
    their_tls: bool = False,
    sizes: tuple[int, ...] = (3,),
) -> _Ratio:
    return _Ratio(what, ours, form, theirs, their_form, their_tls, bound, _rate, sizes)


def _latency(what: str, share: float, bound: float) -> _Ratio:
    measure = _low(share)
    return _Ratio(
        what, UNIFORM, BURSTS, ("raw",), FRAMES, True, bound, measure, sizes=(3, 5), at_most=True
    )


def _next_to(
    what: str, theirs: tuple[str, ...], bound: float, *, ours: str = UNIFORM
) -> tuple[_Ratio, ...]:
    """A goal next to a peer, for both forms of ours."""
    return tuple(_speed(what, theirs, bound, ours=name) for name in (ours, ours + BATCHES))


_RAW = ("raw",)
_LIMIT = "of raw TLS frames, uniform causal with a journal"
RATIOS = (
    _speed(f"≥ 45 % {_LIMIT}", _RAW, 0.45, ours=UNIFORM + MANY, their_form=FRAMES,
           their_tls=True, sizes=(3, 5)),
    _speed(f"beside it: {_LIMIT}", _RAW, None, their_form=FRAMES, their_tls=True, sizes=(3, 5)),
    _speed(f"≥ 60 % {_LIMIT}", _RAW, 0.6, ours=UNIFORM + BATCHES, their_form=FRAMES,
           their_tls=True, sizes=(3, 5)),
    _speed("a loop of await send: ≥ 10× one frame a message", _RAW, 10, their_form=ONE,
           their_tls=True, sizes=(3, 5)),
    _speed("the same, and a turn of the event loop after each", _RAW, 10, form=ONE, their_form=ONE,
           their_tls=True, sizes=(3, 5)),
    *_next_to("≥ 4× JGroups 2.12 over TCP", ("jgroups",), 4),
    *_next_to("≥ 2× NATS and Redis with the best client", ("nats, bare", "redis, bare"), 2),
    *_next_to("≥ 10× nats-py and redis-py", ("nats", "redis"), 10),
    *_next_to("total order: ≥ 5× Corosync CPG", ("corosync",), 5, ours=TOTAL),
    *_next_to("total order: ≥ 10× JGroups SEQUENCER", ("jgroups, sequencer",), 10, ours=TOTAL),
    *_next_to("total order: ≥ 40× PySyncObj", ("pysyncobj",), 40, ours=TOTAL),
    *_next_to("total order by consensus: ≥ 40× PySyncObj", ("pysyncobj",), 40, ours=CONSENSUS),
    *_next_to("synced: ≥ 20× JetStream with 3 replicas", ("jetstream",), 20, ours=UNIFORM_SYNCED),
    _speed("the recorder costs at most 15 %", (WITHOUT_TRACE,), 0.85, ours=WITH_TRACE,
           their_tls=True, sizes=(3, 5)),
    _latency("p50 at 2,000 msg/s: ≤ 1.5× raw TLS frames", 0.5, 1.5),
    _latency("p99 at 2,000 msg/s: ≤ 2× raw TLS frames", 0.99, 2),
)  # fmt: skip


def goals(measured: Sequence[Figures]) -> list[Goal]:
    found = [_judge(ratio, measured) for ratio in RATIOS]
    found.append(_nothing_lost(measured))
    return [goal for goal in found if goal is not None]


def _judge(ratio: _Ratio, measured: Sequence[Figures]) -> Goal | None:
    ratios: list[tuple[float, Case, str]] = []
    for one in measured:
        case, value = one.case, ratio.measure(one)
        if (case.subject, case.form, case.tls) != (ratio.ours, ratio.our_form, True):
            continue
        if ratio.sizes and case.n not in ratio.sizes:
            continue
        theirs = list(_same(case, ratio, measured))
        if value is not None and theirs:
            most, name = max(theirs)
            ratios.append((value / most, case, name))
    if not ratios:
        return None
    pick = max if ratio.at_most else min
    worst, case, name = pick(ratios, key=lambda one: one[0])
    met = None
    if ratio.bound is not None:
        met = worst <= ratio.bound if ratio.at_most else worst >= ratio.bound
    on = f"n = {case.n}, {case.payload_bytes} B, next to {name}"
    return Goal(ratio.what, _handed(ratio.ours), f"{worst:.2f}×", on, met)


def _handed(subject: str) -> str:
    if subject.endswith(BATCHES):
        return "in batches: send_many, batches"
    return "sent in bursts: send_many" if subject.endswith(MANY) else "one by one: await send"


def _same(case: Case, ratio: _Ratio, measured: Iterable[Figures]) -> Iterable[tuple[float, str]]:
    """Figures of the others for the same number of processes and bytes."""
    for one in measured:
        other = one.case
        if (
            other.subject in ratio.theirs
            and (other.form, other.tls) == (ratio.their_form, ratio.their_tls)
            and (other.n, other.payload_bytes) == (case.n, case.payload_bytes)
            and (value := ratio.measure(one))
        ):
            yield value, other.subject


def _nothing_lost(measured: Sequence[Figures]) -> Goal | None:
    phases: list[tuple[Phase, Figures]] = [
        (phase, one) for one in measured for phase in (one.full, one.low, one.half) if phase
    ]
    if not phases:
        return None
    bad = [(phase, one) for phase, one in phases if phase.lost or phase.disorder]
    figure = ", ".join(sorted({one.case.subject for _, one in bad})) or "nothing"
    return Goal("every message once and in order", "all", f"wrong: {figure}", "all cases", not bad)
