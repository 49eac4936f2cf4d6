"""A table's values as text: the same text for the same value, whatever it is written in."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

__all__ = ["as_text", "not_a_value"]

NO_VALUES = {bool: "true or false", list: "a list", tuple: "a list", dict: "an object"}
DIGITS_MAX = 40
"""A number that is longer is left as it is written."""


def not_a_value(value: Any) -> str | None:
    """What it is, if it is neither text nor a number nor anything else that has one text."""
    return next((word for kind, word in NO_VALUES.items() if isinstance(value, kind)), None)


def as_text(value: Any) -> str:
    """Empty if there is none. 1 and 1.0 are the same number, and so the same text."""
    if isinstance(value, str):  # by far the most
        return value
    if value is None or value != value:  # a number that is none: how pandas writes a gap
        return ""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.hex()
    if isinstance(value, float):
        return _digits(Decimal(repr(value)))
    return _digits(value) if isinstance(value, Decimal) else str(value)


def _digits(value: Decimal) -> str:
    if not value:
        return "0"
    if not value.is_finite() or abs(value.adjusted()) > DIGITS_MAX:
        return str(value)
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
