"""The script of a page: plain files, put together as they are, and allowed by their hash."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files

from markupsafe import Markup

__all__ = ["Script", "assembled", "script"]

_FILES = ("elements", "causality", "strips", "drawing", "card", "keys", "toolbar", "start")


@dataclass(frozen=True, slots=True)
class Script:
    text: Markup
    policy: Markup
    """What the page's Content-Security-Policy says to let this script run, and no other."""


def script() -> Script:
    """The report's."""
    return assembled(*(f"scripts/{name}" for name in _FILES))


@cache
def assembled(*names: str) -> Script:
    """Of files in this room."""
    folder = files("ordercast.report")
    parts = [(folder / f"{name}.js").read_text(encoding="utf-8") for name in names]
    # In a block, so that nothing becomes global.
    text = '"use strict";\n{\n' + "\n".join(parts) + "}\n"
    digest = b64encode(sha256(text.encode()).digest()).decode()
    return Script(Markup(text), Markup(f"'sha256-{digest}'"))  # noqa: S704 - our own files
