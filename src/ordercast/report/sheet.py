"""The paper that pages are written on: templates in, one file out."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, Template

from ordercast.errors import UsageError

__all__ = ["save", "template"]


def template(name: str) -> Template:
    return _environment().get_template(name)


def save(page: str, path: Path) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8", errors="replace", newline="\n")
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
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
