"""Times as tables write them: whole microseconds, as traces have them, and what is below."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal, InvalidOperation
from typing import Any, NamedTuple

__all__ = ["Instant", "instant"]

FINEST = 12
"""How many digits below the microsecond tell which of two came first: down to 10**-18 seconds."""
EXPONENT_MAX = 30
"""A number with more digits is no time, and would take long to write out."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PLACES = {"s": 6, "ms": 3, "us": 0, "ns": -3}
"""By how many digits a unit is above the microsecond."""
_EXACT = Context(prec=80, traps=[])


class Instant(NamedTuple):
    us: int
    finer: int = 0
    """Below the microsecond, in units of 10**-18 seconds: only for telling what came first."""


def instant(value: Any, unit: str) -> Instant:
    """A date, or a number in this unit, also as text; a `ValueError` if it is neither."""
    if isinstance(value, str):
        return _read(value, unit)
    if isinstance(value, datetime):
        # What pandas makes of a Parquet column has nanoseconds as well.
        return _date(value, _fraction(f"{getattr(value, 'nanosecond', 0):03}"))
    if isinstance(value, int) and not isinstance(value, bool):
        return _whole(value, unit)
    if isinstance(value, float | Decimal):
        return _number(Decimal(repr(value)) if isinstance(value, float) else value, unit)
    raise ValueError


def _read(text: str, unit: str) -> Instant:
    try:
        return _whole(int(text), unit)
    except ValueError:
        pass
    try:
        return _number(Decimal(text), unit)
    except InvalidOperation:
        pass
    # Python reads six digits of a second, and passes over the rest.
    beyond = re.search(r"[.,]\d{6}(\d+)", text, re.ASCII)
    return _date(datetime.fromisoformat(text), _fraction(beyond[1]) if beyond else 0)


def _whole(value: int, unit: str) -> Instant:
    if unit != "ns":
        return Instant(value * 10 ** _PLACES[unit])
    us, nanos = divmod(value, 1000)
    return Instant(us, nanos * 10 ** (FINEST - 3))


def _number(value: Decimal, unit: str) -> Instant:
    if not value.is_finite() or value.adjusted() > EXPONENT_MAX:
        raise ValueError
    units = int(_EXACT.scaleb(value, FINEST + _PLACES[unit]))
    return Instant(*divmod(units, 10**FINEST))


def _date(value: datetime, finer: int) -> Instant:
    value = value if value.tzinfo else value.replace(tzinfo=UTC)
    return Instant((value - EPOCH) // timedelta(microseconds=1), finer)


def _fraction(digits: str) -> int:
    """What stands behind the sixth digit of a second."""
    return int(digits[:FINEST].ljust(FINEST, "0"))
