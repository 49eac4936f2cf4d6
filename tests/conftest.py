"""Options and fixtures that every room's tests share."""

from __future__ import annotations

import pytest

EXPLORED = pytest.StashKey[list[int]]()
"""How many states the model checker has seen, world by world."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="write what scenarios really print into their files; review the diff",
    )


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if states := config.stash.get(EXPLORED, []):
        terminalreporter.write_line(
            f"model checker: {sum(states):,} states in {len(states)} worlds"
        )
