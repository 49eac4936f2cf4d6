"""Paths as Spark takes them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

__all__ = ["plain_paths"]


def plain_paths(files: Iterable[Path]) -> list[str]:
    """For Spark to read these files and no others: it takes a path for a pattern."""
    return [re.sub(r"([\\{}\[\]*?])", r"\\\1", str(file.absolute())) for file in files]
