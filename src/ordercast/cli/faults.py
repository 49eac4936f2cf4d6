"""Fault plans from the command line, with the mistake that everyone makes once told by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from ordercast.errors import UsageError

__all__ = ["parsed_faults"]

Parsed = TypeVar("Parsed")

_BARE_TIME = re.compile(r"((?:(?<=[@+±])|(?<=delay:)|(?<=\.\.))\d+(?:\.\d+)?)(?!\d|\.\d|[a-z%|,>])")


def parsed_faults(parse: Callable[[str], Parsed], plan: str) -> Parsed:
    """As `parse` has it; if only units are lacking, the error says so."""
    try:
        return parse(plan)
    except UsageError as error:
        mended = _BARE_TIME.sub(r"\1ms", plan)
        if mended == plan:
            raise
        try:
            parse(mended)
        except UsageError:  # there is more to mend, and that is what was typed
            raise error from None
    raise UsageError(f"--faults {plan!r}: a time needs its unit (us, ms or s), such as {mended!r}")
