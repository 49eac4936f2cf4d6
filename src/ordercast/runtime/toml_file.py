"""What people write in TOML, and the words for what they wrote instead."""

from __future__ import annotations

import re
import tomllib
from datetime import date, time
from pathlib import Path
from typing import Any

from ordercast.errors import UsageError

__all__ = ["dotted", "found", "read_toml"]

SHOWN_CHARS = 40

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def read_toml(path: Path | str) -> dict[str, Any]:
    """Some editors put a mark of three bytes in front of what is UTF-8."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not TOML: it is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not TOML: {error}") from None


def dotted(table: str, key: str) -> str:
    """As TOML names what stands in a table: `members.a`, `members."node.1"`."""
    return f"{table}.{key}" if _BARE.fullmatch(key) else f'{table}."{key}"'


def found(value: object) -> str:
    """What stands there, as the file has it: `the text '1'`, `the number 3`, `true`, `a list`."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f"the text {_shortened(repr(value))}"
        case int() | float():
            return f"the number {_shortened(str(value))}"
        case date():
            return f"the date {value}"
        case time():
            return f"the time {value}"
        case list():
            return "a list"
        case _:
            return "a table"


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS else f"{text[: SHOWN_CHARS - 1]}…"
