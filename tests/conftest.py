"""Options and fixtures that every room's tests share."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="write what scenarios really print into their files; review the diff",
    )
