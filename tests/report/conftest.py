"""One Chromium for all tests that look at pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.report.chromium import FOUND, WHY_NOT, Chromium, chromium


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    if FOUND is None:
        pytest.skip(WHY_NOT)
    with chromium(tmp_path_factory.mktemp("chromium")) as found:
        yield found
