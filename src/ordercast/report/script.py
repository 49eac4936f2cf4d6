"""The page's script: plain files, put together as they are, and allowed by their hash."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files

from markupsafe import Markup

__all__ = ["Script", "script"]

_FILES = ("causality", "strips", "drawing", "card", "keys", "toolbar", "start")


@dataclass(frozen=True, slots=True)
class Script:
    text: Markup
    policy: Markup
    """What the page's Content-Security-Policy says to let this script run, and no other."""


@cache
def script() -> Script:
    folder = files("ordercast.report") / "scripts"
    parts = [(folder / f"{name}.js").read_text(encoding="utf-8") for name in _FILES]
    # In a block, so that nothing becomes global.
    text = '"use strict";\n{\n' + "\n".join(parts) + "}\n"
    digest = b64encode(sha256(text.encode()).digest()).decode()
    return Script(Markup(text), Markup(f"'sha256-{digest}'"))  # noqa: S704 - our own files
