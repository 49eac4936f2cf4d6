"""SVG elements as text, every value escaped."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

__all__ = ["element", "number", "points", "visible"]

_CONTROL = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]"
    r"|[\u202a-\u202e\u2066-\u2069]"
)
"""Characters that XML does not allow, that would not show, or that turn the direction of whatever
stands around them: a name is a stranger's word."""


def element(tag: str, *children: str, **attributes: str | float | None) -> Markup:
    """`class_` becomes class and `data_message` data-message; None leaves an attribute out."""
    text = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    inner = "".join(_escaped(child) for child in children)
    made = f"<{tag}{text}>{inner}</{tag}>" if inner else f"<{tag}{text}/>"
    return Markup(made)  # noqa: S704 - every value in it went through `_escaped`


def number(value: float) -> str:
    """A tenth of a pixel is as fine as anyone sees."""
    text = f"{value:.1f}"
    return text.removesuffix(".0") if text != "-0.0" else "0"


def points(*pairs: tuple[float, float]) -> str:
    """The path through some points."""
    return "M" + " L".join(f"{number(x)} {number(y)}" for x, y in pairs)


def visible(value: object) -> object:
    """Text that is not markup, without what a page must not have in it."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", value)


def _value(value: str | float) -> str:
    return _escaped(value) if isinstance(value, str) else number(value)


def _escaped(text: str) -> str:
    if isinstance(text, Markup):
        return text
    return str(escape(visible(text)))
