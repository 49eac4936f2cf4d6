"""The paper that pages are written on: templates in, one file out."""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache
from pathlib import Path

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, Template

from ordercast.errors import UsageError
from ordercast.report.svg import visible
from ordercast.trace.writing import appearing, is_replaceable

__all__ = ["save", "template"]


def template(name: str) -> Template:
    return _environment().get_template(name)


def save(page: str, path: Path) -> Path:
    """It appears when it is whole: on a disk that is full, the one before stays."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with appearing(path) if is_replaceable(path) else nullcontext(path) as place:
            place.write_text(page, encoding="utf-8", errors="replace", newline="\n")
    except OSError as error:
        raise UsageError(f"{path}: the report cannot be written: {error.strerror}") from None
    return path


@cache
def _environment() -> Environment:
    return Environment(
        loader=ChoiceLoader(
            [PackageLoader("ordercast.report", folder) for folder in ("templates", "live")]
        ),
        autoescape=True,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
